#include "harness/search/fuzz.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <ostream>

#include "backends/refusal.h"
#include "harness/base/interrupted.h"
#include "harness/base/user_error.h"
#include "harness/cases/class_cases.h"
#include "harness/cases/coverage.h"
#include "harness/cases/memory.h"
#include "harness/cases/option_values.h"
#include "harness/cases/random_case.h"
#include "harness/search/accepted_part.h"
#include "harness/search/shrink.h"
#include "harness/verdict/long_repro.h"
#include "harness/verdict/prepared_case.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

constexpr std::uint64_t kStreams = 0x9e3779b97f4a7c15;  ///< seeds of parts lie so far apart
constexpr std::size_t kPool = 64;                       ///< cases whose neighbours are tried
constexpr double kShrinkSeconds = 2;                    ///< for one failure
constexpr double kSearchSeconds = 2, kPairSeconds = 3;  ///< for the case that caused it, and for the two of them
constexpr int kRepeats = 5;                             ///< of a finding, to tell chance from a mistake
constexpr int kMostPairs = 3;                           ///< that are made small
constexpr std::size_t kMostMet = 1024;                  ///< among which it is looked for
constexpr int kMoreClasses = 12;                        ///< tried beside those that a case is made for
constexpr std::size_t kDearest = 5;                     ///< a case may cost up to 2 to this times the usual
constexpr double kMostBytes = 64.0 * (1 << 20);
constexpr std::size_t kMaxShrunkOfCause = 8;  ///< failures with one cause that are made small to tell them apart

/// One of the simpler problems; of a long line, which makes each of them long, one of the first.
Problem simpler_than(const Problem& problem, Random& random) {
  constexpr std::size_t kMostCharacters = 1 << 20;
  const std::size_t most = std::max<std::size_t>(kMostCharacters / print_case(problem).size(), 4);
  std::vector<Problem> simpler;
  each_simpler_problem(problem, [&](const Problem& one) {
    simpler.push_back(one);
    return simpler.size() < most;
  });
  return simpler.empty() ? problem : simpler[random.below(simpler.size())];
}

/// A problem beside `from`: one size, option or type different. It may be no case.
Problem neighbour(const Problem& from, Random& random) {
  Problem p = from;
  if (random.below(2) == 0) {
    std::int64_t Call::*const sizes[] = {&Call::query_length, &Call::key_length, &Call::key_dim, &Call::value_dim};
    const std::size_t n = random.below(4);
    const std::int64_t min = n < 2 ? 0 : 1, step = random.below(2) == 0 ? 1 : -1;
    p.call.*sizes[n] = std::max(min, p.call.*sizes[n] + step);
    return p;
  }
  if (random.below(4) == 0) {
    return simpler_than(p, random);
  }
  const Option& option = random.pick(options());
  const std::optional<std::string> value = option.has(p.call.op) ? random_value(option, p, random) : std::nullopt;
  if (!value) return p;
  return with_option(p, option, *value).value_or(p);
}

/// `from` with one number in the class below or above its own: beyond the next threshold.
std::optional<Problem> beyond_threshold(const Problem& from, const CaseLimits& limits, Random& random) {
  const auto& table = classes_of_table();
  std::vector<std::size_t> numbers;
  for (std::size_t c : classes_of(from)) {
    if (!table[c].feature->ranges.empty()) numbers.push_back(c);
  }
  if (numbers.empty()) return std::nullopt;
  const std::size_t now = random.pick(numbers), size = table[now].feature->ranges.size();
  const bool up = table[now].which == 0 || (table[now].which + 1 < size && random.below(2) == 0);
  return moved_into(from, up ? now + 1 : now - 1, {}, limits, random);
}

/// Relative error of the nearest number of a storage type.
double storage_error(DType type) { return size_of(type) < 4 ? unit_roundoff(type) : 0; }

/// How close the worst element came to its bound, what rounding to 16 bits explains taken from both.
double closeness(const Verdict& verdict) {
  const double share = verdict.error_over_bound.value_or(0);
  if (!verdict.worst || verdict.worst->output == "lse" || storage_error(verdict.dtype) == 0) return share;
  const double rounding = storage_error(verdict.dtype) * std::fabs(verdict.worst->expected);
  const double error = std::fabs(verdict.worst->got - verdict.worst->expected) - rounding;
  const double bound = verdict.worst->bound - rounding;
  return bound > 0 && error > 0 && std::isfinite(error) ? error / bound : 0;
}

class Fuzzer {
 public:
  Fuzzer(Backend& backend, const FuzzSettings& settings)
      : backend_(backend),
        settings_(settings),
        random_(settings.seed ^ settings.part * kStreams),
        start_(std::chrono::steady_clock::now()) {
    std::uint64_t number = 0;
    const auto aim_at = [&](const ClassPair& pair) {
      if (!why_impossible(pair.first, pair.second) && number++ % settings_.parts == settings_.part)
        targets_.push_back(pair);
    };
    for (std::size_t c = 0; c < classes_of_table().size(); ++c) aim_at({c, c});
    const std::size_t singles = targets_.size();
    for (const ClassPair& pair : all_pairs()) aim_at(pair);
    // Classes first, then pairs, each in an order of the seed.
    shuffle(0, singles);
    shuffle(singles, targets_.size());
  }

  FuzzResult run(const std::function<void(const FuzzResult&)>& progress) {
    while (!interrupted && seconds() < settings_.seconds && (settings_.count == 0 || result_.cases < settings_.count) &&
           (settings_.budget == 0 || cost_ < settings_.budget)) {
      limits_ = {settings_.max_operations * cost_factor(), kMostBytes};
      const Problem problem = accepted(next());
      const double cost = random_case_cost(problem);
      if (cost > limits_.multiply_adds || storage_bytes(problem) > kMostBytes ||
          !seen_.insert(print_case(problem)).second) {
        continue;
      }
      cost_ += std::max(cost, 1e4);  // the smallest case is work too
      one(problem);
      progress(result_);
    }
    count_classes();
    return std::move(result_);
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  void shuffle(std::size_t first, std::size_t last) {
    for (std::size_t n = last; n > first + 1; --n)
      std::swap(targets_[n - 1], targets_[first + random_.below(n - first)]);
  }

  /// 1, or 2 every second time, or 4 every fourth, ...
  double cost_factor() {
    const std::size_t draw = random_.below(std::size_t{1} << kDearest);
    double times = 1;
    for (std::size_t bit = 0; bit < kDearest && (draw >> bit & 1) != 0; ++bit) times *= 2;
    return times;
  }

  Problem next() {
    const std::size_t way = random_.below(4);
    if (way < 2) {
      if (std::optional<Problem> p = for_target()) return *p;
    }
    if (way == 3 && !pool_.empty()) {
      const Problem& from = random_.pick(pool_).second;
      // Where the neighbour is no case: something new instead.
      std::optional<Problem> near =
          random_.below(2) == 0 ? beyond_threshold(from, limits_, random_) : canonical(neighbour(from, random_));
      return near ? *near : random_case(random_);
    }
    return random_case(random_);
  }

  /// A case for the next class or pair that no case has met; nullopt where all are, or this one costs too much now.
  std::optional<Problem> for_target() {
    while (target_ < targets_.size() && met_.met(targets_[target_].first, targets_[target_].second)) ++target_;
    if (target_ == targets_.size()) return std::nullopt;
    const auto [a, b] = targets_[target_++];
    std::vector<std::size_t> classes = {a};
    if (b != a) classes.push_back(b);
    return covering_case(classes, met_, limits_, kMoreClasses, random_);
  }

  /// Of a problem that the backend refuses the part that it accepts: a backend that does little is met by little.
  Problem accepted(const Problem& problem) {
    const auto accepts = [this](const Problem& p) { return !refusal_of(backend_, p); };
    try {
      if (!settings_.always.empty())
        return accepted_part(problem, accepts, &random_.pick(settings_.always)).value_or(problem);
      if (accepts(problem)) return problem;
      return accepted_part(problem, accepts).value_or(problem);
    } catch (...) {
      return problem;  // what it throws becomes its verdict
    }
  }

  void one(const Problem& problem) {
    const Case source = case_from_line(print_case(problem));
    Verdict verdict;
    try {
      verdict = check_line(source, backend_, settings_.threads);
    } catch (const UnusableBackend&) {
      throw;
    } catch (const UserError&) {
      return;  // data that the type can't hold
    }
    ++result_.cases;
    if (verdict.status != Status::refused) remember_met(source);
    if (verdict.status == Status::refused) {
      ++result_.refused;
      return;
    }
    meet(problem);
    met_.meet(problem);
    if (is_failure(verdict)) {
      ++result_.failed;
      found(source, std::move(verdict));
      return;
    }
    ++(is_right(verdict) ? result_.pass : result_.inconclusive);
    const double close = verdict.error_over_bound.value_or(0);
    if (verdict.status != Status::pass) return;
    if (close > result_.closest) {
      result_.closest = close;
      result_.closest_case = source.label;
    }
    remember(closeness(verdict), problem);
  }

  void count_classes() {
    const auto count = [&](const ClassPair& pair) {
      if (!why_impossible(pair.first, pair.second) && met_.met(pair.first, pair.second)) result_.classes.insert(pair);
    };
    for (std::size_t c = 0; c < classes_of_table().size(); ++c) count({c, c});
    for (const ClassPair& pair : all_pairs()) count(pair);
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
    int& of_cause = causes_[verdict.cause.text()];
    if (++of_cause > static_cast<int>(kMaxShrunkOfCause)) {
      // Enough of this cause were looked at closely; the rest are counted with its first.
      for (Finding& finding : result_.findings) {
        if (finding.failure.cause == verdict.cause) {
          ++finding.count;
          return;
        }
      }
    }
    ShrunkCase small = made_small(source, verdict);
    keep_long_lines(verdict);
    if (!is_failure(small.verdict)) small = {source, verdict, small.tried, small.seconds, false};
    add_finding(result_.findings, {std::move(verdict), std::move(small), 1});
  }

  /// By itself, or with the earlier case that caused it; in the time that is left.
  ShrunkCase made_small(const Case& source, Verdict& verdict) {
    const auto budget = [&](double most) { return std::clamp(settings_.seconds - seconds(), 0.0, most); };
    if (settings_.fresh) {
      EarlierCases earlier;
      for (const Case& one : met_cases_) {
        if (one.label != source.label) earlier.push_back(&one);
      }
      find_origin(verdict, PreparedCase(source, {&backend_}, settings_.threads), earlier, settings_.fresh,
                  {.repeats = kRepeats, .seconds = budget(kSearchSeconds)});
    }
    const bool is_pair = verdict.cause.kind == Cause::after_another_case;
    const bool is_chance = verdict.status == Status::flaky || verdict.cause.kind == Cause::fresh_worker_only;
    if (is_chance || (is_pair && ++pairs_ > kMostPairs)) return {source, verdict, 0, 0, false};
    // Smaller cases, too, are cases that a backend has met: they would stand in nobody's list.
    const std::unique_ptr<Backend> own = made_fresh(settings_.fresh);
    if (!is_pair)
      return shrink_case(source, own ? *own : backend_, settings_.threads, budget(kShrinkSeconds),
                         {{}, {}, settings_.fresh, steps_from_text(verdict.steps)});
    return shrink_pair(case_from_line(verdict.after), source, settings_.threads, budget(kPairSeconds), settings_.fresh);
  }

  void remember_met(const Case& source) {
    if (met_cases_.size() == kMostMet) met_cases_.pop_front();
    met_cases_.push_back(source);
  }

  Backend& backend_;
  FuzzSettings settings_;
  Random random_;
  std::chrono::steady_clock::time_point start_;
  FuzzResult result_;
  std::set<std::string> seen_;
  std::vector<std::pair<double, Problem>> pool_;
  std::map<std::string, int> causes_;
  int pairs_ = 0;               ///< of cases, made small
  std::deque<Case> met_cases_;  ///< the last ones that the backend has met
  Coverage met_;
  std::vector<ClassPair> targets_;  ///< classes, each paired with itself, and pairs
  std::size_t target_ = 0;
  CaseLimits limits_;  ///< of the next case
  double cost_ = 0;    ///< of all so far
};

}  // namespace

Problem with_always(const std::string& words) {
  try {
    return parse_case("seq=2 dim=2 " + words);
  } catch (const CaseError& error) {
    throw UserError(fmt::format("'{}': {}", words, error.what()));
  }
}

void add_finding(std::vector<Finding>& findings, Finding found) {
  const auto kind = [](const Finding& one) { return covered_classes(one.small.source.problem); };
  for (Finding& finding : findings) {
    if (finding.failure.cause != found.failure.cause || kind(finding) != kind(found)) continue;
    finding.count += found.count;
    if (found.small.source.label.size() < finding.small.source.label.size()) finding.small = std::move(found.small);
    return;
  }
  findings.push_back(std::move(found));
}

void write_findings(std::ostream& out, const std::vector<Finding>& findings) {
  std::set<std::string> written;
  const auto write = [&](const std::string& line, const std::string& comment) {
    if (written.insert(line).second) out << line << "  # " << comment << '\n';
  };
  for (const Finding& finding : findings) {
    const Verdict& small = finding.small.verdict;
    if (!small.after.empty()) write(small.after, "before the next line");
    write(finding.small.source.label, small.cause.text());
  }
}

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
