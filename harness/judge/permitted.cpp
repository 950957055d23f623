#include "harness/judge/permitted.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "harness/base/user_error.h"
#include "harness/verdict/restatement.h"
#include "harness/verdict/stated_conventions.h"
#include "reference/arithmetic/rounding.h"
#include "reference/base/nearest.h"

namespace attest {
namespace {

/// Parts that keys are divided into: one has a key at least, but for kernels with a number of parts that is fixed.
constexpr std::int64_t kPartsOfAny = 256;

enum class Measure : std::uint8_t {
  arrangement,  ///< how the work is arranged: no error but roundings of the accumulator's type
  type,         ///< not narrower than float, of calls in double than double
  most,         ///< a number up to this one
  parts,        ///< as many as there are keys
  flag,         ///< not stated
  division,
  operand,  ///< exact
  sum,      ///< in the accumulator
  rounding  ///< of an operand: to nearest, as it is
};

struct FieldRule {
  std::string_view field;
  Measure measure;
  double most = 0;
};

/// Of every member of Arithmetic.
constexpr FieldRule kFieldRules[] = {{"accumulator", Measure::type},
                                     {"stored_weights", Measure::type},
                                     {"exp_ulps", Measure::most, 2},
                                     {"log_ulps", Measure::most, 2},
                                     {"tanh_ulps", Measure::most, 2},
                                     {"base2", Measure::arrangement},
                                     {"scale", Measure::arrangement},
                                     {"division", Measure::division},
                                     {"key_block", Measure::arrangement},
                                     {"lazy_threshold", Measure::most, 8},
                                     {"normalised_before_storage", Measure::arrangement},
                                     {"stored_scores", Measure::type},
                                     {"score_stores", Measure::most, 2},
                                     {"sum_of_stored", Measure::arrangement},
                                     {"flush_to_zero", Measure::flag},
                                     {"state_chunk", Measure::arrangement},
                                     {"parts", Measure::parts},
                                     {"stored_parts", Measure::type},
                                     {"fused_log2e", Measure::arrangement},
                                     {"no_maximum", Measure::flag},
                                     {"weights_from_lse", Measure::arrangement},
                                     {"kept_weights", Measure::arrangement},
                                     {"delta_from_weights", Measure::arrangement},
                                     {"stored_score_gradients", Measure::type},
                                     {"stored_head_gradients", Measure::type},
                                     {"varying_order", Measure::arrangement},
                                     {"query_operand", Measure::operand},
                                     {"key_operand", Measure::operand},
                                     {"value_operand", Measure::operand},
                                     {"weight_operand", Measure::operand},
                                     {"score_sum", Measure::sum},
                                     {"value_sum", Measure::sum},
                                     {"weight_sum", Measure::sum},
                                     {"score_roundings", Measure::most, 0},
                                     {"output_roundings", Measure::most, 0},
                                     {"weight_factor", Measure::most, 1},
                                     {"exp_absolute", Measure::most, 0},
                                     {"exp_argument", Measure::operand},
                                     {"rescale_ulps", Measure::most, 2},
                                     {"query_rounding", Measure::rounding},
                                     {"key_rounding", Measure::rounding},
                                     {"value_rounding", Measure::rounding},
                                     {"weight_rounding", Measure::rounding}};

const FieldRule* rule_of(std::string_view field) {
  const auto* rule = std::ranges::find(kFieldRules, field, &FieldRule::field);
  return rule == std::end(kFieldRules) ? nullptr : rule;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string before_comma(const std::string& text) { return text.substr(0, text.find(',')); }

/// As one word: "f16, width 16" is "f16,width:16".
std::string as_word(const std::string& value) {
  std::string word;
  for (std::size_t n = 0; n < value.size(); ++n) {
    if (value[n] == ' ' && n > 0 && value[n - 1] == ',') continue;
    word += value[n] == ' ' ? ':' : value[n];
  }
  return word;
}

bool is_value_of(const FieldRule& rule, const std::string& value) {
  switch (rule.measure) {
    case Measure::type: {
      const std::optional<DType> type = value_named<DType>(value);
      return type && is_floating(*type);
    }
    case Measure::most:
    case Measure::parts: return number_in(value).has_value();
    case Measure::division: return value_named<Division>(value).has_value();
    case Measure::operand: return value_named<OperandFormat>(value).has_value();
    case Measure::sum: return value == "any" || value_named<SumFormat>(before_comma(value)).has_value();
    case Measure::rounding: return value == "any" || value.starts_with("step:");
    case Measure::flag: return value == "true";
    case Measure::arrangement: return true;
  }
  return false;
}

/// The largest number that every task permits in this call.
double most_of(const FieldRule& rule, const Call& call) {
  if (rule.measure != Measure::parts) return rule.most;
  return static_cast<double>(std::max({kPartsOfAny, call.parts, call.past + call.key_length}));
}

/// Whether every task permits it.
bool is_always_permitted(const FieldRule& rule, const std::string& value, double most, DType of_call) {
  switch (rule.measure) {
    case Measure::arrangement: return true;
    case Measure::type: {
      const std::optional<DType> type = value_named<DType>(value);
      return type && !narrower(*type, accumulator_of(of_call));
    }
    case Measure::most:
    case Measure::parts: {
      const std::optional<double> number = number_in(value);
      return number && *number <= most;
    }
    case Measure::flag: return value == "false";
    case Measure::division: return value == "ieee" || value == "reciprocal";
    case Measure::operand: return value == "exact";
    case Measure::sum: return value == "accumulator" || value == "exact";
    case Measure::rounding: return value == "step:1";
  }
  return false;
}

std::string permitted_text(const FieldRule& rule, double most, const std::vector<std::string>& values, DType of_call) {
  std::string list;
  switch (rule.measure) {
    case Measure::most:
    case Measure::parts: return fmt::format("up to {:g}", most);
    case Measure::type: list = name_of(accumulator_of(of_call)); break;
    case Measure::flag: list = "false"; break;
    case Measure::division: list = "ieee, reciprocal"; break;
    case Measure::operand: list = "exact"; break;
    case Measure::sum: list = "accumulator"; break;
    case Measure::rounding: list = "step 1"; break;
    case Measure::arrangement: break;
  }
  for (const std::string& value : values) list += ", " + value;
  return list;
}

/// More exact than attest asks for, or about what is refused and not about results.
bool is_harmless(std::string_view field, const std::string& value) {
  return value == std::string_view("refused") || (field == "accumulation_f32" && value == "f64");
}

}  // namespace

void PermittedStatements::permit(const std::string& word) {
  const std::size_t sign = word.find('=');
  const std::string field = word.substr(0, sign), value = sign == std::string::npos ? "true" : word.substr(sign + 1);
  if (const FieldRule* rule = rule_of(field)) {
    if (!is_value_of(*rule, value)) throw UserError(fmt::format("declare: \"{}\" is no value of {}", value, field));
  } else if (convention_values(field)) {
    if (!is_convention_value(field, value))
      throw UserError(fmt::format("declare: \"{}\" is no value of {}: {}", value, field, *convention_values(field)));
  } else {
    std::vector<std::string> names;
    for (const FieldRule& one : kFieldRules) names.emplace_back(one.field);
    for (const ConventionField& one : kConventionFields) names.emplace_back(one.name);
    throw UserError(fmt::format("declare: \"{}\" is nothing that a backend states; nearest: {}", field,
                                nearest_name(field, names)));
  }
  values_[field].push_back(value);
}

std::string PermittedStatements::excess_of_one(const Arithmetic& stated, const Call& call) const {
  for (const StatedField& field : stated_fields(stated)) {
    const FieldRule* rule = rule_of(field.key);
    if (!rule) return std::string(field.key) + " is nothing that a task permits";
    const auto found = values_.find(field.key);
    const std::vector<std::string> values = found == values_.end() ? std::vector<std::string>{} : found->second;
    double most = most_of(*rule, call);
    if (rule->measure == Measure::most || rule->measure == Measure::parts) {
      for (const std::string& value : values) most = std::max(most, *number_in(value));
    }
    const std::string value = as_word(field.value);
    if (is_always_permitted(*rule, value, most, call.dtype)) continue;
    if (std::ranges::find(values, value) != values.end() || std::ranges::find(values, "any") != values.end()) continue;
    return fmt::format("{} is {}, the task permits {}", field.key, field.value,
                       permitted_text(*rule, most, values, call.dtype));
  }
  return "";
}

std::string PermittedStatements::excess(const Arithmetic& stated, const Call& call) const {
  std::string first = excess_of_one(stated, call);
  for (const ResultRounding& one : stated.of_results) {
    if (first.empty()) first = excess_of_one(Arithmetic{one.rounding, {}}, call);
  }
  return first;
}

std::string PermittedStatements::excess(const Conventions& stated) const {
  const Conventions own;
  for (const ConventionField& field : kConventionFields) {
    const std::string& value = stated.*field.value;
    if (!changes_results(field) || value == own.*field.value || is_harmless(field.name, value)) continue;
    const auto found = values_.find(field.name);
    if (found != values_.end() && std::ranges::find(found->second, value) != found->second.end()) continue;
    return fmt::format("the convention {} is \"{}\", the task permits \"{}\"", field.name, value, own.*field.value);
  }
  return "";
}

IsolationOptions StatementWatch::heard(IsolationOptions options, const std::shared_ptr<StatementWatch>& watch) {
  options.hears_arithmetic = [watch](const std::string&, const Call& call, const Arithmetic& stated) {
    const std::string excess = watch->permitted_.excess(stated, call);
    watch->note(excess);
    // Whatever lies beyond may take the reference as long as it likes: a sum over a thousand million parts.
    if (!excess.empty()) throw BackendError("it states more than it may: " + excess);
  };
  options.hears_conventions = [watch](const std::string&, const Conventions& stated) {
    watch->note(watch->permitted_.excess(stated));
  };
  return options;
}

void StatementWatch::note(const std::string& excess) {
  const std::lock_guard lock(mutex_);
  if (excess_.empty()) excess_ = excess;
}

std::string StatementWatch::excess() const {
  const std::lock_guard lock(mutex_);
  return excess_;
}

}  // namespace attest
