// attest relate: backends held against themselves.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <thread>

#include "harness/backends/set/backend_set.h"
#include "harness/base/interrupted.h"
#include "harness/base/output_file.h"
#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/long_case.h"
#include "harness/cases/memory.h"
#include "harness/cli/command.h"
#include "harness/relate/relation_report.h"
#include "harness/run/case_lists.h"

namespace attest {
namespace {

constexpr const char* kSuite = "relations";

struct RelateOptions {
  BackendOptions backend;
  IsolationFlags isolation;
  OutputOptions output;
  CaseNames cases;
  std::string relations, json;
  bool list = false;

  std::FILE* console() const { return json == "-" || output.for_programs() ? stderr : stdout; }
};

int list_relations(TableFormat format) {
  Table table({{"relation"}, {"what must be equal"}, {"applies to"}});
  for (const Relation& one : relations())
    table.add({std::string(one.name), std::string(one.about), std::string(one.applies)});
  fmt::print("{}", table.printed(format));
  return kOk;
}

std::vector<const Relation*> chosen_relations(const std::string& names) {
  std::vector<const Relation*> chosen;
  for (const std::string& name : split_names(names, "relations")) {
    const Relation* one = &relation_named(name);
    if (std::ranges::find(chosen, one) == chosen.end()) chosen.push_back(one);
  }
  if (!chosen.empty()) return chosen;
  for (const Relation& one : relations()) chosen.push_back(&one);
  return chosen;
}

/// The same backends made for other numbers of threads.
std::vector<BackendSet> made_for_other_threads(const RelateOptions& options, const Plugins& plugins,
                                               const std::vector<const Relation*>& chosen) {
  std::vector<BackendSet> sets;
  const bool wanted =
      std::ranges::any_of(chosen, [](const Relation* one) { return one->kind == RelationKind::threads; });
  if (!wanted) return sets;
  const int many = 2 * static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)) + 1;
  for (const int threads : {1, 2, 3, many}) {
    Context context = options.backend.context();
    if (threads == std::exchange(context.threads, threads)) continue;
    sets.emplace_back(plugins.entries(), options.backend.list(plugins), context,
                      options.isolation.options(options.backend));
  }
  return sets;
}

std::vector<Backend*> of_name(const std::vector<BackendSet>& sets, const std::string& name) {
  std::vector<Backend*> found;
  for (const BackendSet& set : sets) {
    for (Backend* one : set.all()) {
      if (one->identity().name == name) found.push_back(one);
    }
  }
  return found;
}

/// Told of each verdict as it comes.
class RelateOutput {
 public:
  RelateOutput(const RelateOptions& options, std::vector<std::string> backends)
      : options_(options), tally_(std::move(backends)) {
    progress_.unit = "relations";
    if (!options.json.empty() && options.json != "-") file_.emplace(options.json);
  }

  void add(const RelationVerdict& verdict) {
    tally_.add(verdict);
    if (!options_.json.empty()) write(relation_to_json(verdict).dump() + "\n");
    if (is_failure(verdict)) {
      line_.clear();
      fmt::print(options_.console(), "{}\n", failure_text(verdict));
    } else if (options_.output.verbose) {
      line_.clear();
      fmt::print(options_.console(), "{} {} {} {}{}\n", name_of(verdict.status), verdict.backend, verdict.relation,
                 printable_line(verdict.case_line),
                 verdict.reason.empty() ? "" : ": " + printable_line(verdict.reason));
    }
    progress_.failed = tally_.all().fail;
    ++progress_.done;
    line_.draw(progress_);
  }

  int end() {
    line_.clear();
    const RelationCount& all = tally_.all();
    if (!options_.json.empty()) {
      nlohmann::ordered_json summary = {
          {"kind", "summary"}, {"bits", all.bits}, {"bound", all.bound}, {"fail", all.fail}, {"refused", all.refused}};
      if (interrupted) summary["interrupted"] = true;
      write(summary.dump() + "\n");
      if (file_) file_->finish();
    }
    const TableFormat format = options_.output.table();
    std::FILE* const out = options_.json == "-" ? stderr : stdout;
    if (!options_.output.quiet || format != TableFormat::text) fmt::print(out, "{}", tally_.table(format));
    fmt::print(options_.console(), "{} with the same bits, {} within bounds, {} failed, {} refused\n", all.bits,
               all.bound, all.fail, all.refused);
    if (interrupted) return kInterrupted;
    if (all.fail > 0) return kFailed;
    if (all.ran() > 0) return kOk;
    fmt::print(stderr, "attest: nothing was compared: {}\n",
               all.refused > 0 ? "the backends refused everything" : "no relation applies to these cases");
    return kNothingChecked;
  }

 private:
  void write(const std::string& line) {
    if (file_)
      file_->write(line);
    else
      fmt::print("{}", line);
  }

  const RelateOptions& options_;
  RelationTally tally_;
  std::optional<OutputFile> file_;
  ProgressLine line_;
  Progress progress_;
};

int run(RelateOptions options, std::span<const BackendEntry> registry) {
  if (options.list) return list_relations(options.output.table());
  if (options.json == "-" && options.output.for_programs())
    throw UserError("--format " + options.output.format + ": --json - has standard output; name a file for --json");
  const std::vector<const Relation*> chosen = chosen_relations(options.relations);
  CaseNames& names = options.cases;
  if (names.arguments.empty() && names.suites.empty() && names.suite_files.empty()) names.suites = {kSuite};
  const std::vector<CaseList> lists = load_cases(names);
  for (const CaseList& list : lists) {
    for (const Case& source : list.cases) check_memory(source.problem, source.label, 1);
  }
  const Plugins plugins(options.backend.sources(), registry, options.backend.limits());
  const Context context = options.backend.context();
  const BackendSet backends(plugins.entries(), options.backend.list(plugins), context,
                            options.isolation.options(options.backend));
  backends.require(options.backend.required());
  const std::vector<BackendSet> others = made_for_other_threads(options, plugins, chosen);
  std::vector<std::string> backend_names;
  for (Backend* backend : backends.all()) backend_names.push_back(backend->identity().name);
  RelateOutput output(options, backend_names);
  for (const CaseList& list : lists) {
    for (const Case& source : list.cases) {
      if (interrupted) break;
      announce_if_long(source.problem, source.label);
      RelatedCase related(source, context.threads);
      for (const Relation* relation : chosen) {
        if (!related.applies(*relation)) continue;
        for (Backend* backend : backends.all()) {
          if (interrupted) break;
          RelationVerdict verdict = related.judge(*relation, *backend, of_name(others, backend->identity().name));
          verdict.suite = list.suite;
          output.add(verdict);
        }
      }
    }
  }
  return output.end();
}

}  // namespace

void add_relate(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<RelateOptions>();
  auto* sub = add_command(app, "relate",
                          "Hold backends against themselves: the same numbers in a batch and alone, in pieces and at "
                          "once, packed and padded. Other bits must lie within the sum of both bounds.",
                          "attest relate \"batch=4 heads=8/2 seq=64 dim=64 causal\" --backend eigen");
  sub->add_option("case", options->cases.arguments,
                  "Case lines or .safetensors files; - reads case lines from standard input; without cases and suites "
                  "the suite `relations`")
      ->type_name("CASE");
  sub->add_option("--suite", options->cases.suites, "A committed suite by name; may be repeated")->type_name("SUITE");
  sub->add_option("--suite-file", options->cases.suite_files, "Anyone's file of case lines; may be repeated")
      ->type_name("FILE");
  sub->add_option("--relation", options->relations, "Comma separated; default: all that apply")->type_name("NAMES");
  sub->add_flag("--list", options->list, "Print the relations, and run nothing");
  add_backend_options(*sub, options->backend, BackendCount::any);
  add_plugin_options(*sub, options->backend);
  add_require_option(*sub, options->backend);
  sub->add_option("--share", options->cases.share, "n/m: so much of each suite, drawn by --seed");
  sub->add_option("--seed", options->cases.seed, "Of --share and of generated suites: the same seed draws the same");
  sub->add_option("--json", options->json, "Write JSON Lines to this file; - is standard output")->type_name("FILE");
  add_format_option(*sub, options->output, "The table, or with --list the list; but for text alone on standard output");
  add_detail_options(*sub, options->output);
  add_isolation_options(*sub, options->backend, options->isolation);
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.registry); });
}

}  // namespace attest
