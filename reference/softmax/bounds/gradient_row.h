// The gradients of one query row with their errors for each producer: rows of dq and sums over rows are made from them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/softmax/bounds/error_bound.h"
#include "reference/softmax/bounds/gradient_bound.h"

namespace attest {

class GradientRow {
 public:
  /// Keeps references to the call and the inputs; they outlive it.
  GradientRow(const Call& call, const Inputs& inputs, const std::vector<Producer>& producers);

  /// `row` must be row i of `head`, and stay while it is asked.
  void set(const Head& head, const Row& row, std::int64_t i);
  const RowLoss& loss() const { return loss_; }
  const RowGradient& gradient() const { return gradient_; }
  /// For the n-th producer, as it makes this result. `wanted`: with terms.
  const RowGradientErrors& errors(std::size_t n, TensorId result, TermsOf wanted = TermsOf::nothing);
  const BoundConstants& constants(std::size_t n, TensorId result) const { return one_of(n, result).constants; }

 private:
  /// An arithmetic that a producer states for all results or for one.
  struct Stated {
    std::optional<TensorId> result;  ///< unset: of all others
    BoundConstants constants;        ///< with weights among the results where they are kept, not stored in a type
    RowGradientErrors errors;
    bool known = false;  ///< the errors are those of this row
  };
  const Stated& one_of(std::size_t n, TensorId result) const;
  void find_errors(Stated& stated, TermsOf wanted);

  const Call& call_;
  const Inputs& inputs_;
  std::vector<std::vector<Stated>> stated_;  ///< by producer
  BoundConstants own_;                       ///< of the reference's forward pass

  const Head* head_ = nullptr;
  const Row* row_ = nullptr;
  std::int64_t i_ = 0;
  RowSums sums_;
  RowLoss loss_;
  RowGradient gradient_;
  RowBound own_bound_, bound_;
  std::vector<double> saved_output_;  ///< how far what was saved is from the exact
  double saved_lse_ = 0;
};

}  // namespace attest
