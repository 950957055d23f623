// The rows of one query head with their bounds, whichever operator it is.
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
  /// Fills `row` with row i; lists that the operator doesn't know stay empty. Rows are asked for in ascending order.
  virtual void attend(std::int64_t i, Row& row) = 0;
  /// Bounds of the row just filled, for the n-th producer.
  virtual void bound(std::size_t n, const Row& row, RowBound& bound) = 0;
  /// Standard deviations (reference/bounds/error_deviation.h) of these output columns of the row just filled, a list
  /// for each producer; infinite where the operator claims none.
  virtual std::vector<std::vector<double>> deviations(const Row& row, std::span<const std::int64_t> columns) = 0;
};

/// Keeps references to the call and the inputs; they outlive it.
std::unique_ptr<HeadReference> make_head_reference(const Call& call, const Inputs& inputs, std::int64_t b,
                                                   std::int64_t h, const std::vector<Producer>& producers);

/// Every row of a small call, in the order b, h, i.
std::vector<Row> reference_rows(const Call& call, const Inputs& inputs);

}  // namespace attest
