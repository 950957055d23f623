// Rows of q and k as they are multiplied, where the kernel prepares them:
//
//   norm     x_t becomes x_t / sqrt(mean of x^2 + eps) * w_t
//   rope     features x and y of a pair become x*c - y*s and x*s + y*c, with c and s of the row's position
//
// The norm stands before the rotation, or after it (Call::norm_after_rope).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

enum class Operand : std::uint8_t { query, key };

/// What the steps cost an arithmetic: component t is off by at most c * magnitudes[t] + eta * underflow, with c the
/// cost of a component (BoundConstants::of_preparation).
struct PreparationCost {
  std::vector<double> magnitudes;
  double underflow = 0;
  double largest_step = 0;  ///< magnitude of what is computed on the way: beyond the range it proves nothing
  /// Of a row that is stored behind its steps: how far its component t may be from the exact one as it is stored, in
  /// an arithmetic whose cost of a component is at most kept_cost(). Empty where the row isn't stored.
  std::vector<double> stored;

  bool empty() const { return magnitudes.empty(); }
};

/// A cost of a component beyond it proves nothing: below it, a product of two costs is this much of one.
inline constexpr double kLargestPreparation = 0x1p-10;

/// The position of query i or of key j: a row of the tables.
std::int64_t position_of(const Call& call, const Inputs& inputs, Operand operand, std::int64_t b, std::int64_t row);

/// Whether the row goes through these steps: a cached key may have done so before it was stored.
bool is_prepared(const Call& call, const Inputs& inputs, Operand operand, std::int64_t b, std::int64_t row);

/// Whether key `row` is one that the call appends to a cache whose keys are rotated and normalised already.
bool is_stored_prepared(const Call& call, std::int64_t b, std::int64_t row);

/// The cost of a component that a row's roundings in a cache are found for: that of loops in the call's accumulator.
double kept_cost(const Call& call);

/// Replaces `values`, Dqk entries as they are stored, by what is multiplied. The row is one that is_prepared().
PreparationCost prepare_row(const Call& call, const Inputs& inputs, Operand operand, std::int64_t b, std::int64_t row,
                            std::span<double> values);

/// The same of a key that is_stored_prepared(): `values` become what the cache holds, numbers of its type.
PreparationCost prepare_for_cache(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t row,
                                  std::span<double> values);

/// The factors of the scores of query i of head h in batch b, one after the other.
struct ScoreScale {
  double value = 1;   ///< their product
  double larger = 1;  ///< the product of those that are larger than 1: no order of the factors makes a score larger
  double least = 1;   ///< the product of those that are smaller: nor smaller
};
ScoreScale score_scale(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i);

}  // namespace attest
