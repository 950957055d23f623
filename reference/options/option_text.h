// Values of options as text: how each kind of value is read, with the column of what is wrong, and printed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/base/nearest.h"
#include "reference/call/problem.h"
#include "reference/options/case_line.h"

namespace attest {

/// A value in a case line, with the column at which it starts.
struct OptionText {
  std::string_view text;
  std::size_t column = 1;

  /// Throws CaseError at this column.
  [[noreturn]] void fail(const std::string& message) const;

  /// Parts between separators; each knows its own column. No separator: one part.
  std::vector<OptionText> split(char separator) const;
};

std::string quoted(std::string_view text);

/// What to write for a word that is none of these names: as the field's word is said here, or the nearest name.
std::string said_here(std::string_view word, const std::vector<std::string>& names);
template <class Names>
std::string said_here(std::string_view word, const Names& names) {
  return said_here(word, std::vector<std::string>(std::begin(names), std::end(names)));
}

// Readers. `what` names the value in messages: "a batch size". All throw CaseError.

std::int64_t parse_integer(const OptionText& value, std::int64_t min, const std::string& what);
double parse_number(const OptionText& value, const std::string& what);
/// Separated by commas; with `minus_infinity`, "-inf" is one of them.
std::vector<double> parse_numbers(const OptionText& value, const std::string& what, bool minus_infinity = false);
/// "a" or "a<separator>b"; one number stands for both.
std::pair<std::int64_t, std::int64_t> parse_pair(const OptionText& value, char separator, std::int64_t min,
                                                 const std::string& what);
/// "5,9" for keys alone, or "q:5,9/k:8,8".
LengthSpec parse_lengths(const OptionText& value, const std::string& what);
std::int64_t parse_window_side(const OptionText& value);
std::uint64_t parse_seed(const OptionText& value);
Index4 parse_strides(const OptionText& value, bool zero_allowed);
/// Letters of BHQK, each kept or 1.
std::array<bool, 4> parse_mask_axes(const OptionText& value);
/// "name" or "name(1,2)" with numbers in the range that the fill takes.
Fill parse_fill(const OptionText& value, const std::vector<FillName>& known);

/// The place of a name in a list.
template <class Names>
std::size_t parse_name(const OptionText& value, const Names& names, const std::string& what) {
  for (std::size_t n = 0; n < std::size(names); ++n) {
    if (value.text == names[n]) return n;
  }
  value.fail(quoted(value.text) + " is no " + what + "; " + said_here(value.text, names));
}

template <NamedEnum E>
E parse_enum(const OptionText& value, const std::string& what) {
  return values_of<E>()[parse_name(value, kNames<E>, what)];
}

// Printers, the inverse.

template <class List, class Print>
std::string joined(const List& list, const Print& print, const char* separator = ",") {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : separator) + print(item);
  return text;
}
std::string integer_text(std::int64_t value);
std::string pair_text(std::int64_t first, std::int64_t second, char separator);
std::string fill_text(const Fill& fill);
std::string window_side_text(std::int64_t side);
std::string lengths_text(const LengthSpec& spec);
std::string mask_axes_text(const std::array<bool, 4>& kept);

}  // namespace attest
