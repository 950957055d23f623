// The text form of a Problem: one line, parsed and printed.
//
//   batch=2 heads=8/2 seq=128x512 dim=64 causal align=bottom-right window=127:0 fill=spread(88) seed=7
//
// print_case gives the canonical line: keys in the order of the table of options, defaults left out, numbers in the
// shortest form that reads back the same. parse_case(print_case(p)) == p.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "reference/call/problem.h"

namespace attest {

/// A line that is no case. what() is one sentence without a position; column counts from 1.
class CaseError : public std::runtime_error {
 public:
  CaseError(std::size_t column, const std::string& message) : std::runtime_error(message), column_(column) {}
  std::size_t column() const { return column_; }

 private:
  std::size_t column_;
};

/// Throws CaseError. The line must not hold a comment.
Problem parse_case(std::string_view line);

/// Adds the options of `tokens` (a case line without the sizes) to a problem whose sizes come from
/// elsewhere, as tensors in a file. Throws CaseError, also when `tokens` sets a size.
Problem with_options(const Problem& sizes, std::string_view tokens);

std::string print_case(const Problem& problem);

/// The case line of a call: nothing of data, masks and blocks without fills. parse_case gives the same call.
std::string print_call(const Call& call);

/// As the canonical line says it; nullopt where it is no case.
std::optional<Problem> canonical(const Problem& problem);

/// Shortest text that reads back as the same double.
std::string print_number(double value);

/// Fills that `fill=` and `q.fill=` take, and those of block masks and masks, with the numbers each one needs.
struct FillName {
  std::string_view name;
  std::size_t arguments;
};
const std::vector<FillName>& tensor_fills();
const std::vector<FillName>& block_fills();
const std::vector<FillName>& boolean_mask_fills();
const std::vector<FillName>& additive_mask_fills();
/// Of the lists of keys that queries select.
const std::vector<FillName>& select_fills();
/// Of the parts of a merge: the share of them that is empty.
const std::vector<FillName>& part_fills();
/// Of decay, beta and state.
const std::vector<FillName>& input_fills();

}  // namespace attest
