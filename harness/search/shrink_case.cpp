#include "harness/search/shrink_case.h"

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "harness/base/user_error.h"
#include "harness/cases/case_file.h"
#include "harness/search/neighbours.h"
#include "harness/search/search_budget.h"
#include "harness/search/shrink.h"
#include "harness/search/shrink_file.h"
#include "harness/verdict/long_repro.h"
#include "harness/verdict/prepared_case.h"
#include "reference/options/case_line.h"

namespace attest {

bool check_fails(const std::function<Verdict()>& check, const std::string& cause) {
  try {
    const Verdict verdict = check();
    return is_failure(verdict) && (cause.empty() || verdict.cause.text() == cause);
  } catch (const UnusableBackend&) {
    throw;
  } catch (const UserError&) {
    return false;  // data that the type can't hold
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Verdict check_line(const Case& source, Backend& backend, int threads, const PlanSteps& steps) {
  PreparedCase prepared(source, {&backend}, threads);
  if (!steps.empty()) prepared.take_these_steps(steps);
  return prepared.check(backend);
}

Verdict diagnose_line(const Case& source, Backend& backend, int threads, const PlanSteps& steps) {
  PreparedCase prepared(source, {&backend}, threads);
  if (!steps.empty()) prepared.take_these_steps(steps);
  prepared.diagnose_failures();
  return prepared.check(backend);
}

namespace {

/// nullopt where no fresh backend is to be had.
std::optional<Verdict> check_fresh(const Case& source, int threads, const ShrinkOptions& options) {
  const std::unique_ptr<Backend> backend = made_fresh(options.fresh);
  if (!backend) return std::nullopt;
  return check_line(source, *backend, threads, options.steps);
}

ShrunkCase shrink_line(const Case& source, Backend& backend, int threads, SearchBudget time,
                       const ShrinkOptions& options) {
  // Another way of failing is another bug, which has a case of its own.
  const auto smallest = [&](const std::function<Verdict(const Case&)>& check) {
    const Verdict before = check(source);
    return shrink(
        source.problem,
        [&](const Problem& problem) {
          time.count();
          return check_fails([&] { return check(case_from_line(print_case(problem))); },
                             is_failure(before) ? before.cause.text() : "");
        },
        [&] { return time.left(); });
  };
  const auto check_here = [&](const Case& one) { return check_line(one, backend, threads, options.steps); };
  const auto check_anew = [&](const Case& one) {
    std::optional<Verdict> verdict = check_fresh(one, threads, options);
    return verdict ? std::move(*verdict) : check_here(one);
  };
  const auto diagnose_anew = [&](const Case& one) {
    const std::unique_ptr<Backend> other = made_fresh(options.fresh);
    return diagnose_line(one, other ? *other : backend, threads, options.steps);
  };
  Shrunk shrunk = smallest(check_here);
  ShrunkCase result{case_from_line(print_case(shrunk.problem)), {}, shrunk.tried, 0, shrunk.finished};
  result.verdict = diagnose_anew(result.source);
  if (options.fresh && !is_failure(result.verdict) && time.left() && is_failure(check_anew(source))) {
    // What one candidate left behind made the next one wrong.
    shrunk = smallest(check_anew);
    result.source = case_from_line(print_case(shrunk.problem));
    result.tried += shrunk.tried;
    result.finished = shrunk.finished;
    result.verdict = diagnose_anew(result.source);
  }
  result.seconds = time.spent();
  return result;
}

ShrunkCase shrink_file_case(const Case& source, Backend& backend, int threads, SearchBudget time,
                            const std::filesystem::path& out) {
  const auto plain = plain_file(source);
  if (!plain) {
    throw UserError(source.label + ": files with block masks or of other operators than attention are not shrunk");
  }
  time.count();
  const Verdict before = check_line(case_from_tensors(*plain, source.label), backend, threads);
  const auto fails_too = [&](const Case& one) {
    time.count();
    const Verdict verdict = check_line(one, backend, threads);
    return is_failure(verdict) && verdict.cause.text() == before.cause.text();
  };
  if (!is_failure(before)) {
    throw UserError(source.label +
                    ": the failure is one against the file's own results, or of how its tensors lie, and goes away "
                    "without them");
  }
  const ShrunkFile shrunk = shrink_file(*plain, fails_too, [&] { return time.left(); });
  write_safetensors(out, shrunk.file);
  ShrunkCase result{case_from_file(out), {}, shrunk.tried, 0, shrunk.finished};
  result.verdict = diagnose_line(result.source, backend, threads);
  result.seconds = time.spent();
  return result;
}

}  // namespace

ShrunkCase shrink_case(const Case& source, Backend& backend, int threads, double budget, const ShrinkOptions& options) {
  const SearchBudget time(budget, options.progress);
  ShrunkCase shrunk = source.from_file ? shrink_file_case(source, backend, threads, time, options.out)
                                       : shrink_line(source, backend, threads, time, options);
  if (is_failure(shrunk.verdict)) shrunk.verdict.not_needed = options_not_needed(source.problem, shrunk.source.problem);
  keep_long_lines(shrunk.verdict);
  return shrunk;
}

}  // namespace attest
