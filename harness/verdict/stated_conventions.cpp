#include "harness/verdict/stated_conventions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <utility>
#include <vector>

#include "harness/base/text.h"
#include "harness/comparison/compare.h"
#include "harness/verdict/mistaken_calls.h"
#include "reference/arithmetic/rounding.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/key_place.h"

namespace attest {
namespace {

/// Whether a statement names this value, alone or as one of several: "mean of v, or nan where a bias hides".
bool says(std::string_view statement, std::string_view value) {
  return statement.find(value) != std::string_view::npos;
}

constexpr std::string_view kSharedSteps = "shares steps of N keys";  ///< as it is listed; N is a number

/// The result of one call held against what is stated.
class StatedJudge {
 public:
  StatedJudge(const Conventions& stated, const Call& call, const Inputs& inputs, const Producer& producer)
      : stated_(stated), call_(call), inputs_(inputs), producer_(producer) {}

  /// Whether something finite was expected of what was judged last: without it nothing is proved.
  bool proved() const { return proved_; }

  /// Whether every element is right by itself or by a statement; `used` gets the statements that were needed.
  bool right(const Expectation& e, const Bounds& bounds, const GuardedOutputs& outputs, std::set<std::string>& used) {
    bool right = true;
    std::map<RowIndex, bool> empty;
    const std::vector<double>& lse = e.of(TensorId::lse);  // of nothing, where gradients alone are asked for
    for (std::size_t r = 0; r < e.rows.size(); ++r)
      empty[e.rows[r]] = !lse.empty() && lse[r] == -kInfinity && sees_nothing(e.rows[r]);
    each_result(call_, e, bounds, outputs,
                [&](const TensorRow& output, const Index4& at, double got, double expected, double bound) {
                  proved_ = proved_ || std::isfinite(expected);
                  if (!right || error_in_bounds(got, expected, bound) <= 1) return;
                  std::string by;
                  if (index_space(output.id) == IndexSpace::query_rows)
                    by = statement_for(output.id, at, got, expected, bound, empty.at({at[0], at[1], at[2]}));
                  if (by.empty())
                    right = false;
                  else
                    used.insert(by);
                });
    return right;
  }

 private:
  bool sees_nothing(const RowIndex& row) const {
    if (call_.has_parts()) return true;  // a logsumexp of -inf says it
    for (std::int64_t j = 0; j < call_.key_length; ++j) {
      if (visible(call_, inputs_, row.b, row.h, row.i, j)) return false;
    }
    return true;
  }

  /// Keys of a head in whose key or value a NaN or an infinity stands.
  const std::vector<std::int64_t>& poisoned(std::int64_t b, std::int64_t h) {
    const std::int64_t head = h / call_.heads_per_group();
    const auto [found, fresh] = poisoned_.try_emplace({b, head});
    if (!fresh) return found->second;
    for (std::int64_t j = 0; j < call_.stored_keys(b); ++j) {
      bool finite = true;
      for (std::int64_t d = 0; d < call_.key_dim; ++d)
        finite = finite && std::isfinite(load_cached(call_, inputs_, Cache::keys, b, head, j, d));
      for (std::int64_t d = 0; d < call_.value_dim; ++d)
        finite = finite && std::isfinite(load_cached(call_, inputs_, Cache::values, b, head, j, d));
      if (!finite) found->second.push_back(j);
    }
    return found->second;
  }
  bool hides_poison(std::int64_t b, std::int64_t h, std::int64_t i) {
    const auto& keys = poisoned(b, h);
    return std::any_of(keys.begin(), keys.end(), [&](std::int64_t j) { return !visible(call_, inputs_, b, h, i, j); });
  }

  /// Whether the statement lets a NaN or an infinity in a key that this row hides reach it.
  bool may_leak(std::int64_t b, std::int64_t h, std::int64_t i) {
    if (stated_.hidden_nan == "leaks") return hides_poison(b, h, i);
    const auto shared = keys_of_shared_step(stated_.hidden_nan);
    if (!shared) return false;
    const auto& keys = poisoned(b, h);
    return std::any_of(keys.begin(), keys.end(), [&](std::int64_t j) {
      if (visible(call_, inputs_, b, h, i, j)) return false;
      const std::int64_t first = j / *shared * *shared;
      for (std::int64_t n = first; n < std::min(first + *shared, call_.stored_keys(b)); ++n) {
        if (visible(call_, inputs_, b, h, i, n)) return true;
      }
      return false;
    });
  }

  /// The mean of the values of all keys, hidden ones as well, and how far a kernel may be off.
  std::pair<double, double> mean_of_values(const Index4& at) const {
    const std::int64_t head = at[1] / call_.heads_per_group(), keys = call_.stored_keys(at[0]);
    double sum = 0, size = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      const double v = load_cached(call_, inputs_, Cache::values, at[0], head, j, at[3]);
      sum += v;
      size += std::fabs(v);
    }
    const auto n = static_cast<double>(std::max<std::int64_t>(keys, 1));
    const double u = unit_roundoff(producer_.arithmetic.accumulator);
    const double of_weights = narrower(producer_.arithmetic.stored_weights, producer_.arithmetic.accumulator)
                                  ? unit_roundoff(producer_.arithmetic.stored_weights)
                                  : 0;
    const double error = (2 * (n + 8) * u + 2 * of_weights) * size / n;
    return {sum / n,
            Storing(producer_.arithmetic, producer_.type_of(call_, TensorId::out)).bound(std::fabs(sum / n), error)};
  }

  /// The statement by which a wrong element is right; empty where there is none.
  std::string statement_for(TensorId output, const Index4& at, double got, double expected, double bound,
                            bool empty_row) {
    const bool is_o = output == TensorId::out, is_lse = output == TensorId::lse,
               is_weight = output == TensorId::weights;
    if (empty_row && (is_o || is_weight)) {
      std::string statement = "empty_row=" + stated_.empty_row;
      const bool mean_stated = call_.has_scores() && says(stated_.empty_row, "mean of v");
      if (says(stated_.empty_row, "nan") && std::isnan(got)) return statement;
      if (mean_stated && is_o) {
        const auto [mean, off] = mean_of_values(at);
        if (error_in_bounds(got, mean, off) <= 1) return statement;
      }
      if (mean_stated && is_weight && got > 0 && got <= 1) return statement;
    }
    if (is_lse && empty_row && is_lse_of_empty_row(got)) return "lse_of_empty_row=" + stated_.lse_of_empty_row;
    // The case of a merge says its base.
    if (is_lse && call_.has_scores() && stated_.lse_base == "2" && std::isfinite(expected)) {
      const double size = expected * std::numbers::log2e;
      const double off = 2 * bound + 4 * unit_roundoff(producer_.type_of(call_, TensorId::lse)) * std::fabs(size);
      if (error_in_bounds(got, size, off) <= 1) return "lse_base=2";
    }
    if (!call_.has_parts() && !std::isfinite(got) && may_leak(at[0], at[1], at[2]))
      return "hidden_nan=" + stated_.hidden_nan;
    return "";
  }
  bool is_lse_of_empty_row(double got) const {
    const std::string& value = stated_.lse_of_empty_row;
    return (value == "nan" && std::isnan(got)) || (value == "inf" && got == kInfinity) || (value == "0" && got == 0) ||
           (value == "a number" && std::isfinite(got));
  }

  const Conventions& stated_;
  const Call& call_;
  const Inputs& inputs_;
  const Producer& producer_;
  bool proved_ = false;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> poisoned_;
};

/// The call as a backend with these statements takes it; what was changed is added to `used`.
void apply(const Conventions& stated, MistakenCall& c, std::set<std::string>& used) {
  Call& p = c.call;
  const bool bottom = stated.align == "bottom-right", top = stated.align == "top-left";
  if (p.uses_diagonal() && p.past == 0 && (bottom || top)) {
    const Align own = bottom ? Align::bottom_right : Align::top_left;
    if (std::exchange(p.align, own) != own) used.insert("align=" + stated.align);
  }
  if (stated.window == "W keys" && p.window_left != Call::kUnbounded) {
    --p.window_left;
    used.insert("window=W keys");
  }
  if (stated.mask_true == "drop" && c.inputs.mask() && !is_additive(*c.inputs.mask())) {
    read_mask_at(c, [](const Index4& x) { return x; });
    for (std::uint8_t& byte : c.visible) byte = byte == 0;
    if (!c.visible.empty()) used.insert("mask_true=drop");
  }
  const bool biased = c.inputs.slopes() || (c.inputs.mask() && is_additive(*c.inputs.mask()));
  if (stated.softcap == "after bias" && p.softcap && biased) {
    const double cap = *p.softcap;
    const bool made = score_pairs(c, [cap](double raw, double additive, double alibi) {
      return additive == -kInfinity ? additive : cap * std::tanh((raw + additive + alibi) / cap);
    });
    if (made) used.insert("softcap=after bias");
  }
}

struct Values {
  std::string_view name;
  std::vector<std::string_view> values;
};

/// What can be stated, the first being attest's own.
const std::vector<Values>& known_values() {
  static const std::vector<Values> list = {
      {"align", {"as asked", "top-left", "bottom-right"}},
      {"window", {"W + 1 keys", "W keys"}},
      {"mask_true", {"keep", "drop"}},
      {"empty_row", {"0", "nan", "mean of v"}},
      {"hidden_nan", {"stays out", "leaks", kSharedSteps}},
      {"lse_base", {"e", "2"}},
      {"lse_of_empty_row", {"-inf", "inf", "nan", "0", "a number"}},
      {"softcap", {"before bias", "after bias", "refused"}},
      {"softmax_f64", {"f64", "f32", "refused"}},
      {"accumulation_f32", {"f32", "f64"}},
      {"same_bits",
       {"no promise", "repeat", "threads", "batch", "head", "decode", "chunks", "packing", "pages", "paging"}},
  };
  return list;
}

const Values* values_for(std::string_view name) {
  const auto& list = known_values();
  const auto found = std::find_if(list.begin(), list.end(), [&](const Values& one) { return one.name == name; });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace

StatedCall call_as_stated(const Conventions& stated, const Call& call, const Inputs& inputs,
                          const Arithmetic& arithmetic) {
  StatedCall made{{call, inputs}, arithmetic, {}};
  apply(stated, made.taken, made.used);
  if (stated.softmax_f64 == "f32" && call.dtype == DType::f64 && call.has_scores()) {
    made.arithmetic.accumulator = made.arithmetic.stored_weights = made.arithmetic.stored_scores = DType::f32;
    made.used.insert("softmax_f64=f32");
  }
  return made;
}

bool changes_results(const Conventions& stated) {
  const Conventions own;
  return std::any_of(kConventionFields.begin(), kConventionFields.end(), [&](const ConventionField& field) {
    return changes_results(field) && stated.*(field.value) != own.*(field.value);
  });
}

std::string right_by_convention(const Conventions& stated, const Problem& problem, const Inputs& inputs,
                                const Expectation& expectation, std::size_t producer, const GuardedOutputs& outputs,
                                int threads, double budget) {
  if (!changes_results(stated)) return "";
  const Producer& who = expectation.producers[producer];
  std::set<std::string> used;
  if (StatedJudge(stated, problem, inputs, who).right(expectation, expectation.bounds[producer], outputs, used))
    return join_texts({used.begin(), used.end()}, ", ");
  StatedCall asked = call_as_stated(stated, problem.call, inputs, who.arithmetic);
  const Producer made{asked.arithmetic, who.stored};
  const MistakenCall& taken = asked.taken;
  used = std::move(asked.used);
  if (used.empty()) return "";
  const Expectation e = expect({taken.call, problem.data}, taken.inputs, {made}, threads, budget);
  StatedJudge judge(stated, taken.call, taken.inputs, made);
  if (!judge.right(e, e.bounds.front(), outputs, used) || !judge.proved()) return "";
  return join_texts({used.begin(), used.end()}, ", ");
}

std::optional<std::string> convention_values(std::string_view name) {
  const Values* values = values_for(name);
  if (!values) return std::nullopt;
  return join_texts({values->values.begin(), values->values.end()}, ", ");
}

bool is_convention_value(std::string_view name, std::string_view value) {
  const Values* values = values_for(name);
  if (!values) return false;
  if (name == "same_bits") {  // a list, every word of which counts
    return std::ranges::all_of(listed_words(value), [&](const std::string& word) {
      return std::ranges::find(values->values, word) != values->values.end();
    });
  }
  if (name == "hidden_nan" && keys_of_shared_step(value)) return true;
  return std::ranges::any_of(values->values,
                             [&](std::string_view known) { return known != kSharedSteps && says(value, known); });
}

std::optional<std::int64_t> keys_of_shared_step(std::string_view hidden_nan) {
  constexpr std::string_view kBefore = "shares steps of ", kAfter = " keys";
  if (!hidden_nan.starts_with(kBefore) || !hidden_nan.ends_with(kAfter)) return std::nullopt;
  if (hidden_nan.size() <= kBefore.size() + kAfter.size()) return std::nullopt;
  const std::string_view digits = hidden_nan.substr(kBefore.size(), hidden_nan.size() - kBefore.size() - kAfter.size());
  std::int64_t keys = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), keys);
  if (error != std::errc() || end != digits.data() + digits.size() || keys < 2 || keys > 1024) return std::nullopt;
  return keys;
}

std::vector<std::string> listed_words(std::string_view value) {
  std::vector<std::string> words;
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    words.push_back(trimmed(std::string(value.substr(0, comma))));
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return words;
}

}  // namespace attest
