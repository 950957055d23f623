#include "harness/cases/axes.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "harness/cases/case_cost.h"
#include "harness/cases/coverage.h"
#include "harness/cases/memory.h"
#include "harness/cases/option_values.h"
#include "harness/cases/random.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

constexpr std::int64_t kBeyondLastCut = 256;   ///< walks go so far beyond it
constexpr std::int64_t kLastCut = 4096;        ///< cuts beyond are met by themselves and their neighbours
constexpr std::int64_t kLimitOfGrids = 65536;  ///< of a grid's second and third extent, and of 16-bit counters
constexpr int kDrawn = 2;                      ///< values between a walk and that limit, of each type
constexpr double kDearestStep = 3000;          ///< microseconds of cost_of(): where a walk ends
constexpr double kDearestByItself = 3e5;       ///< and of a value beyond
constexpr std::size_t kLongestLine = 4000;     ///< nobody reads more
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

/// What makes a number matter besides: options, and how many queries and keys it takes. An axis that is not listed is
/// walked with two keys more than its number.
struct Setting {
  std::string_view axis, options;
  std::int64_t queries, more_queries, keys, more_keys;  ///< a fixed count, and with -1 there the number and so many
};

constexpr std::int64_t kNumber = -1;

// clang-format off
constexpr Setting kSettings[] = {
    {"batch", "", 1, 0, 2, 0},
    {"query heads", "", 1, 0, 2, 0},
    {"key heads", "", 1, 0, 2, 0},
    {"group", "", 1, 0, 2, 0},
    {"queries", "", 1, 0, 2, 0},
    {"keys", "", 1, 0, 2, 0},
    {"key dim", "", 1, 0, 2, 0},
    {"value dim", "", 1, 0, 2, 0},
    {"window left", "align=bottom-right", 1, 0, kNumber, 2},  // the last query: all but one key
    {"window right", "", 1, 0, kNumber, 2},                   // the first query: all but one key
    {"prefix", "causal", 1, 0, kNumber, 2},
    {"past", "causal", 1, 0, kNumber, 1},
    {"paged", "", 1, 0, kNumber, 1},                          // one key on the second page
    {"rows of a block", "blocks=1x1:band(0)", kNumber, 1, 1, 0},
    {"keys of a block", "blocks=1x1:band(0)", 1, 0, kNumber, 1},
    {"segments", "", 1, 0, 2, 0},
    {"parts", "", 1, 0, 1, 0},
};
// clang-format on

/// Sizes that kernels compare with each other are walked together, too.
constexpr std::string_view kEqual[][2] = {{"key dim", "value dim"}, {"queries", "keys"}, {"batch", "query heads"}};

struct WalkedAxis {
  const Option* option;
  std::vector<const Feature*> features;  ///< all of them get the number
};

std::vector<WalkedAxis> axes_of_table() {
  std::vector<WalkedAxis> axes;
  for (const Option& option : options()) {
    for (const Feature& feature : option.features) {
      if (feature.set) axes.push_back({&option, {&feature}});
    }
  }
  const std::size_t alone = axes.size();
  for (const auto& [one, other] : kEqual) {
    WalkedAxis both{nullptr, {}};
    for (std::size_t n = 0; n < alone; ++n) {
      const Feature* feature = axes[n].features.front();
      if (feature->name != one && feature->name != other) continue;
      both.option = axes[n].option;
      both.features.push_back(feature);
    }
    axes.push_back(std::move(both));
  }
  return axes;
}

Op first_operator_with(const Option& option) {
  for (Op op : values_of<Op>()) {
    if (option.has(op)) return op;
  }
  return Call{}.op;
}

/// The case in which every feature of the axis is `n`; nullopt where there is none, or none that can be read.
std::optional<Problem> case_at(const WalkedAxis& axis, std::int64_t n, DType type) {
  const Feature& first = *axis.features.front();
  const auto found =
      std::find_if(std::begin(kSettings), std::end(kSettings), [&](const Setting& s) { return s.axis == first.name; });
  const Setting setting = found == std::end(kSettings) ? Setting{first.name, "", 1, 0, kNumber, 2} : *found;
  Problem p;
  p.call.op = first_operator_with(*axis.option);
  p.call.query_length = setting.queries == kNumber ? n + setting.more_queries : setting.queries;
  p.call.key_length = setting.keys == kNumber ? n + setting.more_keys : setting.keys;
  if (p.call.has_one_length()) p.call.query_length = p.call.key_length;
  // Token by token: what a whole line must have besides comes with the number.
  for (const OptionText& token : OptionText{setting.options}.split(' ')) {
    if (token.text.empty()) continue;
    const std::size_t equals = std::min(token.text.find('='), token.text.size());
    const std::size_t value = std::min(equals + 1, token.text.size());
    find_option(token.text.substr(0, equals))->parse(p, {token.text.substr(value), value + 1});
  }
  p.call.dtype = type;
  for (const Feature* feature : axis.features) feature->set(p, n);
  std::optional<Problem> made = canonical(p);
  if (!made || beyond_walking(*made)) return std::nullopt;
  const bool holds = std::all_of(axis.features.begin(), axis.features.end(),
                                 [&](const Feature* feature) { return feature->value(*made) == n; });
  return holds ? made : std::nullopt;
}

std::int64_t end_of_walk(const WalkedAxis& axis) {
  std::int64_t last = 0;
  for (const Range& range : axis.features.front()->ranges) {
    if (range.first <= kLastCut) last = range.first;
  }
  return last + kBeyondLastCut;
}

class AxisCases {
 public:
  explicit AxisCases(std::uint64_t seed) : random_(seed) {}

  void along(const WalkedAxis& axis, DType type) {
    std::int64_t n = axis.features.front()->ranges.front().first;
    for (const std::int64_t end = end_of_walk(axis); n <= end; ++n) {
      if (!add(case_at(axis, n, type), kDearestStep)) break;
    }
    for (int drawn = 0; drawn < kDrawn; ++drawn) {
      const std::int64_t anywhere = number_in({n, kLimitOfGrids}, 2 * random_.below(std::size_t{1} << 40) + 1);
      add(case_at(axis, anywhere, type), kDearestByItself);
    }
    for (const std::int64_t beside : {-1, 0, 1}) add(case_at(axis, kLimitOfGrids + beside, type), kDearestByItself);
  }

  std::vector<Problem> problems() && { return std::move(problems_); }

 private:
  /// False where the case costs more, which those behind it would, too.
  bool add(std::optional<Problem> p, double dearest) {
    if (!p) return true;
    if (cost_of(*p) > dearest || storage_bytes(*p) > 64.0 * (1 << 20)) return false;
    std::string line = print_case(*p);
    if (line.size() > kLongestLine || !seen_.insert(std::move(line)).second) return true;
    problems_.push_back(std::move(*p));
    return true;
  }

  Random random_;
  std::set<std::string> seen_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> axes_problems(std::uint64_t seed) {
  AxisCases cases(seed);
  for (const WalkedAxis& axis : axes_of_table()) {
    for (const DType type : kTypes) cases.along(axis, type);
  }
  return std::move(cases).problems();
}

}  // namespace attest
