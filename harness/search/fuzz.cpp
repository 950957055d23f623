#include "harness/search/fuzz.h"

#include <algorithm>
#include <chrono>

#include "harness/base/interrupted.h"
#include "harness/base/user_error.h"
#include "harness/cases/option_values.h"
#include "harness/cases/random_case.h"
#include "harness/search/shrink.h"
#include "harness/verdict/prepared_case.h"
#include "reference/case_line.h"
#include "reference/options.h"

namespace attest {
namespace {

constexpr std::size_t kPool = 64;             ///< cases whose neighbours are tried
constexpr double kShrinkSeconds = 2;          ///< for one failure
constexpr std::size_t kMaxShrunkOfCause = 8;  ///< failures with one cause that are made small to tell them apart

/// A problem beside `from`: one size, option or type different. It may be no case.
Problem neighbour(const Problem& from, Random& random) {
  Problem p = from;
  if (random.below(2) == 0) {
    std::int64_t Call::*const sizes[] = {&Call::query_length, &Call::key_length, &Call::key_dim, &Call::value_dim};
    const std::size_t n = random.below(4);
    const std::int64_t min = n < 2 ? 0 : 1, step = random.below(2) == 0 ? 1 : -1;
    p.*sizes[n] = std::max(min, p.*sizes[n] + step);
    return p;
  }
  if (random.below(4) == 0) {
    const std::vector<Problem> simpler = simpler_problems(p);
    return simpler.empty() ? p : simpler[random.below(simpler.size())];
  }
  const Option& option = random.pick(options());
  const std::optional<std::string> value = option.has(p.op) ? random_value(option, p, random) : std::nullopt;
  if (!value) return p;
  return with_option(p, option, *value).value_or(p);
}

class Fuzzer {
 public:
  Fuzzer(Backend& backend, const FuzzSettings& settings)
      : backend_(backend), settings_(settings), random_(settings.seed), start_(std::chrono::steady_clock::now()) {}

  FuzzResult run(const std::function<void(const FuzzResult&)>& progress) {
    while (!interrupted && seconds() < settings_.seconds && (settings_.count == 0 || result_.cases < settings_.count)) {
      const Problem problem = next();
      if (random_case_cost(problem) > settings_.max_operations || !seen_.insert(print_case(problem)).second) continue;
      one(problem);
      if (result_.cases % 64 == 0) progress(result_);
    }
    return std::move(result_);
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  Problem next() {
    if (!pool_.empty() && random_.below(2) == 0) {
      // Where the neighbour is no case: something new instead.
      return canonical(neighbour(pool_[random_.below(pool_.size())].second, random_)).value_or(random_case(random_));
    }
    return random_case(random_);
  }

  void one(const Problem& problem) {
    const Case source = case_from_line(print_case(problem));
    Verdict verdict;
    try {
      verdict = check_line(source, backend_, settings_.threads);
    } catch (const UserError&) {
      return;  // data that the type can't hold
    }
    ++result_.cases;
    if (verdict.status == Status::refused) {
      ++result_.refused;
      return;
    }
    meet(problem);
    if (is_failure(verdict)) {
      ++result_.failed;
      found(source, std::move(verdict));
      return;
    }
    ++(verdict.status == Status::pass ? result_.pass : result_.mistrusted);
    const double close = verdict.error_over_bound.value_or(0);
    if (verdict.status != Status::pass) return;
    if (close > result_.closest) {
      result_.closest = close;
      result_.closest_case = source.label;
    }
    remember(close, problem);
  }

  void meet(const Problem& problem) {
    const std::vector<std::string> names = covered_classes(problem);
    result_.options.insert(names.begin(), names.end());
    for (std::size_t a = 0; a < names.size(); ++a) {
      for (std::size_t b = a + 1; b < names.size(); ++b) ++result_.pairs[std::minmax(names[a], names[b])];
    }
  }

  /// Keeps the cases that came closest to their bound.
  void remember(double close, const Problem& problem) {
    if (pool_.size() < kPool) {
      pool_.emplace_back(close, problem);
      return;
    }
    const auto farthest =
        std::min_element(pool_.begin(), pool_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (close > farthest->first) *farthest = {close, problem};
  }

  void found(const Case& source, Verdict verdict) {
    int& of_cause = causes_[verdict.cause];
    if (++of_cause > static_cast<int>(kMaxShrunkOfCause)) {
      // Enough of this cause were looked at closely; the rest are counted with its first.
      for (Finding& finding : result_.findings) {
        if (finding.failure.cause == verdict.cause) {
          ++finding.count;
          return;
        }
      }
    }
    ShrunkCase small = shrink_case(source, backend_, settings_.threads, kShrinkSeconds);
    const auto kind = [](const ShrunkCase& one) { return covered_classes(one.source.problem); };
    for (Finding& finding : result_.findings) {
      if (finding.failure.cause == verdict.cause && kind(finding.small) == kind(small)) {
        ++finding.count;
        if (small.source.label.size() < finding.small.source.label.size()) finding.small = std::move(small);
        return;
      }
    }
    result_.findings.push_back({std::move(verdict), std::move(small), 1});
  }

  Backend& backend_;
  FuzzSettings settings_;
  Random random_;
  std::chrono::steady_clock::time_point start_;
  FuzzResult result_;
  std::set<std::string> seen_;
  std::vector<std::pair<double, Problem>> pool_;
  std::map<std::string, int> causes_;
};

}  // namespace

std::vector<std::string> covered_classes(const Problem& problem) {
  std::vector<std::string> names;
  for (const Option* option : set_options(problem)) {
    for (std::string& name : option->covered(problem)) names.push_back(std::move(name));
  }
  return names;
}

FuzzResult fuzz(Backend& backend, const FuzzSettings& settings,
                const std::function<void(const FuzzResult&)>& progress) {
  return Fuzzer(backend, settings).run(progress);
}

}  // namespace attest
