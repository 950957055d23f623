#include "harness/run/failure_shrinking.h"

#include "harness/base/user_error.h"
#include "harness/search/shrink_case.h"

namespace attest {

namespace {

constexpr std::size_t kMaxShrunk = 3;
constexpr double kShrinkSeconds = 2;

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
                                  const std::function<void(const Verdict&, const Verdict&)>& found) {
  for (const auto& [key, failure] : failures_) {
    if (failure.source->from_file && folder.empty()) {
      ++unshrunk_files_;
      continue;
    }
    try {
      const std::filesystem::path place = place_in(folder, failure.verdict);
      found(failure.verdict, shrink_case(*failure.source, *failure.backend, threads, kShrinkSeconds, place).verdict);
    } catch (const UserError& error) {
      notes_.emplace_back(error.what());
    }
  }
}

}  // namespace attest
