#include "harness/verdict/prepared_case.h"

#include <fmt/format.h>

#include "backends/refusal.h"
#include "harness/base/stopwatch.h"
#include "harness/base/text.h"
#include "harness/cases/memory.h"
#include "harness/comparison/compare.h"
#include "harness/verdict/committed_lists.h"
#include "harness/verdict/golden.h"
#include "harness/verdict/plan_walk.h"
#include "reference/work.h"

namespace attest {
namespace {

void set_failure(Verdict& verdict, std::string cause, std::string reason) {
  verdict.status = Status::fail;
  verdict.cause = std::move(cause);
  verdict.reason = std::move(reason);
}

/// Cases this small are rehearsed: the plan runs once before on inputs whose mask hides nothing, and its result then is
/// thrown away. What a run leaves behind in a plan must not show in the next.
constexpr double kRehearsedMultiplyAdds = 20'000;
constexpr std::size_t kRehearsedMaskBytes = 1 << 16;

void rehearse(Plan& plan, const Problem& problem, Inputs inputs) {
  if (dense_multiply_adds(problem) > kRehearsedMultiplyAdds) return;
  std::vector<std::byte> mask;
  if (inputs.mask) {
    const std::size_t bytes = span_bytes(*inputs.mask);
    if (bytes > kRehearsedMaskBytes) return;
    mask.assign(bytes, inputs.mask->additive ? std::byte{0} : std::byte{1});
    inputs.mask->data = mask.data();
  }
  walk(plan, inputs, nullptr);
}

/// The second tier: within the bound, but so far off that independent roundings don't explain it.
bool is_suspect(const Expectation& expectation, std::size_t producer, const GuardedOutputs& outputs, Verdict& verdict) {
  const auto deviation = largest_deviation(expectation, producer, outputs);
  if (!deviation) return false;
  verdict.error_over_sigma = deviation->ratio;
  if (!(deviation->ratio > kSuspectDeviations)) return false;
  verdict.worst = deviation->element;
  verdict.status = Status::suspect;
  verdict.cause = "further off than roundings explain";
  const auto& [output, at, got, expected, bound] = deviation->element;
  verdict.reason = fmt::format(
      "within its bound, but {:.1f} standard deviations off where {} is suspect: {}[{},{},{},{}] = {:.9g}, expected "
      "{:.9g}",
      deviation->ratio, kSuspectDeviations, output, at[0], at[1], at[2], at[3], got, expected);
  return true;
}

}  // namespace

std::vector<Producer> producers_of(const Case& source, const std::vector<Backend*>& backends) {
  std::vector<Producer> producers;
  for (Backend* backend : backends) {
    try {
      if (!refusal_of(*backend, source.problem)) {
        producers.push_back({backend->arithmetic(source.problem), source.problem.dtype});
      }
    } catch (const std::exception&) {
      // The same call in check() becomes this backend's failed verdict.
      continue;
    }
  }
  if (source.golden && source.golden->producer) producers.push_back({*source.golden->producer, source.problem.dtype});
  return producers;
}

std::string repro_command(const Case& source, const std::string& backend) {
  const std::string what = source.from_file ? shell_quoted(source.label) : "'" + source.label + "'";
  return "attest check --backend " + backend + " " + what;
}

PreparedCase::PreparedCase(const Case& source, const std::vector<Backend*>& backends, int threads)
    : PreparedCase(source, producers_of(source, backends), threads) {}

PreparedCase::PreparedCase(const Case& source, const std::vector<Producer>& producers, int threads) : source_(source) {
  check_memory(source.problem, source.label);
  if (!source.inputs) made_ = make_inputs(source.problem);
  views_ = source.inputs ? source.inputs->views() : made_.views();
  expectation_ = expect(source.problem, views_, producers, threads);
}

Verdict PreparedCase::check(Backend& backend, Plan* plan) const {
  const Problem& p = source_.problem;
  Verdict verdict;
  verdict.case_line = source_.label;
  verdict.dtype = p.dtype;
  verdict.rows = p.batch * p.query_heads * p.query_length;
  try {
    verdict.backend = backend.identity().name;
    verdict.repro = repro_command(source_, verdict.backend);
    if (const auto refusal = refusal_of(backend, p)) {
      verdict.status = Status::refused;
      verdict.reason = refusal->reason;
      if (refusal->reason.empty()) set_failure(verdict, "refused without a reason", "refused without a reason");
      return verdict;
    }
    const std::size_t producer = expectation_.number_of({backend.arithmetic(p), p.dtype});
    GuardedOutputs outputs(p);
    std::unique_ptr<Plan> own;
    double prepare = 0;
    if (!plan) {
      prepare = timed([&] { own = make_plan(backend, p); });
      plan = own.get();
      rehearse(*plan, p, views_);
    }
    verdict.seconds = walk(*plan, views_, &outputs);
    verdict.seconds.prepare = prepare;
    verdict.rows_checked = static_cast<std::int64_t>(expectation_.rows.size());

    const Comparison comparison = compare_outputs(p, expectation_, expectation_.bounds[producer], outputs);
    if (comparison.compared() > 0) verdict.error_over_bound = comparison.error_over_bound();
    verdict.worst = comparison.worst();
    verdict.status = Status::pass;
    if (const std::string guards = outputs.inspect(); !guards.empty()) {
      set_failure(verdict, guards.starts_with("left") ? "output left unwritten" : "wrote outside its output", guards);
    } else if (comparison.failed()) {
      set_failure(verdict, comparison.cause(), comparison.describe());
    } else if (is_suspect(expectation_, producer, outputs, verdict)) {
      apply_waiver(verdict);
    } else if (comparison.mistrusted()) {
      verdict.status = Status::mistrusted;
      verdict.reason = "nearly every bound is infinite or as large as the value: this case proves nothing";
    }
    if (has_golden() && !is_failure(verdict)) check_golden(backend, verdict);
  } catch (const CaseFault& fault) {
    set_failure(verdict, fault.cause(), fault.what());
    verdict.status = fault.status();
  } catch (const std::exception& error) {
    set_failure(verdict, "threw", std::string("threw: ") + error.what());
  } catch (...) {
    set_failure(verdict, "threw", "threw something that is no std::exception");
  }
  return verdict;
}

void PreparedCase::check_golden(Backend& backend, Verdict& verdict) const {
  const GoldenCheck check(source_, views_);
  const Comparison comparison = check.compare_backend(backend);
  if (!comparison.failed()) return;
  verdict.worst = comparison.worst();
  verdict.error_over_bound = comparison.error_over_bound();
  set_failure(verdict, "differs from the file's results", "differs from the file: " + comparison.describe());
}

Verdict PreparedCase::check_reference() const {
  Verdict verdict;
  verdict.case_line = source_.label;
  verdict.backend = "reference";
  verdict.repro = "attest check " + shell_quoted(source_.label);
  verdict.rows = verdict.rows_checked =
      source_.problem.batch * source_.problem.query_heads * source_.problem.query_length;
  const GoldenCheck check(source_, views_);
  const Comparison comparison = check.compare_reference();
  verdict.error_over_bound = comparison.error_over_bound();
  verdict.worst = comparison.worst();
  verdict.status = Status::pass;
  if (comparison.failed()) {
    set_failure(verdict, "differs from the file's results", "the reference differs: " + comparison.describe());
  } else if (comparison.compared() == 0) {
    set_failure(verdict, "no known stage", "the file names no stage that is known here");
  }
  return verdict;
}

}  // namespace attest
