#include "harness/run/failure_shrinking.h"

#include <algorithm>

#include "harness/base/user_error.h"
#include "harness/search/shrink_case.h"

namespace attest {

namespace {

constexpr std::size_t kMaxShrunk = 3;
constexpr double kShrinkSeconds = 2;
constexpr double kPairSeconds = 5;  ///< each try takes two fresh workers

/// Depends on what came before, on chance or on how a whole run looks at it: no smaller line by itself would show it.
bool is_of_this_run(Cause cause) {
  switch (cause) {
    case Cause::after_another_case:
    case Cause::fresh_worker_only:
    case Cause::not_every_time:
    case Cause::at_the_same_time:
    case Cause::more_threads_than_cores:
    case Cause::other_threads:
    case Cause::run_again:
    case Cause::without_batch: return true;
    default: return false;
  }
}

std::filesystem::path place_in(const std::filesystem::path& folder, const Verdict& verdict) {
  const std::string stem = std::filesystem::path(verdict.case_line).stem().string();
  return folder / (stem + "-" + verdict.backend + ".safetensors");
}

}  // namespace

void FailureShrinking::remember(const Case& source, Backend& backend, const Verdict& verdict) {
  if (failures_.size() >= kMaxShrunk) return;
  failures_.try_emplace(verdict.backend + " " + verdict.cause.text(), Failure{&source, &backend, verdict});
}

void FailureShrinking::shrink_all(int threads, const std::filesystem::path& folder,
                                  const std::function<void(const Verdict&, const Verdict&)>& found,
                                  const std::function<std::unique_ptr<Backend>(const std::string&)>& fresh,
                                  const std::function<const Case*(const std::string&)>& case_named,
                                  const std::function<double()>& seconds_left) {
  for (const auto& [key, failure] : failures_) {
    const double left = seconds_left ? seconds_left() : kPairSeconds;
    if (left <= 0) return;
    if (failure.source->from_file && folder.empty()) {
      ++unshrunk_files_;
      continue;
    }
    try {
      const Verdict& verdict = failure.verdict;
      const MakeFresh anew = fresh ? MakeFresh([&] { return fresh(verdict.backend); }) : MakeFresh();
      const Case* earlier = verdict.after.empty() || !case_named ? nullptr : case_named(verdict.after);
      ShrunkCase small;
      if (earlier && !earlier->from_file && !failure.source->from_file) {
        small = shrink_pair(*earlier, *failure.source, threads, std::min(kPairSeconds, left), anew);
      } else if (!is_of_this_run(verdict.cause.kind)) {
        small = shrink_case(*failure.source, *failure.backend, threads, std::min(kShrinkSeconds, left),
                            {place_in(folder, verdict), {}, anew, steps_from_text(verdict.steps)});
      }
      if (small.verdict.case_line.empty()) continue;
      if (is_failure(small.verdict))
        found(verdict, small.verdict);
      else
        notes_.push_back(verdict.case_line + " on " + verdict.backend + ": run again by itself it is right");
    } catch (const UserError& error) {
      notes_.emplace_back(error.what());
    }
  }
}

}  // namespace attest
