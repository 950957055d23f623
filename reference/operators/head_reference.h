// The reference for one query head, row by row with error bounds, for every operator.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/bounds/error_bound.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"
#include "reference/softmax/attention.h"

namespace attest {

/// One query head of one batch.
class HeadReference {
 public:
  virtual ~HeadReference() = default;
  /// Fills `row` with row i; lists that the operator does not have stay empty. Call it with ascending rows.
  virtual void attend(std::int64_t i, Row& row) = 0;
  /// The bounds of the row that was filled last, for the n-th producer.
  virtual void bound(std::size_t n, const Row& row, RowBound& bound) = 0;
  /// Standard deviations (reference/bounds/error_deviation.h) of these output columns of the row just filled, a list
  /// for each producer; infinite where the operator claims none.
  virtual std::vector<std::vector<double>> deviations(const Row& row, std::span<const std::int64_t> columns) = 0;
};

/// Keeps references to the call and the inputs; they outlive it.
std::unique_ptr<HeadReference> make_head_reference(const Call& call, const Inputs& inputs, std::int64_t b,
                                                   std::int64_t h, const std::vector<Producer>& producers);

/// All rows of a small call, in the order b, h, i.
std::vector<Row> reference_rows(const Call& call, const Inputs& inputs);

}  // namespace attest
