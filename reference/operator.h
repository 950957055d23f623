// What everything outside reference/ needs of an operator, whichever one it is: its rows with their bounds, the
// tensors that only it reads or writes, and its useful work. A new operator is added here and nowhere in the harness.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "reference/arithmetic.h"
#include "reference/attention.h"
#include "reference/error_bound.h"
#include "reference/problem.h"
#include "reference/view.h"

namespace attest {

/// An arithmetic together with the type in which its results are handed over.
struct Producer {
  Arithmetic arithmetic;
  DType stored = DType::f32;
  bool operator==(const Producer&) const = default;
};

/// One query head of one batch.
class HeadReference {
 public:
  virtual ~HeadReference() = default;
  /// Fills `row` with row i; lists that the operator doesn't know stay empty. Rows are asked for in ascending order.
  virtual void attend(std::int64_t i, Row& row) = 0;
  /// Bounds of the row just filled, for the n-th producer.
  virtual void bound(std::size_t n, const Row& row, RowBound& bound) = 0;
  /// Standard deviations (error_deviation.h) of these output columns of the row just filled, a list for each producer;
  /// infinite where the operator claims none.
  virtual std::vector<std::vector<double>> deviations(const Row& row, std::span<const std::int64_t> columns) = 0;
};

/// Keeps references to the problem and the inputs; they outlive it.
std::unique_ptr<HeadReference> make_head_reference(const Problem& problem, const Inputs& inputs, std::int64_t b,
                                                   std::int64_t h, const std::vector<Producer>& producers);

/// Every row of a small problem, in the order b, h, i.
std::vector<Row> reference_rows(const Problem& problem, const Inputs& inputs);

/// An input besides q, k, v and what belongs to masks and caches. Case lines fill it with uniform numbers.
struct ExtraInput {
  std::string_view name;
  ConstTensor Inputs::*place;
  Index4 shape;  ///< as stored; axes of extent 1 are broadcast to `full`
  Index4 full;
  double low, high;
};
std::vector<ExtraInput> extra_inputs(const Problem& problem);

/// What `out=present` asks for.
struct PresentOutput {
  std::string_view name;
  std::optional<MutableTensor> Outputs::*place;
  Index4 shape;
  bool copied;  ///< from inputs, bit for bit
};
std::vector<PresentOutput> present_outputs(const Problem& problem);

/// The elements of one present output in the order of its axes, and for each producer how far they may stray.
struct PresentValues {
  std::vector<double> values;
  std::vector<std::vector<double>> bounds;
};
PresentValues expect_present(const Problem& problem, const Inputs& inputs, const PresentOutput& output,
                             const std::vector<Producer>& producers);

/// Multiply-adds of the reference for one row, about.
double row_operations(const Problem& problem);
/// Visible (query, key) pairs of all heads and batches.
double count_visible_pairs(const Problem& problem, const Inputs& inputs);
/// Operations that a benchmark counts: for softmax attention those of visible pairs.
double useful_operations(const Problem& problem, const Inputs& inputs);

/// k as a fill gives it, divided by this: the delta rules want keys of about unit length.
double key_divisor(const Problem& problem);

}  // namespace attest
