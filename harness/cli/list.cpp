// attest list
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "harness/backends/set/backend_set.h"
#include "harness/base/data_folder.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/suites.h"
#include "harness/cli/command.h"
#include "harness/cli/list_coverage.h"
#include "harness/probe/probe.h"
#include "harness/tuning/parameters.h"
#include "reference/base/nearest.h"
#include "reference/options/field_words.h"
#include "reference/options/options.h"

namespace attest {
namespace {

constexpr std::string_view kLists[] = {"backends", "conventions", "arithmetic", "parameters", "semantics",
                                       "options",  "words",       "suites",     "cases",      "coverage"};

struct ListOptions {
  std::string what;
  bool json = false, pairs = false;
  std::vector<std::string> suites;
  std::uint64_t seed = 0;
  BackendOptions backend;
  IsolationFlags isolation;
  OutputOptions output;
};

/// In text without the names of its columns, which say what they are.
int print(const Table& table, const ListOptions& options) {
  const std::string text = table.printed(options.output.table());
  fmt::print("{}", options.output.for_programs() ? text : text.substr(text.find('\n') + 1));
  return kOk;
}

int list_backends(const ListOptions& options, std::span<const BackendEntry> registry) {
  const Plugins plugins(options.backend.sources(), registry, options.backend.limits());
  const BackendSet backends(plugins.entries(), {}, options.backend.context(),
                            options.isolation.options(options.backend));
  if (options.json) {
    nlohmann::ordered_json list = nlohmann::json::array();
    for (const Backend* backend : backends.all()) {
      const Identity id = identity_of(*backend);
      nlohmann::ordered_json one = {{"name", id.name}, {"library", id.library}, {"device", id.device}};
      if (!id.parameters.empty()) one["parameters"] = id.parameters;
      const Conventions conventions = backend->conventions();
      for (const auto& [name, member] : kConventionFields) one["conventions"][std::string(name)] = conventions.*member;
      list.push_back(one);
    }
    for (const Unavailable& u : backends.unavailable()) list.push_back({{"name", u.name}, {"unavailable", u.reason}});
    fmt::print("{}\n", list.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return kOk;
  }
  if (options.output.for_programs()) {
    Table table({{"backend"}, {"library"}, {"device"}, {"not available"}});
    for (const Backend* backend : backends.all()) {
      const Identity id = backend->identity();
      table.add({id.name, id.library, id.device, ""});
    }
    for (const Unavailable& u : backends.unavailable()) table.add({u.name, "", "", u.reason});
    return print(table, options);
  }
  for (const Backend* backend : backends.all()) {
    const Identity id = identity_of(*backend);
    fmt::print("{:<10} {}\n", id.name, printable_line(description(id)));
  }
  for (const Unavailable& u : by_reason(backends.unavailable()))
    fmt::print("{:<10} not available: {}\n", u.name, printable_line(u.reason));
  return kOk;
}

/// What each backend says and what probing it shows; exit code 1 when a statement does not hold.
int list_findings(std::vector<ProbedStatement> (*probe)(Backend&), const ListOptions& options,
                  std::span<const BackendEntry> registry) {
  const Plugins plugins(options.backend.sources(), registry, options.backend.limits());
  const BackendSet backends(plugins.entries(), options.backend.list(plugins), options.backend.context(),
                            options.isolation.options(options.backend));
  const bool for_programs = options.output.for_programs();
  bool all_hold = true;
  Table table({{"backend"}, {"statement"}, {"stated"}, {"verdict"}});
  for (Backend* backend : backends.all()) {
    const std::string name = backend->identity().name;
    if (!for_programs) fmt::print("{}\n", name);
    for (const ProbedStatement& f : probe(*backend)) {
      table.add({name, f.name, f.stated, f.verdict()});
      all_hold = all_hold && f.holds;
      if (!for_programs)
        fmt::print("  {:<20} {:<14} {}\n", f.name, printable_line(f.stated), printable_line(f.verdict()));
    }
  }
  if (for_programs) print(table, options);
  return all_hold ? kOk : kFailed;
}

/// What may be chosen of each backend on its device, and what is in use.
int list_parameters(const ListOptions& options, std::span<const BackendEntry> registry) {
  const Plugins plugins(options.backend.sources(), registry, options.backend.limits());
  const BackendSet backends(plugins.entries(), options.backend.list(plugins), options.backend.context(),
                            options.isolation.options(options.backend));
  Table table({{"backend", false, 10}, {"parameter", false, 14}, {"in use", true}, {"standard", true}, {"choices"}});
  for (const Backend* backend : backends.all()) {
    for (const Parameter& p : backend->tuning().parameters) {
      table.add({backend->identity().name, p.name, std::to_string(p.value), std::to_string(p.standard),
                 choices_text(p, " ")});
    }
  }
  fmt::print("{}", table.printed(options.output.table()));
  return kOk;
}

std::string text_of(const nlohmann::json& object, const std::string& key) {
  return object.contains(key) ? object[key].get<std::string>() : "-";
}

/// Markdown: the backends' statements beside what backends/field.json says of others, and the sources.
int list_semantics(const ListOptions& options, std::span<const BackendEntry> registry) {
  const std::filesystem::path path = required_data_folder("backends") / "field.json";
  std::ifstream file(path);
  const nlohmann::json field = nlohmann::json::parse(file, nullptr, false);
  if (!field.is_object()) throw UserError(path.string() + ": can't be read");
  const Plugins plugins(options.backend.sources(), registry, options.backend.limits());
  const BackendSet backends(plugins.entries(), options.backend.list(plugins), options.backend.context(),
                            options.isolation.options(options.backend));
  std::map<std::string, std::string> stated;
  for (const Backend* backend : backends.all()) {
    const Conventions conventions = backend->conventions();
    for (const auto& [name, member] : kConventionFields) {
      const std::string& value = conventions.*member;
      std::string& cell = stated[std::string(name)];
      if (cell.find(value) == std::string::npos) cell += (cell.empty() ? "" : ", ") + value;
    }
  }
  fmt::print("| matter | attest's backends |");
  for (const auto& one : field["implementations"]) fmt::print(" {} |", text_of(one, "name"));
  fmt::print("\n|---|---|");
  for (std::size_t n = 0; n < field["implementations"].size(); ++n) fmt::print("---|");
  fmt::print("\n");
  for (const auto& row : field["rows"]) {
    const std::string name = text_of(row, "field");
    fmt::print("| {} | {} |", text_of(row, "matter"), stated[name]);
    for (const auto& one : field["implementations"]) fmt::print(" {} |", text_of(one, name));
    fmt::print("\n");
  }
  fmt::print("\nSources:");
  for (const auto& one : field["implementations"]) fmt::print(" {}: {}.", text_of(one, "name"), text_of(one, "source"));
  fmt::print(" {}\n", text_of(field, "about"));
  return kOk;
}

/// The case language, key by key.
int list_options(const ListOptions& options) {
  Table table({{"option", false, 43}, {"meaning"}});
  for (const Option& option : attest::options()) {
    const std::string token = option.takes_value() ? option.key + (option.stands_alone ? "[=" : "=") + option.value +
                                                         (option.stands_alone ? "]" : "")
                                                   : option.key;
    table.add({token, option.about});
  }
  return print(table, options);
}

/// What others call it, and how it is said here.
int list_words(const ListOptions& options) {
  Table table({{"here"}, {"meaning"}, {"called elsewhere"}});
  for (const FieldWord& row : field_words()) {
    const std::string here = row.here.empty() ? "-" : std::string(row.here);
    table.add({here, std::string(row.about), std::string(row.words)});
    if (!options.output.for_programs()) fmt::print("{:<38} {}\n    {}\n", here, row.about, row.words);
  }
  return options.output.for_programs() ? print(table, options) : kOk;
}

int list_suites(const ListOptions& options) {
  Table table({{"suite", false, 14}, {"cases", true}, {"about"}});
  for (const Suite& suite : find_suites()) {
    const std::string count = std::to_string(load_suite(suite).size());
    table.add({suite.name, options.output.for_programs() ? count : count + " cases", suite.about});
  }
  return print(table, options);
}

/// As text a line each, which `attest check -` takes where one suite is named.
int list_cases(const ListOptions& options) {
  std::vector<Suite> suites;
  for (const std::string& name : options.suites) suites.push_back(find_suite(name));
  if (suites.empty()) suites = find_suites();
  Table table({{"suite"}, {"case"}});
  for (const Suite& suite : suites) {
    for (const Case& one : load_suite(suite, options.seed)) {
      table.add({suite.name, one.label});
      if (options.output.for_programs()) continue;
      fmt::print("{}\n", printable_line(options.suites.size() == 1 ? one.label : suite.name + ": " + one.label));
    }
  }
  return options.output.for_programs() ? print(table, options) : kOk;
}

int list_coverage(const ListOptions& options) {
  if (options.suites.empty()) throw UserError("list coverage needs --suite NAME, once or more");
  print_coverage(options.suites, options.pairs);
  return kOk;
}

int run(const ListOptions& options, std::span<const BackendEntry> registry) {
  if (options.output.for_programs() && (options.what == "semantics" || options.what == "coverage" || options.json)) {
    throw UserError("--format " + options.output.format + ": this list has one format of its own");
  }
  if (options.what == "backends") return list_backends(options, registry);
  if (options.what == "conventions") return list_findings(probe_conventions, options, registry);
  if (options.what == "arithmetic") return list_findings(probe_arithmetic, options, registry);
  if (options.what == "parameters") return list_parameters(options, registry);
  if (options.what == "semantics") return list_semantics(options, registry);
  if (options.what == "options") return list_options(options);
  if (options.what == "words") return list_words(options);
  if (options.what == "suites") return list_suites(options);
  if (options.what == "cases") return list_cases(options);
  if (options.what == "coverage") return list_coverage(options);
  throw UserError("unknown list \"" + options.what + "\"; nearest: " + nearest_name(options.what, kLists));
}

}  // namespace

void add_list(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ListOptions>();
  auto* sub = add_command(app, "list", "Show what there is.", "attest list backends");
  sub->add_option("what", options->what,
                  "backends, conventions and arithmetic (each statement probed), parameters (in use and to choose "
                  "from), semantics (beside other libraries), "
                  "options (the case language), words (what others call them), suites, cases or coverage (classes of "
                  "values that suites meet)")
      ->type_name("{" + CLI::detail::join(std::vector<std::string>(std::begin(kLists), std::end(kLists)), ",") + "}")
      ->required();
  sub->add_flag("--json", options->json, "backends as JSON, with the conventions they state");
  sub->add_option("--backend", options->backend.names,
                  "Only these, separated by commas (conventions, arithmetic, parameters, semantics)")
      ->type_name("BACKEND");
  sub->add_option("--threads", options->backend.threads, "Threads of each backend; default: every core")
      ->check(CLI::Range(1, 1024));
  add_plugin_options(*sub, options->backend);
  add_isolation_options(*sub, options->backend, options->isolation);
  sub->add_option("--suite", options->suites, "Suites whose cases or coverage to show")->type_name("SUITE");
  sub->add_option("--seed", options->seed, "Of the cases of generated suites");
  sub->add_flag("--pairs", options->pairs, "coverage of every pair of classes too");
  add_format_option(*sub, options->output, "Of all but semantics, which is Markdown, and coverage");
  sub->add_option("--device", options->backend.device, "Part of an OpenCL device's or platform's name");
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.registry); });
}

}  // namespace attest
