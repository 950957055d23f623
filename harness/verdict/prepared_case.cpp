#include "harness/verdict/prepared_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "harness/base/backend_source.h"
#include "harness/base/crash_message.h"
#include "harness/base/stopwatch.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/memory.h"
#include "harness/comparison/cache_check.h"
#include "harness/tuning/parameters.h"
#include "harness/verdict/committed_lists.h"
#include "harness/verdict/golden.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/printed_command.h"
#include "harness/verdict/stated_conventions.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

void set_failure(Verdict& verdict, FailureCause cause, std::string reason) {
  verdict.status = Status::fail;
  verdict.cause = std::move(cause);
  verdict.reason = std::move(reason);
}

/// Calls walk(), which gives a judgement; what it throws, other than CaseFault, is one as well.
template <class Walk>
Judgement judgement_of(const Walk& walk) {
  Judgement thrown;
  try {
    return walk();
  } catch (const CaseFault&) {
    throw;
  } catch (const UnusableBackend&) {
    throw;
  } catch (const std::exception& error) {
    thrown.reason = std::string("threw: ") + error.what();
  } catch (...) {
    thrown.reason = "threw something that is no std::exception";
  }
  thrown.cause = {Cause::threw};
  return thrown;
}

/// The second tier: within the bound, but so far off that independent roundings don't explain it.
bool is_suspect(const Call& call, const Expectation& expectation, std::size_t producer, const GuardedOutputs& outputs,
                Verdict& verdict) {
  const auto deviation = largest_deviation(call, expectation, producer, outputs);
  if (!deviation) return false;
  verdict.error_over_sigma = deviation->ratio;
  if (!(deviation->ratio > kSuspectDeviations)) return false;
  verdict.worst = deviation->element;
  verdict.status = Status::suspect;
  verdict.cause = {Cause::beyond_roundings};
  const auto& [output, at, got, expected, bound] = deviation->element;
  verdict.reason = fmt::format(
      "within its bound, but {:.1f} standard deviations off where {} is suspect: {} = {:.9g}, expected {:.9g}",
      deviation->ratio, kSuspectDeviations, place_text(output, at), got, expected);
  return true;
}

/// As a command takes it.
std::string argument_of(const Case& source) {
  return source.from_file ? shell_quoted(source.label) : "'" + source.label + "'";
}

/// The arithmetic of each backend that supports the case, and that of a file's own results.
std::vector<Producer> producers_of(const Case& source, const std::vector<AskedBackend>& backends) {
  std::vector<Producer> producers;
  for (const AskedBackend& one : backends) {
    if (!one.thrown && !one.answers.refusal) producers.push_back({one.answers.arithmetic, {}});
  }
  if (source.golden && source.golden->producer) producers.push_back({*source.golden->producer, {}});
  return producers;
}

void depends(Judgement& judgement, Cause cause, std::string reason) {
  judgement.state_matters = true;
  judgement.cause = {cause};
  judgement.reason = std::move(reason);
}

}  // namespace

std::string repro_command(const Case& source, const Identity& backend, const std::string& command) {
  return printed_command(command, backend, argument_of(source), source.label);
}

std::string repro_with(const std::string& option, const Case& source, const std::string& command) {
  const std::size_t at = command.rfind(argument_of(source));
  return at == std::string::npos ? command : std::string(command).insert(at, option + " ");
}

std::string repro_after(const Case& earlier, const Case& source, const std::string& command) {
  return repro_with(argument_of(earlier), source, command);
}

PreparedCase::PreparedCase(const Case& source, const std::vector<Backend*>& backends, int threads)
    : PreparedCase(source, ask_all(source, backends), threads) {}

PreparedCase::PreparedCase(const Case& source, std::vector<AskedBackend> backends, int threads)
    : source_(source), threads_(threads), backends_(std::move(backends)) {
  const std::vector<Producer> producers = producers_of(source, backends_);
  if (producers.empty() && !source.golden) return;  // refused by all: there will be nothing to compare
  check_memory(source.problem, source.label);
  if (!source.inputs) made_ = make_inputs(source.problem, threads);
  views_ = data().views();
  expectation_ = expect(source.problem, views_, producers, threads);
}

Answers PreparedCase::answers_of(const Backend& backend) const {
  const auto known = std::find_if(backends_.begin(), backends_.end(),
                                  [&](const AskedBackend& one) { return one.backend == &backend; });
  if (known == backends_.end()) return ask(backend, source_.problem);
  if (known->thrown) std::rethrow_exception(known->thrown);
  return known->answers;
}

Verdict PreparedCase::check(Backend& backend, Plan* plan, const Inputs* elsewhere) const {
  const Problem& p = source_.problem;
  Verdict verdict;
  verdict.case_line = source_.label;
  if (source_.from_file) verdict.call_line = print_case(p);
  verdict.dtype = p.call.dtype;
  verdict.rows = p.call.batch * p.call.query_heads * p.call.query_length;
  try {
    const Identity identity = identity_of(backend);
    verdict.backend = identity.name;
    const CrashContext work(verdict.backend, source_.label);
    verdict.repro = repro_command(source_, identity);
    const Answers answers = answers_of(backend);
    if (const auto& refusal = answers.refusal) {
      verdict.status = Status::refused;
      verdict.reason = refusal->reason;
      verdict.cause = {cause_of(refusal->cause)};
      if (refusal->reason.empty()) set_failure(verdict, {Cause::refused_without_reason}, "refused without a reason");
      return verdict;
    }
    const Standard standard = standard_of(answers);
    const auto kept = std::make_shared<GuardedOutputs>(p);
    GuardedOutputs& outputs = *kept;
    Judgement judgement;
    if (plan) {
      verdict.seconds = execute(*plan, elsewhere ? *elsewhere : views_, &outputs);
      judgement = judge_results(outputs, standard);
    } else {
      judgement = judge_with_states(backend, standard, outputs, verdict.seconds);
    }
    verdict.rows_checked = static_cast<std::int64_t>(expectation_.rows.size());

    const Comparison& comparison = judgement.comparison;
    if (comparison.compared() > 0) verdict.error_over_bound = comparison.error_over_bound();
    verdict.bias = comparison.biases();
    verdict.accuracy = comparison.accuracies();
    verdict.worst = comparison.worst();
    verdict.error_map = judgement.map;
    verdict.status = Status::pass;
    if (judgement.wrong()) {
      set_failure(verdict, judgement.cause, judgement.reason);
      verdict.status = judgement.status;
      verdict.steps = judgement.steps;
      verdict.repeats = judgement.repeats;
      if (!verdict.steps.empty())
        verdict.repro = repro_with("--steps " + shell_quoted(verdict.steps), source_, verdict.repro);
      diagnose(outputs, standard.producer, verdict);
    } else if (!judgement.convention.empty()) {
      verdict.status = Status::convention;
      verdict.reason = "not as attest does it, and as the backend states: " + judgement.convention;
      verdict.error_over_bound.reset();
      verdict.worst.reset();
    } else if (is_suspect(source_.problem, expectation_, expectation_.index_of(standard.producer), outputs, verdict)) {
      apply_waiver(verdict);
    } else if (comparison.inconclusive()) {
      verdict.status = Status::inconclusive;
      verdict.reason = "nearly every bound is infinite or as large as the value: this case proves nothing";
    } else if (std::string little = little_proved(verdict.accuracy); !little.empty()) {
      verdict.status = Status::weak;
      verdict.reason = std::move(little);
    }
    if (keep_ && is_failure(verdict)) keep_(verdict, answers.arithmetic, kept);
    if (has_golden() && !is_failure(verdict) && judgement.convention.empty()) check_golden(backend, answers, verdict);
  } catch (const CaseFault& fault) {
    set_failure(verdict, fault.cause(), fault.what());
    verdict.status = fault.status();
    verdict.repeats = fault.repeats();
  } catch (const UnusableBackend&) {
    throw;
  } catch (const std::exception& error) {
    set_failure(verdict, {Cause::threw}, std::string("threw: ") + error.what());
  } catch (...) {
    set_failure(verdict, {Cause::threw}, "threw something that is no std::exception");
  }
  return verdict;
}

Judgement PreparedCase::judge_results(const GuardedOutputs& outputs, const Standard& standard) const {
  Judgement judgement =
      judge_as_stated(source_.problem, views_, expectation_, standard, outputs, {.mapped = maps_, .threads = threads_});
  if (OutputFault cache = find_cache_fault(source_.problem, views_, outputs); !cache.empty()) {
    judgement.cause = std::move(cache.cause);
    judgement.reason = std::move(cache.reason);
    judgement.convention.clear();
  }
  return judgement;
}

void PreparedCase::diagnose(const GuardedOutputs& outputs, const Producer& producer, Verdict& verdict) const {
  if (!diagnoses_ || !verdict.worst || !is_of_numbers(verdict.cause)) return;
  if (std::isnan(verdict.worst->got)) return;  // every mistake that lets a NaN in gives the same
  MistakeFinder own;
  MistakeFinder& finder = finder_of_ ? finder_of_(verdict.backend) : own;
  verdict.mistakes = finder.find(source_.problem, views_, producer, outputs, *verdict.worst, threads_);
  if (!verdict.mistakes.empty()) verdict.reason += "; " + mistakes_text(verdict.mistakes);
}

Judgement PreparedCase::judge_with_states(Backend& backend, const Standard& standard, GuardedOutputs& outputs,
                                          StepSeconds& seconds) const {
  StateSteps steps = once_ ? StateSteps{} : state_steps(source_.problem, steps_seed_);
  if (!given_steps_.empty()) steps.life = true;
  const bool life = std::exchange(steps.life, false);
  Judgement judgement = judgement_of([&] {
    StateCheck state(backend, source_.problem, data(), steps);
    seconds = state.execute(outputs);
    Judgement first = judge_results(outputs, standard);
    if (first.cause.kind == Cause::unwritten) return judge_unwritten(state, standard, std::move(first));
    return first.wrong() ? first : judge_again(state, steps, standard, outputs, std::move(first));
  });
  if (life && !judgement.wrong()) return judge_life(backend, standard, std::move(judgement));
  if (judgement.state_matters || !judgement.wrong()) return judgement;
  const std::string state = state_that_matters(backend, steps, standard);
  if (state.empty()) return judgement;
  judgement.cause = {Cause::fresh_plan_only};
  judgement.reason = "right in a fresh plan, wrong " + state + ": " + judgement.reason;
  return judgement;
}

/// A right result once more: downloaded a second time, and computed in another thread.
Judgement PreparedCase::judge_again(StateCheck& state, StateSteps steps, const Standard& standard,
                                    const GuardedOutputs& outputs, Judgement first) const {
  if (!steps.warm_up) return first;
  GuardedOutputs again(source_.problem);
  state.download_again(again);
  if (const std::string difference = again.difference_from(outputs); !difference.empty()) {
    depends(first, Cause::second_download, "a second download of the same result differs: " + difference);
    return first;
  }
  if (!steps.interleaved) return first;
  again.reset();
  Judgement elsewhere = judgement_of([&] {
    state.execute_in_another_thread(again);
    return again.difference_from(outputs).empty() ? Judgement{} : judge_results(again, standard);
  });
  if (!elsewhere.wrong()) {
    state.require_interleaved();
    return first;
  }
  depends(elsewhere, Cause::another_thread,
          "right in the thread that made the plan, wrong in another: " + elsewhere.reason);
  return elsewhere;
}

Judgement PreparedCase::judge_life(Backend& backend, const Standard& standard, Judgement first) const {
  constexpr double kShortenSeconds = 1;
  constexpr int kMostTries = 150;
  constexpr std::int64_t kRepeats = 5;
  const std::uint64_t seed = life_seed(source_.problem, steps_seed_);
  std::optional<Expectation> shared;  // of the case's data where two tensors have one memory: always the same
  const auto judge_shared = [&](const Inputs& inputs, const GuardedOutputs& outputs) {
    if (!shared) shared = expect(source_.problem, inputs, {standard.producer}, threads_);
    return judge_as_stated(source_.problem, inputs, *shared, standard, outputs, {.threads = threads_});
  };
  std::optional<CaseFault> fault;
  Judgement wrong;
  const auto fails = [&](const PlanSteps& steps) {
    fault.reset();
    wrong = {};
    try {
      wrong = judgement_of([&] {
        Judgement found;
        take_steps(backend, source_.problem, data(), steps, seed,
                   [&](const GuardedOutputs& outputs, const Inputs* others) {
                     found = others ? judge_shared(*others, outputs) : judge_results(outputs, standard);
                     return !found.wrong();
                   });
        return found;
      });
    } catch (const CaseFault& thrown) {
      if (thrown.cause().kind == Cause::ended_by_user) throw;
      fault = thrown;
    }
    return fault || wrong.wrong();
  };
  const PlanSteps all = given_steps_.empty() ? draw_steps(seed) : given_steps_;
  if (!fails(all)) return first;
  std::pair seen(wrong, fault);
  int tries = fault && fault->status() == Status::timeout ? kMostTries : 0;
  const Stopwatch spent;
  PlanSteps steps =
      shortest_steps(all, fails, [&] { return ++tries < kMostTries && spent.seconds() < kShortenSeconds; });
  const bool again = fails(steps);
  if (again)
    seen = {wrong, fault};
  else
    steps = all;
  auto& [judgement, thrown] = seen;
  if (thrown) {
    judgement = {};
    judgement.status = thrown->status();
    judgement.reason = thrown->what();
  }
  judgement.steps = steps_text(steps);
  std::string how = "wrong";
  if (!again) {
    Repeats repeats{1, 1};
    for (; repeats.runs < kRepeats; ++repeats.runs) repeats.wrong += fails(steps);
    how = repeats.text();
    judgement.repeats = repeats;
    judgement.status = Status::flaky;
  }
  depends(judgement, again ? Cause::among_steps : Cause::not_every_time,
          fmt::format("right by itself, {} among these steps of three plans (seed {}): {}: {}", how, seed,
                      judgement.steps, judgement.reason));
  return judgement;
}

/// Elements hold what they held before. Once more with zeros there: what is right now is added and not written.
Judgement PreparedCase::judge_unwritten(StateCheck& state, const Standard& standard, Judgement first) const {
  GuardedOutputs zeros(source_.problem);
  zeros.reset_to_zeros();
  state.download_again(zeros);
  const Judgement on_zeros = judge_results(zeros, standard);
  if (!on_zeros.comparison.failed()) {
    depends(first, Cause::counts_on_zeros,
            "right only where the output held zeros before (added to, or never written): " + first.reason);
  }
  return first;
}

/// The plan is made anew, with each of the steps by itself: which of them makes it wrong. Empty where it is wrong
/// without any.
std::string PreparedCase::state_that_matters(Backend& backend, StateSteps steps, const Standard& standard) const {
  const auto right = [&](StateSteps some) {
    try {
      return !judgement_of([&] {
                GuardedOutputs outputs(source_.problem);
                StateCheck state(backend, source_.problem, data(), some);
                state.execute(outputs);
                return judge_results(outputs, standard);
              }).wrong();
    } catch (const CaseFault&) {
      return false;
    }
  };
  if (steps == StateSteps{} || !right({})) return "";
  if (!right({.junk_memory = true})) return "in memory that held no zeros";
  if (!right({.warm_up = true})) return "in one that ran before with other data";
  if (!right({.interleaved = true})) return "beside other plans of this backend";
  return "after all steps before it together, right after each of them";
}

std::string PreparedCase::why_wrong(const Answers& answers, const Call& call, const Inputs& inputs,
                                    const GuardedOutputs& outputs) const {
  const Standard standard = standard_of(answers);
  const auto& known = expectation_.producers;
  const bool own =
      call == source_.problem.call && std::find(known.begin(), known.end(), standard.producer) != known.end();
  const Judgement judgement = own ? judge_results(outputs, standard) : [&] {
    Problem problem{call, {}};
    problem.set_seed(call.dropout_seed);
    const Expectation other = expect(problem, inputs, {standard.producer}, threads_);
    return judge_as_stated(problem, inputs, other, standard, outputs, {.threads = threads_});
  }();
  return judgement.wrong() ? judgement.reason : "";
}

void PreparedCase::require_right(const Answers& answers, const Call& call, const Inputs& inputs,
                                 const GuardedOutputs& outputs, Cause cause) const {
  const std::string wrong = why_wrong(answers, call, inputs, outputs);
  if (!wrong.empty()) throw CaseFault(Status::fail, {cause}, std::string(name_of(cause)) + ": " + wrong);
}

void PreparedCase::check_golden(Backend& backend, const Answers& answers, Verdict& verdict) const {
  const GoldenCheck check(source_, views_);
  const Comparison comparison = check.compare_backend(backend, answers);
  if (!comparison.failed()) return;
  verdict.worst = comparison.worst();
  verdict.error_over_bound = comparison.error_over_bound();
  set_failure(verdict, {Cause::differs_from_file}, "differs from the file: " + comparison.describe());
}

Verdict PreparedCase::check_reference() const {
  Verdict verdict;
  verdict.case_line = source_.label;
  verdict.backend = "reference";
  verdict.repro = command_with("check", "") + " " + shell_quoted(source_.label);
  verdict.rows = verdict.rows_checked =
      source_.problem.call.batch * source_.problem.call.query_heads * source_.problem.call.query_length;
  const GoldenCheck check(source_, views_);
  const Comparison comparison = check.compare_reference();
  verdict.error_over_bound = comparison.error_over_bound();
  verdict.worst = comparison.worst();
  verdict.status = Status::pass;
  if (comparison.failed()) {
    set_failure(verdict, {Cause::differs_from_file}, "the reference differs: " + comparison.describe());
  } else if (comparison.compared() == 0) {
    set_failure(verdict, {Cause::no_known_stage}, "the file names no stage that is known here");
  }
  return verdict;
}

}  // namespace attest
