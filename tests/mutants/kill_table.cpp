#include "tests/mutants/kill_table.h"

#include <algorithm>
#include <set>

#include "harness/base/stopwatch.h"
#include "harness/base/terminal.h"
#include "harness/comparison/compare.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/prepared_case.h"
#include "tests/mutants/rules.h"

namespace attest::mutants {
namespace {

constexpr int kThreads = 2;  // of the reference

std::vector<Backend*> backends_of(const std::vector<Subject>& subjects) {
  std::vector<Backend*> backends;
  for (const Subject& subject : subjects) backends.push_back(subject.backend);
  return backends;
}

/// Results by output. Throws what the backend throws.
std::map<std::string, Tensor> results_of(const PreparedCase& prepared, Backend& backend) {
  const Problem& p = prepared.problem();
  GuardedOutputs outputs(p);
  walk_once(backend, p, prepared.inputs(), outputs);
  std::map<std::string, Tensor> tensors;
  const Bounds& bounds = prepared.expectation().bounds_for({backend.arithmetic(p), {}});
  each_result(p, prepared.expectation(), bounds, outputs,
              [&](const TensorRow& output, const Index4&, double got, double expected, double) {
                Tensor& tensor = tensors[std::string(output.name)];
                tensor.dtype = type_of(p, output.id);
                tensor.got.push_back(got);
                tensor.expected.push_back(expected);
              });
  return tensors;
}

/// Names of the rules that accept the backend's results; none when it gives none.
std::set<std::string_view> accepting_rules(const PreparedCase& prepared, Backend& backend,
                                           const std::map<std::string, Tensor>& baseline) {
  std::set<std::string_view> accepting;
  std::map<std::string, Tensor> results;
  try {
    results = results_of(prepared, backend);
  } catch (const std::exception&) {
    return accepting;
  }
  for (auto& [name, tensor] : results) tensor.baseline = baseline.at(name).got;
  for (const Rule& rule : rules()) {
    if (std::all_of(results.begin(), results.end(), [&](const auto& entry) { return rule.accepts(entry.second); })) {
      accepting.insert(rule.name);
    }
  }
  return accepting;
}

}  // namespace

SuiteKills run_suite(const std::string& suite, const std::vector<Case>& cases, std::vector<Subject> subjects) {
  SuiteKills result{suite, cases.size(), 0, {}};
  ProgressLine line;
  result.seconds = timed([&] {
    for (std::size_t n = 0; n < cases.size() && !subjects.empty(); ++n) {
      if (line.due()) {
        const std::string left = suite + ", " + std::to_string(subjects.size()) + " not caught yet";
        line.draw({left, "cases", n, cases.size(), 0, {}, {}});
      }
      const PreparedCase prepared(cases[n], backends_of(subjects), kThreads);
      std::erase_if(subjects, [&](const Subject& subject) {
        const Verdict verdict = prepared.check(*subject.backend);
        if (!is_failure(verdict)) return false;
        result.kills[subject.name] = {n + 1, verdict.case_line, verdict.reason};
        return true;
      });
    }
  });
  return result;
}

std::map<std::string, SuiteKills> run_suite_by_rules(const std::string& suite, const std::vector<Case>& cases,
                                                     const std::vector<Subject>& subjects, Backend& plain) {
  std::map<std::string, SuiteKills> by_rule;
  for (const Rule& rule : rules()) by_rule[std::string(rule.name)] = {suite, cases.size(), 0, {}};
  std::vector<Subject> alive = subjects;
  for (std::size_t n = 0; n < cases.size() && !alive.empty(); ++n) {
    std::vector<Backend*> backends = backends_of(alive);
    backends.push_back(&plain);
    const PreparedCase prepared(cases[n], backends, kThreads);
    if (plain.refuse(prepared.problem())) continue;
    const auto baseline = results_of(prepared, plain);
    const auto sound = accepting_rules(prepared, plain, baseline);
    std::erase_if(alive, [&](const Subject& subject) {
      try {
        if (subject.backend->refuse(prepared.problem())) return false;
      } catch (const std::exception&) {
        // A crash here is met again below.
      }
      const auto accepting = accepting_rules(prepared, *subject.backend, baseline);
      bool everywhere = true;
      for (auto& [rule, result] : by_rule) {
        // A rule that accuses the plain correct kernel here proves nothing by accusing others.
        const bool counts = sound.contains(rule) || subject.backend == &plain;
        if (counts && !accepting.contains(rule))
          result.kills.try_emplace(subject.name, Kill{n + 1, cases[n].label, ""});
        everywhere &= result.kills.contains(subject.name);
      }
      return everywhere;
    });
  }
  return by_rule;
}

}  // namespace attest::mutants
