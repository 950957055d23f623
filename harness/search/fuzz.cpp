#include "harness/search/fuzz.h"

#include <algorithm>
#include <chrono>

#include "harness/base/interrupted.h"
#include "harness/base/user_error.h"
#include "harness/cases/random_case.h"
#include "harness/search/shrink.h"
#include "harness/verdict/prepared_case.h"
#include "reference/case_line.h"
#include "reference/find_fault.h"

namespace attest {
namespace {

constexpr std::size_t kPool = 64;              ///< cases whose neighbours are tried
constexpr double kShrinkSeconds = 2;           ///< for one failure
constexpr std::size_t kMostShrunkOfCause = 8;  ///< failures with one cause that are made small to tell them apart

/// A problem beside `from`: one size, fill, seed or option different. It may be no valid case.
Problem neighbour(const Problem& from, Random& random) {
  Problem p = from;
  const auto step = [&](std::int64_t& size, std::int64_t least) {
    size = std::max<std::int64_t>(least, size + (random.below(2) == 0 ? 1 : -1));
  };
  switch (random.below(8)) {
    case 0: step(p.query_length, 0); break;
    case 1: step(p.key_length, 0); break;
    case 2: step(p.key_dim, 1); break;
    case 3: step(p.value_dim, 1); break;
    case 4: p.seed = random.below(1000); break;
    case 5: {
      const FillName& fill = tensor_fills()[random.below(tensor_fills().size())];
      const double sizes[] = {0.25, 1, 8, 88, 300};
      p.fill = {std::string(fill.name), {}};
      if (fill.arguments == 1) p.fill.args = {sizes[random.below(5)]};
      break;
    }
    case 6: {
      const std::vector<Problem> simpler = simpler_problems(p);
      if (!simpler.empty()) p = simpler[random.below(simpler.size())];
      break;
    }
    default: p.dtype = values_of<DType>()[random.below(values_of<DType>().size())]; break;
  }
  return p;
}

class Fuzzer {
 public:
  Fuzzer(Backend& backend, const FuzzSettings& settings)
      : backend_(backend), settings_(settings), random_(settings.seed), start_(std::chrono::steady_clock::now()) {}

  FuzzResult run(const std::function<void(const FuzzResult&)>& progress) {
    while (!interrupted && seconds() < settings_.seconds && (settings_.count == 0 || result_.cases < settings_.count)) {
      const Problem problem = next();
      if (random_case_cost(problem) > settings_.most_operations || !seen_.insert(print_case(problem)).second) continue;
      one(problem);
      if (result_.cases % 64 == 0) progress(result_);
    }
    return std::move(result_);
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  Problem next() {
    if (!pool_.empty() && random_.below(2) == 0) {
      const Problem p = neighbour(pool_[random_.below(pool_.size())].second, random_);
      if (!find_fault(p)) {
        try {
          return parse_case(print_case(p));
        } catch (const CaseError&) {
          return random_softmax_case(random_).problem;  // no such case: something new instead
        }
      }
    }
    return random_.below(16) == 0 ? random_linear_case(random_).problem : random_softmax_case(random_).problem;
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
    const std::vector<std::string> names = options_of(problem);
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
    const auto least =
        std::min_element(pool_.begin(), pool_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (close > least->first) *least = {close, problem};
  }

  void found(const Case& source, Verdict verdict) {
    int& of_cause = causes_[verdict.cause];
    if (++of_cause > static_cast<int>(kMostShrunkOfCause)) {
      // Enough of this cause were looked at closely; the rest are counted with its first.
      for (Finding& finding : result_.findings) {
        if (finding.failure.cause == verdict.cause) {
          ++finding.count;
          return;
        }
      }
    }
    ShrunkCase small = shrink_case(source, backend_, settings_.threads, kShrinkSeconds);
    const auto kind = [](const ShrunkCase& one) { return options_of(one.source.problem); };
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

std::vector<std::string> options_of(const Problem& p) {
  std::vector<std::string> names;
  const auto add = [&](bool present, std::string name) {
    if (present) names.push_back(std::move(name));
  };
  add(p.op != Op::attention, "op=" + std::string(name_of(p.op)));
  add(p.dtype != DType::f32, std::string(name_of(p.dtype)));
  add(p.batch > 1, "batch");
  add(p.query_heads > 1, "heads");
  add(p.heads_per_group() > 1, "grouped heads");
  add(p.query_length < p.key_length, "Lq < Lk");
  add(p.query_length > p.key_length, "Lq > Lk");
  add(p.query_length == 0 || p.key_length == 0, "empty");
  add(p.key_dim != p.value_dim, "Dqk != Dv");
  add(p.scale.has_value(), "scale");
  add(p.causal, "causal");
  add(p.align != Align::top_left, std::string(name_of(p.align)));
  add(p.window_left != Problem::kUnbounded, "window left");
  add(p.window_right != Problem::kUnbounded, "window right");
  add(p.prefix > 0, "prefix");
  add(p.lengths.has_value(), "key lengths");
  add(p.lengths && !p.lengths->query.empty(), "query lengths");
  add(p.segments.has_value(), "segments");
  add(p.mask && !p.mask->additive, "boolean mask");
  add(p.mask && p.mask->additive, "additive mask");
  add(p.blocks.has_value(), "blocks");
  add(p.softcap.has_value(), "softcap");
  add(p.alibi, "alibi");
  add(p.sinks, "sinks");
  add(p.dropout > 0, "dropout");
  add(p.past > 0, "past");
  add(p.page_size.has_value(), "paged");
  add(p.initial_state, "state");
  add(p.decay_per_head, "decay=head");
  add(p.beta_shared, "beta=one");
  for (Output output : p.outputs) {
    add(output != Output::o, "out " + std::string(name_of(output)));
  }
  add(p.layout != Layout::bhld, "layout " + std::string(name_of(p.layout)));
  for (TensorId id : values_of<TensorId>()) {
    add(p.tensor(id).strides.has_value(), std::string(name_of(id)) + ".strides");
  }
  add(p.fill.name != "normal", "fill " + p.fill.name);
  add(!p.poison.empty(), "poison");
  return names;
}

FuzzResult fuzz(Backend& backend, const FuzzSettings& settings,
                const std::function<void(const FuzzResult&)>& progress) {
  return Fuzzer(backend, settings).run(progress);
}

}  // namespace attest
