#include "harness/verdict/restatement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "harness/base/backend_source.h"
#include "reference/arithmetic/rounding.h"

namespace attest {
namespace {

std::string text_of(bool flag) { return flag ? "true" : "false"; }
std::string text_of(DType type) { return std::string(name_of(type)); }
std::string text_of(ScalePlacement place) { return std::string(name_of(place)); }
std::string text_of(Division division) { return std::string(name_of(division)); }
std::string text_of(OperandFormat format) { return std::string(name_of(format)); }
std::string text_of(const Sum& sum) {
  std::string text(name_of(sum.format));
  if (sum.promote > 0) text += fmt::format(", promote {}", sum.promote);
  if (sum.width > 1) text += fmt::format(", width {}", sum.width);
  if (sum.bits > 0) text += fmt::format(", bits {}", sum.bits);
  return text + (sum.directed ? ", directed" : "");
}
std::string text_of(const OperandRounding& own) {
  std::string text = own.step == 0 ? fmt::format("step of {} rows, {} columns", own.rows, own.columns)
                                   : fmt::format("step {:g}", own.step);
  if (own.power_of_two) text += ", power of two";
  return text + (own.directed ? ", directed" : "") + (own.mean_removed ? ", mean removed" : "");
}
std::string text_of(double number) { return fmt::format("{:g}", number); }
std::string text_of(int number) { return std::to_string(number); }
std::string text_of(std::int64_t number) { return std::to_string(number); }

/// Calls visit(name, member) for each member, in order.
template <class Visit>
void each_member(const Visit& visit) {
  visit("accumulator", &Arithmetic::accumulator);
  visit("stored_weights", &Arithmetic::stored_weights);
  visit("exp_ulps", &Arithmetic::exp_ulps);
  visit("log_ulps", &Arithmetic::log_ulps);
  visit("tanh_ulps", &Arithmetic::tanh_ulps);
  visit("base2", &Arithmetic::base2);
  visit("scale", &Arithmetic::scale);
  visit("division", &Arithmetic::division);
  visit("key_block", &Arithmetic::key_block);
  visit("lazy_threshold", &Arithmetic::lazy_threshold);
  visit("normalised_before_storage", &Arithmetic::normalised_before_storage);
  visit("stored_scores", &Arithmetic::stored_scores);
  visit("score_stores", &Arithmetic::score_stores);
  visit("sum_of_stored", &Arithmetic::sum_of_stored);
  visit("flush_to_zero", &Arithmetic::flush_to_zero);
  visit("state_chunk", &Arithmetic::state_chunk);
  visit("parts", &Arithmetic::parts);
  visit("stored_parts", &Arithmetic::stored_parts);
  visit("fused_log2e", &Arithmetic::fused_log2e);
  visit("no_maximum", &Arithmetic::no_maximum);
  visit("weights_from_lse", &Arithmetic::weights_from_lse);
  visit("kept_weights", &Arithmetic::kept_weights);
  visit("delta_from_weights", &Arithmetic::delta_from_weights);
  visit("stored_score_gradients", &Arithmetic::stored_score_gradients);
  visit("stored_head_gradients", &Arithmetic::stored_head_gradients);
  visit("varying_order", &Arithmetic::varying_order);
  visit("query_operand", &Arithmetic::query_operand);
  visit("key_operand", &Arithmetic::key_operand);
  visit("value_operand", &Arithmetic::value_operand);
  visit("weight_operand", &Arithmetic::weight_operand);
  visit("score_sum", &Arithmetic::score_sum);
  visit("value_sum", &Arithmetic::value_sum);
  visit("weight_sum", &Arithmetic::weight_sum);
  visit("score_roundings", &Arithmetic::score_roundings);
  visit("output_roundings", &Arithmetic::output_roundings);
  visit("weight_factor", &Arithmetic::weight_factor);
  visit("exp_absolute", &Arithmetic::exp_absolute);
  visit("exp_argument", &Arithmetic::exp_argument);
  visit("rescale_ulps", &Arithmetic::rescale_ulps);
  visit("query_rounding", &Arithmetic::query_rounding);
  visit("key_rounding", &Arithmetic::key_rounding);
  visit("value_rounding", &Arithmetic::value_rounding);
  visit("weight_rounding", &Arithmetic::weight_rounding);
}

/// The members in which two arithmetics differ, as the second one states them.
std::vector<StatedField> changes_between(const Arithmetic& from, const Arithmetic& to) {
  std::vector<StatedField> fields;
  each_member([&](const char* name, auto member) {
    if (from.*member != to.*member) fields.push_back({name, text_of(to.*member)});
  });
  return fields;
}

/// Gathers restatements of one arithmetic.
class Gathering {
 public:
  explicit Gathering(const Arithmetic& stated) : stated_(stated) {}

  /// Unless it says what is stated already, or the same in other words.
  void say(std::string_view probe, std::function<void(Arithmetic&)> make, bool of_weights = false,
           bool measured = false) {
    Arithmetic other = stated_;
    make(other);
    std::vector<StatedField> fields = changes_between(stated_, other);
    if (!fields.empty()) list_.push_back({probe, std::move(fields), std::move(make), of_weights, measured});
  }
  /// A number in steps beyond what is stated.
  void widen(std::string_view probe, double Arithmetic::*member, const std::vector<double>& values) {
    for (const double value : values) {
      if (value > stated_.*member)
        say(
            probe, [member, value](Arithmetic& to) { to.*member = value; }, false, true);
    }
  }
  std::vector<Restatement> take() { return std::move(list_); }

 private:
  const Arithmetic& stated_;
  std::vector<Restatement> list_;
};

void say_of_types(const Arithmetic& a, Gathering& all) {
  const auto held = [&](DType type) { return narrower(type, a.accumulator) ? type : a.accumulator; };
  for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if (type == DType::f64 || type == DType::f32) {
      all.say("accumulator", [type](Arithmetic& to) { to.accumulator = type; });
    }
    if (narrower(a.accumulator, type) || type == held(a.stored_weights)) continue;
    all.say(
        "stored_weights", [type](Arithmetic& to) { to.stored_weights = type; }, true);
  }
  all.say(
      "normalised_before_storage", [](Arithmetic& to) { to.normalised_before_storage = !to.normalised_before_storage; },
      true);
  all.say(
      "sum_of_stored", [](Arithmetic& to) { to.sum_of_stored = !to.sum_of_stored; }, true);
  if (a.score_stores > 0 && narrower(a.stored_scores, a.accumulator))
    all.say(
        "stored_scores", [](Arithmetic& to) { to.score_stores = 0; }, true);
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (int n = 1; narrower(type, a.accumulator) && n <= 4; ++n) {
      all.say(
          "stored_scores",
          [type, n](Arithmetic& to) {
            to.stored_scores = type;
            to.score_stores = n;
          },
          true);
    }
  }
}

}  // namespace

std::vector<StatedField> stated_fields(const Arithmetic& arithmetic) {
  std::vector<StatedField> fields;
  each_member([&](const char* name, auto member) { fields.push_back({name, text_of(arithmetic.*member)}); });
  return fields;
}

std::vector<Restatement> restatements(const Arithmetic& a) {
  Gathering all(a);
  say_of_types(a, all);
  all.say("base2", [](Arithmetic& to) { to.base2 = !to.base2; });
  for (ScalePlacement place : values_of<ScalePlacement>()) {
    all.say("scale", [place](Arithmetic& to) { to.scale = place; });
  }
  all.say("fused_log2e", [](Arithmetic& to) { to.fused_log2e = !to.fused_log2e; });
  for (Division division : {Division::reciprocal, Division::opencl_division, Division::opencl_reciprocal}) {
    if (division_roundings(division) > division_roundings(a.division) || division == Division::reciprocal)
      all.say("division", [division](Arithmetic& to) { to.division = division; });
  }
  all.say("no_maximum", [](Arithmetic& to) { to.no_maximum = !to.no_maximum; });
  all.say("weights_from_lse", [](Arithmetic& to) { to.weights_from_lse = !to.weights_from_lse; });
  all.say("kept_weights", [](Arithmetic& to) { to.kept_weights = !to.kept_weights; });
  all.say("delta_from_weights", [](Arithmetic& to) { to.delta_from_weights = !to.delta_from_weights; });
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    if (!narrower(type, a.accumulator)) continue;
    all.say("stored_score_gradients", [type](Arithmetic& to) { to.stored_score_gradients = type; });
    all.say("stored_head_gradients", [type](Arithmetic& to) { to.stored_head_gradients = type; });
  }
  if (!a.flush_to_zero) all.say("flush_to_zero", [](Arithmetic& to) { to.flush_to_zero = true; });
  all.widen("exp_ulps", &Arithmetic::exp_ulps, {8, 32, 128, 512});
  all.widen("log_ulps", &Arithmetic::log_ulps, {8, 32, 128, 512});
  all.widen("tanh_ulps", &Arithmetic::tanh_ulps, {8, 32, 128, 512, 2048, 8192});  // tanh.approx of GPUs: 2^-11
  for (const std::int64_t block : {256, 128, 64, 32, 16, 8, 1}) {
    if (a.key_block == 0 || block < a.key_block)
      all.say(
          "key_block", [block](Arithmetic& to) { to.key_block = block; }, false, true);
  }
  if (a.key_block > 0) all.widen("lazy_threshold", &Arithmetic::lazy_threshold, {6, 8, 12});
  for (const std::int64_t chunk : {16, 64, 256}) {
    all.say(
        "state_chunk", [chunk](Arithmetic& to) { to.state_chunk = chunk; }, false, true);
  }
  for (const std::int64_t parts : {2, 8, 32}) {
    if (parts > a.parts)
      all.say(
          "parts", [parts](Arithmetic& to) { to.parts = parts; }, false, true);
  }
  return all.take();
}

bool fault_in(const Arithmetic& a) {
  const bool weights_stored = narrower(a.stored_weights, a.accumulator) || a.weight_operand != OperandFormat::exact;
  return (a.sum_of_stored && (!weights_stored || a.normalised_before_storage)) || (a.base2 && a.fused_log2e) ||
         (a.scale == ScalePlacement::folded_log2e && !a.base2) ||
         (a.no_maximum && (a.key_block > 0 || a.lazy_threshold > 0 || a.parts > 0));
}

StatementLanguage language_of(const std::string& source) {
  if (source.empty()) return StatementLanguage::cpp;
  const bool object = source.starts_with(kPythonObject) || source.starts_with(kObjectHere);
  return object ? StatementLanguage::python : StatementLanguage::c;
}

std::string statement_text(const std::vector<StatedField>& fields) {
  std::string text;
  for (const StatedField& field : fields) {
    text += text.empty() ? "" : ", ";
    text += field.value == "true" ? std::string(field.key) : fmt::format("{}={}", field.key, field.value);
  }
  return text;
}

namespace {

enum class Kind { flag, type, scale, division, operand, number };

Kind kind_of(const StatedField& field) {
  if (field.value == "true" || field.value == "false") return Kind::flag;
  if (field.key == "scale") return Kind::scale;
  if (field.key == "division") return Kind::division;
  if (field.key.ends_with("_operand") || field.key == "exp_argument") return Kind::operand;
  return value_named<DType>(field.value) ? Kind::type : Kind::number;
}

std::string in_python(const StatedField& field) {
  switch (kind_of(field)) {
    case Kind::flag: return field.value == "true" ? "True" : "False";
    case Kind::number: return field.value;
    default: return '"' + field.value + '"';
  }
}

std::string in_c(const StatedField& field) {
  std::string upper = field.value;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  switch (kind_of(field)) {
    case Kind::flag: return field.value == "true" ? "1" : "0";
    case Kind::type: return "ATTEST_" + upper;
    case Kind::scale: return "ATTEST_SCALE_" + upper;
    case Kind::division: return "ATTEST_DIVISION_" + (upper == "OPENCL_DIVISION" ? "OPENCL" : upper);
    case Kind::operand: return "ATTEST_OPERAND_" + upper;
    case Kind::number: return field.value;
  }
  return field.value;
}

std::string in_cpp(const StatedField& field) {
  switch (kind_of(field)) {
    case Kind::type: return "DType::" + field.value;
    case Kind::scale: return "ScalePlacement::" + field.value;
    case Kind::division: return "Division::" + field.value;
    case Kind::operand: return "OperandFormat::" + field.value;
    default: return field.value;
  }
}

}  // namespace

std::string statement_code(const std::vector<StatedField>& fields, StatementLanguage language) {
  std::string text;
  for (const StatedField& field : fields) {
    text += text.empty() ? "" : language == StatementLanguage::python ? ", " : " ";
    switch (language) {
      case StatementLanguage::python: text += fmt::format("\"{}\": {}", field.key, in_python(field)); break;
      case StatementLanguage::c: text += fmt::format("arithmetic->{} = {};", field.key, in_c(field)); break;
      case StatementLanguage::cpp: text += fmt::format("arithmetic.{} = {};", field.key, in_cpp(field)); break;
    }
  }
  return language == StatementLanguage::python ? "arithmetic={" + text + "}" : text;
}

}  // namespace attest
