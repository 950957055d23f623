#include "harness/search/shrink_case.h"

#include <chrono>
#include <functional>

#include "harness/base/interrupted.h"
#include "harness/base/user_error.h"
#include "harness/cases/case_file.h"
#include "harness/search/shrink.h"
#include "harness/search/shrink_file.h"
#include "harness/verdict/prepared_case.h"
#include "reference/case_line.h"

namespace attest {

Verdict check_line(const Case& source, Backend& backend, int threads) {
  return PreparedCase(source, {&backend}, threads).check(backend);
}

namespace {

using ShrinkProgress = std::function<void(std::size_t, double)>;

/// Asks whether there is time left: `budget` seconds from now, unless interrupted before.
class Budget {
 public:
  Budget(double seconds, const ShrinkProgress& progress) : budget_(seconds), progress_(progress) {}
  double spent() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  bool left() const { return !interrupted && spent() < budget_; }
  /// One case more is about to be tried.
  void count() {
    if (progress_) progress_(tried_, budget_ - spent());
    ++tried_;
  }

 private:
  double budget_;
  const ShrinkProgress& progress_;
  std::size_t tried_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

ShrunkCase shrink_line(const Case& source, Backend& backend, int threads, Budget time) {
  const auto fails = [&](const Problem& problem) {
    time.count();
    try {
      return is_failure(check_line(case_from_line(print_case(problem)), backend, threads));
    } catch (const UserError&) {
      return false;  // data that the type can't hold: no case at all
    }
  };
  const Shrunk shrunk = shrink(source.problem, fails, [&] { return time.left(); });
  ShrunkCase result{case_from_line(print_case(shrunk.problem)), {}, shrunk.tried, 0, shrunk.finished};
  result.verdict = check_line(result.source, backend, threads);
  result.seconds = time.spent();
  return result;
}

ShrunkCase shrink_file_case(const Case& source, Backend& backend, int threads, Budget time,
                            const std::filesystem::path& out) {
  const auto plain = plain_file(source);
  if (!plain) {
    throw UserError(source.label + ": files with block masks or of other operators than attention are not shrunk");
  }
  const auto fails = [&](const Case& one) {
    time.count();
    return is_failure(check_line(one, backend, threads));
  };
  if (!fails(case_from_tensors(*plain, source.label))) {
    throw UserError(source.label +
                    ": the failure is one against the file's own results, or of how its tensors lie, and goes away "
                    "without them");
  }
  const ShrunkFile shrunk = shrink_file(*plain, fails, [&] { return time.left(); });
  write_safetensors(out, shrunk.file);
  ShrunkCase result{case_from_file(out), {}, shrunk.tried, 0, shrunk.finished};
  result.verdict = check_line(result.source, backend, threads);
  result.seconds = time.spent();
  return result;
}

}  // namespace

ShrunkCase shrink_case(const Case& source, Backend& backend, int threads, double budget,
                       const std::filesystem::path& out, const ShrinkProgress& progress) {
  const Budget time(budget, progress);
  return source.from_file ? shrink_file_case(source, backend, threads, time, out)
                          : shrink_line(source, backend, threads, time);
}

}  // namespace attest
