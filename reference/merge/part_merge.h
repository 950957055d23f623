// One row of partial results of softmax attention: what merging them gives, and how far a correct merge may stray.
//
// clang-format off
//   weights  w_x = exp(L_x - m), m = max over x of L_x
//   output   o = sum over x of w_x * o_x / sum over x of w_x
//   lse      L = m + log(sum over x of w_x)
// clang-format on
//
// A part whose L_x is -inf saw nothing: its o_x is not read, and may hold anything. Without any other part o is 0 and L
// is -inf. In base 2, exp and log are exp2 and log2. An L_x of NaN or +inf makes o and L NaN.
#pragma once

#include <span>
#include <vector>

#include "reference/arithmetic/arithmetic.h"

namespace attest {

/// One part's result for a row, with how far it may be off.
struct PartOfRow {
  std::vector<double> out;  ///< Dv entries; not looked at where lse is -inf, which is a part that sees nothing
  double lse = 0;
  std::vector<double> out_error;  ///< Dv entries, or none for results without error
  double lse_error = 0;
};

struct MergedRow {
  std::vector<double> out;  ///< zeros where no part sees anything
  double lse = 0;           ///< -inf there
};

/// In float64. There is at least one part, and all have as many entries.
MergedRow merge_parts(std::span<const PartOfRow> parts, bool base2 = false);

/// How far a merge in `arithmetic`, in any order of the parts, may be from the exact result, before it is stored.
/// `merged` is the exact result but for float64's own rounding. Of the arithmetic the accumulator, exp, log, their
/// base, division, its place, flushing and `key_block` count: where it isn't 0, parts are merged one by one or in a
/// tree, but not divided before the end. Infinite where the arithmetic may overflow, and where an infinity may be lost.
MergedRow bound_merge(std::span<const PartOfRow> parts, const MergedRow& merged, const Arithmetic& arithmetic,
                      bool base2 = false);

}  // namespace attest
