#include "harness/shrink_case.h"

#include <chrono>

#include "harness/interrupted.h"
#include "harness/run_case.h"
#include "harness/shrink.h"
#include "harness/user_error.h"
#include "reference/case_line.h"

namespace attest {

Verdict check_line(const Case& source, Backend& backend, int threads) {
  return PreparedCase(source, {&backend}, threads).check(backend);
}

ShrunkCase shrink_case(const Case& source, Backend& backend, int threads, double budget) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const auto fails = [&](const Problem& problem) {
    try {
      return is_failure(check_line(case_from_line(print_case(problem)), backend, threads));
    } catch (const UserError&) {
      return false;  // data that the type can't hold: no case at all
    }
  };
  const Shrunk shrunk = shrink(source.problem, fails, [&] { return !interrupted && seconds() < budget; });
  ShrunkCase result{case_from_line(print_case(shrunk.problem)), {}, shrunk.tried, 0, shrunk.finished};
  result.verdict = check_line(result.source, backend, threads);
  result.seconds = seconds();
  return result;
}

}  // namespace attest
