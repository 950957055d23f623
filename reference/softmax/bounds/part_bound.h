// A row whose keys are spread over parts: what merging the parts' results gives, and how far a correct merge may stray.
#pragma once

#include <span>
#include <vector>

#include "reference/arithmetic/arithmetic.h"

namespace attest {

/// One part's result for a row: exact, with how far the computed one may be off before it is stored for its way.
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
MergedRow merge_parts(std::span<const PartOfRow> parts);

struct MergeBound {
  std::vector<double> out;
  double lse = 0;
};

/// Of a merge by logsumexp in `arithmetic`, of which the accumulator, exp, log, division and flushing count, in any
/// order of the parts: how far it may be from the exact result, which is `merged` but for float64's own rounding.
/// `sent` is the type in which the parts' results travel (logsumexp: the accumulator's), `stored` that of the result.
/// Infinite where the arithmetic may overflow and where a part's numbers are not finite: nothing is said there.
MergeBound bound_merge(std::span<const PartOfRow> parts, const MergedRow& merged, const Arithmetic& arithmetic,
                       DType sent, DType stored);

}  // namespace attest
