#include "reference/options/option_text.h"

#include <charconv>
#include <cmath>
#include <set>

#include "reference/options/field_words.h"

namespace attest {
namespace {

using Text = std::string_view;

constexpr double kLargestSize = 0x1p53;

void check_fill_range(const OptionText& value, const Fill& fill) {
  static const std::set<Text> probabilities = {"random", "rows", "neginf", "finitemin", "padding", "empty"};
  if (probabilities.contains(fill.name) && !(fill.args[0] >= 0 && fill.args[0] <= 1)) {
    value.fail(fill.name + " takes a probability between 0 and 1");
  }
  if (fill.name == "band" && !(fill.args[0] >= 0)) value.fail("band takes a width of at least 0");
  static const std::set<Text> sizes = {"blocks", "tree", "spans", "chunks"};
  const bool whole = fill.name != "blocks";  // of the others, which came later
  if (sizes.contains(fill.name) &&
      !(fill.args[0] >= 1 && fill.args[0] <= kLargestSize && (!whole || std::trunc(fill.args[0]) == fill.args[0]))) {
    value.fail(fill.name + " takes a " + (whole ? "whole number" : "size") + " from 1 to 2^53");
  }
  for (double arg : fill.args) {
    if (std::fabs(arg) > 1e300) value.fail(fill.name + " takes numbers up to 1e300");
  }
}

std::vector<std::int64_t> parse_list(const OptionText& value, const std::string& what) {
  std::vector<std::int64_t> list;
  for (const OptionText& part : value.split(',')) list.push_back(parse_integer(part, 0, what));
  return list;
}

}  // namespace

void OptionText::fail(const std::string& message) const { throw CaseError(column, message); }

std::vector<OptionText> OptionText::split(char separator) const {
  std::vector<OptionText> parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at == text.size() || text[at] == separator) {
      parts.push_back({text.substr(begin, at - begin), column + begin});
      begin = at + 1;
    }
  }
  return parts;
}

std::string quoted(Text text) { return "\"" + std::string(text) + "\""; }

std::string said_here(std::string_view word, const std::vector<std::string>& names) {
  if (const FieldWord* row = find_field_word(word)) {
    const std::string about(row->about);
    return row->here.empty() ? "there is none here: " + about : "here: " + std::string(row->here) + " (" + about + ")";
  }
  return "nearest: " + nearest_name(word, names);
}

std::int64_t parse_integer(const OptionText& value, std::int64_t min, const std::string& what) {
  std::int64_t number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error == std::errc::result_out_of_range) value.fail(quoted(value.text) + " is too large for " + what);
  if (error != std::errc() || stop != end) value.fail(quoted(value.text) + " is not " + what);
  if (number < min) {
    value.fail(what + " must be at least " + std::to_string(min) + ", not " + std::to_string(number));
  }
  return number;
}

double parse_number(const OptionText& value, const std::string& what) {
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number)) {
    value.fail(quoted(value.text) + " is not a finite number for " + what);
  }
  return number;
}

std::vector<double> parse_numbers(const OptionText& value, const std::string& what, bool minus_infinity) {
  std::vector<double> list;
  for (const OptionText& part : value.split(',')) {
    list.push_back(minus_infinity && part.text == "-inf" ? -kInfinity : parse_number(part, what));
  }
  return list;
}

Fill parse_fill(const OptionText& value, const std::vector<FillName>& known) {
  const std::size_t open = value.text.find('(');
  const Text name = value.text.substr(0, open);
  std::vector<Text> names;
  for (const FillName& fill : known) names.push_back(fill.name);
  const auto found = std::find_if(known.begin(), known.end(), [&](const FillName& f) { return f.name == name; });
  if (found == known.end()) value.fail(quoted(name) + " is no fill here; nearest: " + nearest_name(name, names));
  Fill fill{std::string(name), {}};
  if (open != Text::npos) {
    if (value.text.back() != ')') value.fail(quoted(value.text) + " lacks the closing parenthesis");
    const OptionText inside{value.text.substr(open + 1, value.text.size() - open - 2), value.column + open + 1};
    fill.args = parse_numbers(inside, std::string(name));
  }
  if (fill.args.size() != found->arguments) {
    value.fail(std::string(name) + " takes " + std::to_string(found->arguments) + " number(s), not " +
               std::to_string(fill.args.size()));
  }
  check_fill_range(value, fill);
  return fill;
}

std::array<bool, 4> parse_mask_axes(const OptionText& value) {
  constexpr Text letters = "BHQK";
  std::array<bool, 4> kept{};
  bool fits = value.text.size() == 4;
  for (std::size_t n = 0; fits && n < 4; ++n) {
    kept[n] = value.text[n] == letters[n];
    fits = kept[n] || value.text[n] == '1';
  }
  if (!fits) value.fail(quoted(value.text) + " is no mask pattern: the letters BHQK in order, each kept or 1");
  return kept;
}

LengthSpec parse_lengths(const OptionText& value, const std::string& what) {
  LengthSpec spec;
  const std::vector<OptionText> parts = value.split('/');
  const auto tail = [](const OptionText& part) { return OptionText{part.text.substr(2), part.column + 2}; };
  if (parts.size() == 1 && !value.text.starts_with("q:") && !value.text.starts_with("k:")) {
    spec.key = parse_list(value, what);
  } else if (parts.size() == 2 && parts[0].text.starts_with("q:") && parts[1].text.starts_with("k:")) {
    spec.query = parse_list(tail(parts[0]), what);
    spec.key = parse_list(tail(parts[1]), what);
  } else {
    value.fail(quoted(value.text) + " is neither a list 5,9 nor q:5,9/k:8,8");
  }
  return spec;
}

std::pair<std::int64_t, std::int64_t> parse_pair(const OptionText& value, char separator, std::int64_t min,
                                                 const std::string& what) {
  const std::vector<OptionText> parts = value.split(separator);
  if (parts.size() > 2) value.fail(quoted(value.text) + " is not " + what);
  const std::int64_t first = parse_integer(parts[0], min, what);
  return {first, parts.size() == 2 ? parse_integer(parts[1], min, what) : first};
}

std::int64_t parse_window_side(const OptionText& value) {
  return value.text == "inf" ? Call::kUnbounded : parse_integer(value, 0, "a window side (a number or inf)");
}

std::uint64_t parse_seed(const OptionText& value) {
  std::uint64_t seed = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, seed);
  if (error != std::errc() || stop != end) value.fail(quoted(value.text) + " is not a 64-bit seed");
  return seed;
}

Index4 parse_strides(const OptionText& value, bool zero_allowed) {
  const std::vector<OptionText> parts = value.split(',');
  if (parts.size() != 4) value.fail("four element strides are wanted, in the order b,h,l,d");
  Index4 strides{};
  for (std::size_t n = 0; n < 4; ++n) strides[n] = parse_integer(parts[n], zero_allowed ? 0 : 1, "a stride");
  return strides;
}

std::string integer_text(std::int64_t value) { return std::to_string(value); }

std::string pair_text(std::int64_t first, std::int64_t second, char separator) {
  return first == second ? integer_text(first) : integer_text(first) + separator + integer_text(second);
}

std::string fill_text(const Fill& fill) {
  return fill.args.empty() ? fill.name : fill.name + "(" + joined(fill.args, print_number) + ")";
}

std::string window_side_text(std::int64_t side) { return side == Call::kUnbounded ? "inf" : integer_text(side); }

std::string lengths_text(const LengthSpec& spec) {
  const std::string keys = joined(spec.key, integer_text);
  return spec.query.empty() ? keys : "q:" + joined(spec.query, integer_text) + "/k:" + keys;
}

std::string mask_axes_text(const std::array<bool, 4>& kept) {
  std::string axes = "BHQK";
  for (std::size_t n = 0; n < 4; ++n) {
    if (!kept[n]) axes[n] = '1';
  }
  return axes;
}

std::string print_number(double value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

const std::vector<FillName>& tensor_fills() {
  static const std::vector<FillName> fills = {
      {"normal", 0}, {"uniform", 0}, {"spread", 1}, {"ties", 0},  {"onehot", 0},   {"constant", 1}, {"denormal", 0},
      {"huge", 0},   {"integer", 0}, {"cancel", 0}, {"mixed", 0}, {"infinite", 1}, {"largest", 1},  {"activations", 0}};
  return fills;
}

const std::vector<FillName>& block_fills() {
  static const std::vector<FillName> fills = {{"random", 1}, {"band", 1}, {"blocks", 1},
                                              {"rows", 1},   {"none", 0}, {"all", 0}};
  return fills;
}

const std::vector<FillName>& boolean_mask_fills() {
  static const std::vector<FillName> fills = {{"random", 1}, {"band", 1}, {"blocks", 1}, {"rows", 1},  {"none", 0},
                                              {"all", 0},    {"tree", 1}, {"spans", 1},  {"chunks", 1}};
  return fills;
}

const std::vector<FillName>& additive_mask_fills() {
  static const std::vector<FillName> fills = {{"normal", 0}, {"neginf", 1}, {"finitemin", 1}, {"band", 1},
                                              {"large", 0},  {"nan", 1},    {"nonfinite", 1}, {"padding", 1},
                                              {"wide", 0},   {"tree", 1},   {"spans", 1},     {"chunks", 1}};
  return fills;
}

const std::vector<FillName>& select_fills() {
  static const std::vector<FillName> fills = {{"distinct", 0}, {"random", 1}, {"repeated", 1}, {"after", 1}};
  return fills;
}

const std::vector<FillName>& part_fills() {
  static const std::vector<FillName> fills = {{"empty", 1}};
  return fills;
}

const std::vector<FillName>& input_fills() {
  static const std::vector<FillName> fills = {{"uniform", 0}, {"wide", 0}};
  return fills;
}

}  // namespace attest
