// attest-mutants: is every wrong backend caught? Deliberate mistakes and mutants of the example kernel, suite by suite.
//
// Exit code 1 when one survives that isn't argued to be equivalent, when an argued one is caught after all, or when the
// correct kernel is accused.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>

#include "backends/registry.h"
#include "harness/backends/set/backend_set.h"
#include "harness/base/data_folder.h"
#include "harness/base/machine.h"
#include "harness/base/output_file.h"
#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "harness/cases/suites.h"
#include "harness/cli/cli.h"
#include "harness/page/kill_table.h"
#include "tests/faulty/faulty.h"
#include "tests/mutants/conditional_score.h"
#include "tests/mutants/equivalent.h"
#include "tests/mutants/kill_table.h"
#include "tests/mutants/mutants.h"
#include "tests/mutants/rules.h"

namespace attest::mutants {
namespace {

/// Cases of a suite; "unit" is one line that no suite holds: its mask spans 2.2 GB, for an index beyond 32 bits.
std::vector<Case> cases_of(const std::string& suite) {
  if (suite != "unit") return load_suite(find_suite(suite));
  return {case_from_line("batch=2 seq=4 dim=4 mask=bool:BHQK:random(0.5) mask.strides=2200000000,16,4,1")};
}

std::vector<Subject> subjects_of(const BackendSet& set, const std::function<std::string(std::size_t)>& text) {
  std::vector<Subject> list;
  for (Backend* backend : set.all()) list.push_back({backend->identity().name, text(list.size()), backend});
  return list;
}

BackendSet mutant_set() {
  return BackendSet(mutant_backends(), {}, {1, ""}, IsolationOptions{std::chrono::milliseconds(10'000), 2});
}

struct MistakeSuite {
  std::string name;
  bool counts;  ///< false: of recorded results, no part of the score. The lines must do it alone.
};

/// Deliberate mistakes against one suite after another: what one suite catches rests, and suites that don't count are
/// left out. With a table each suite by itself meets all, and what was found is added. Returns how many survived or
/// were wrongly accused.
int mistakes(KillTable* table) {
  std::vector<MistakeSuite> suites = {{"smoke", true},     {"bugs", true},   {"walkthroughs", false},
                                      {"captures", false}, {"onnx", false},  {"linear", true},
                                      {"merge", true},     {"matrix", true}, {"unit", true}};
  if (!table) std::erase_if(suites, [](const MistakeSuite& suite) { return !suite.counts; });
  const BackendSet backends(faulty::faulty_backends(), {}, {1, ""});
  const std::vector<Subject> subjects = subjects_of(
      backends, [&](std::size_t n) { return std::string(faulty::description(faulty::faulty_backends()[n].name)); });
  std::vector<SuiteKills> results;
  const auto caught = [&](const Subject& subject) {
    return std::any_of(results.begin(), results.end(),
                       [&](const SuiteKills& suite) { return suite.kills.contains(subject.name); });
  };
  for (const MistakeSuite& suite : suites) {
    std::vector<Subject> against = subjects;
    if (!table || suite.name == "unit") std::erase_if(against, caught);
    results.push_back(run_suite(suite.name, cases_of(suite.name), against));
  }

  if (table) {
    for (const SuiteKills& suite : results) table->suites.push_back(suite.suite);
  }
  fmt::print("Mistakes: case by which a suite catches each, counted from 1; - when it does not{}\n\n{:<28}",
             table ? "" : ", or another before it did", "mistake");
  for (const SuiteKills& suite : results) fmt::print(" {:>12}", suite.suite);
  fmt::print("\n");
  int survivors = 0, accused = 0;
  for (const Subject& subject : subjects) {
    fmt::print("{:<28}", subject.name);
    Mistake found{subject.name, subject.text, {}};
    bool killed = false;
    for (std::size_t n = 0; n < suites.size(); ++n) {
      const auto kill = results[n].kills.find(subject.name);
      const bool here = kill != results[n].kills.end();
      fmt::print(" {:>12}", here ? std::to_string(kill->second.number) : "-");
      killed |= here && suites[n].counts;
      if (here) found.kills[suites[n].name] = kill->second.number;
    }
    if (table && subject.name != "correct") table->mistakes.push_back(std::move(found));
    fmt::print("   {}\n", subject.text);
    (subject.name == "correct" ? accused : survivors) += (subject.name == "correct") == killed;
  }
  fmt::print("{:<28}", "seconds");
  for (const SuiteKills& suite : results) fmt::print(" {:>12.1f}", suite.seconds);
  fmt::print("\n\n{} mistakes, {} survived, correct kernel accused: {}\n\n", subjects.size() - 1, survivors, accused);
  return survivors + accused;
}

/// Mutants against one suite after another; what one suite catches rests, and those argued to be equivalent rest in
/// long suites unless `argued`. Adds what was found to the table. Returns how many are not as argued.
int mutants(bool verbose, bool argued, KillTable& table) {
  const BackendSet backends = mutant_set();
  std::vector<Subject> alive = subjects_of(backends, [](std::size_t n) { return std::string(all_mutants()[n].text); });
  const std::size_t total = alive.size();
  auto equivalent = read_equivalents(data_folder("mutants") / "equivalent.txt");
  fmt::print("Mutants of example: {}; each suite meets those that the suites before it left\n\n", total);
  fmt::print("{:<10} {:>7} {:>7} {:>7} {:>16} {:>9}\n", "suite", "cases", "met", "caught", "median at case", "seconds");
  std::size_t wrongly_argued = 0;
  constexpr std::size_t kLongSuite = 1000;
  for (const char* suite : {"options", "smoke", "bugs", "linear", "merge", "backward", "matrix"}) {
    std::vector<Subject> met = alive;
    const std::vector<Case> cases = cases_of(suite);
    if (cases.size() >= kLongSuite && !argued)
      std::erase_if(met, [&](const Subject& subject) { return equivalent.contains(subject.text); });
    const SuiteKills result = run_suite(suite, cases, met);
    std::vector<double> at;
    MutantSuite found{suite, result.cases, met.size(), {}};
    for (const auto& [name, kill] : result.kills) {
      at.push_back(static_cast<double>(kill.number));
      found.at.push_back(kill.number);
    }
    std::sort(found.at.begin(), found.at.end());
    table.mutant_suites.push_back(std::move(found));
    fmt::print("{:<10} {:>7} {:>7} {:>7} {:>16} {:>9.1f}\n", suite, result.cases, met.size(), at.size(),
               at.empty() ? "-" : fmt::format("{:.0f}", median(at)), result.seconds);
    std::fflush(stdout);
    std::erase_if(alive, [&](const Subject& subject) {
      const auto kill = result.kills.find(subject.name);
      if (kill == result.kills.end()) return false;
      if (verbose)
        fmt::print("  {} {}\n      {} {}: {}\n", subject.name, subject.text, suite, kill->second.number,
                   kill->second.line);
      if (equivalent.erase(subject.text) > 0) {
        ++wrongly_argued;
        fmt::print("  argued to be equivalent, but caught by {}: {}\n", kill->second.line, subject.text);
      }
      return true;
    });
  }
  // What is left must be what is argued, no more and no less.
  std::size_t survivors = 0;
  for (const Subject& subject : alive) {
    if (equivalent.erase(subject.text) > 0) continue;
    ++survivors;
    fmt::print("  survived: {} {}\n", subject.name, subject.text);
  }
  for (const auto& [text, reason] : equivalent) fmt::print("  argued, but no mutant any more: {}\n", text);
  const std::size_t equal = alive.size() - survivors;
  table.mutants = total;
  table.equivalent = equal;
  fmt::print("\n{} mutants, {} caught, {} argued to be equivalent, {} survived: score {:.3f}\n", total,
             total - alive.size(), equal, survivors,
             static_cast<double>(total - alive.size()) / static_cast<double>(total - equal));
  return static_cast<int>(survivors + wrongly_argued + equivalent.size());
}

/// What the tolerances of others would have caught of the same, and whom they accuse.
void tolerances(const std::string& suites) {
  const BackendSet wrong(faulty::faulty_backends(), {}, {1, ""}), mutated = mutant_set(),
                                                                  correct(registered_backends(), {}, {2, ""});
  std::vector<Subject> mistakes = subjects_of(wrong, [](std::size_t) { return ""; });
  std::erase_if(mistakes, [](const Subject& subject) { return subject.name == "correct"; });
  const std::vector<Subject> changed = subjects_of(mutated, [](std::size_t) { return ""; }),
                             right = subjects_of(correct, [](std::size_t) { return ""; });
  Backend* plain = nullptr;
  for (const Subject& subject : right) plain = subject.name == "example" ? subject.backend : plain;
  if (!plain) throw UserError("the backend example is not built");

  std::vector<Subject> all = mistakes;
  all.insert(all.end(), changed.begin(), changed.end());
  all.insert(all.end(), right.begin(), right.end());
  fmt::print("{:<10} {:<12} {:>9} {:>9} {:>9}\n", "suite", "rule", "mistakes", "mutants", "accused");
  for (const std::string& suite : split_names(suites)) {
    const std::vector<Case> cases = cases_of(suite);
    const auto count = [](const SuiteKills& result, const std::vector<Subject>& subjects) {
      return std::count_if(subjects.begin(), subjects.end(),
                           [&](const Subject& subject) { return result.kills.contains(subject.name); });
    };
    const auto row = [&](const std::string& rule, const SuiteKills& result) {
      std::string accused;
      for (const Subject& subject : right) {
        const auto kill = result.kills.find(subject.name);
        if (kill == result.kills.end()) continue;
        accused += fmt::format("{}{} ({})", accused.empty() ? "" : ", ", subject.name, kill->second.number);
      }
      fmt::print("{:<10} {:<12} {:>4}/{:<4} {:>4}/{:<4} {}\n", suite, rule, count(result, mistakes), mistakes.size(),
                 count(result, changed), changed.size(), accused.empty() ? "none" : accused);
      std::fflush(stdout);
    };
    row("bound", run_suite(suite, cases, all));
    for (const auto& [rule, result] : run_suite_by_rules(suite, cases, all, *plain)) row(rule, result);
  }
  fmt::print("\n");
  for (const Rule& rule : rules()) fmt::print("{:<6} {}\n", rule.name, rule.source);
}

int run(int argc, char** argv) {
  CLI::App app("Is every wrong backend caught?", "attest mutants");
  bool list = false, verbose = false, argued = false;
  std::string by_tolerance, only, json;
  app.add_flag("--list", list, "the mutants, one a line");
  app.add_flag("--argued", argued, "those argued to be equivalent meet long suites too");
  app.add_flag("--verbose", verbose, "who caught each mutant");
  app.add_option("--only", only, "mistakes or mutants")->check(CLI::IsMember({"mistakes", "mutants"}));
  app.add_option("--json", json, "write the kill table of both to this file")->excludes("--only");
  app.add_option("--tolerances", by_tolerance, "suites (a,b) to compare the bound with the tolerances of others on");
  ConditionalSettings conditions;
  bool conditional = false;
  std::string options;
  std::string suites = "matrix,large";
  app.add_flag("--conditional", conditional, "mistakes that are made only where a condition over the call holds");
  app.add_flag("--gradients", conditions.gradients, "with --conditional: only where the call asks for gradients");
  app.add_option("--options", options, "with --conditional: keys (a,b) of which every mutant has a condition");
  app.add_option("--suites", suites, "with --conditional: suites (a,b) that catch them, one after the other");
  app.add_option("--sample", conditions.sample, "with --conditional: mutants of each kind, at most")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", conditions.seed, "with --conditional: of the random conditions");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (list) {
    for (const Mutant& mutant : all_mutants()) fmt::print("{} {}\n", mutant.name, mutant.text);
    return 0;
  }
  if (!by_tolerance.empty()) {
    tolerances(by_tolerance);
    return 0;
  }
  if (conditional) {
    conditions.suites = split_names(suites);
    conditions.options = split_names(options, "options");
    conditions.verbose = verbose;
    score_conditional(conditions);
    return 0;
  }
  std::optional<OutputFile> file;
  if (!json.empty()) file.emplace(json);
  KillTable table{ATTEST_VERSION, build_commit(), this_machine().cpu, "attest mutants", {}, {}, 0, 0, {}};
  int wrong = 0;
  if (only != "mutants") wrong += mistakes(file ? &table : nullptr);
  if (only != "mistakes") wrong += mutants(verbose, argued, table);
  if (file) {
    file->write(to_json(table).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    file->finish();
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace attest::mutants

int main(int argc, char** argv) {
  // Mutants run in worker processes of this program: one that writes where it may not ends there.
  if (argc > 1 && std::string_view(argv[1]) == "worker") {
    if (!std::freopen("/dev/null", "w", stderr)) return 1;  // their exit messages are of no interest
    return attest::run_command_line(argc, argv, attest::mutants::mutant_backends());
  }
  try {
    return attest::mutants::run(argc, argv);
  } catch (const attest::UserError& error) {
    fmt::print(stderr, "attest mutants: {}\n", error.what());
    return 2;
  } catch (const attest::OutputError& error) {
    fmt::print(stderr, "attest mutants: {}\n", error.what());
    return 1;
  }
}
