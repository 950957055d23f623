// The output of a timed run held against what its inputs give: on rows drawn at random, or where it is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/comparison/compare.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/speed/trust/column_signs.h"
#include "harness/verdict/judgement.h"

namespace attest {

/// What one run's output is like.
struct SampleVerdict {
  double error_over_bound = 0;  ///< 0 where it is right by what the backend states
  std::string wrong;            ///< the sentence of what is wrong; empty where it is right
};

/// What 16 or so rows of one run must be: the first and the last ones, and others that `draw` chooses.
class SampleRows {
 public:
  /// Computed on the calling thread alone, so that what other threads of the process do meanwhile is the backend's.
  /// `inputs` are views of the data that the run had; they stay as they are as long as this is there.
  SampleRows(const Problem& problem, const Inputs& inputs, const Standard& standard, std::uint64_t draw);
  /// All rows of an expectation, of whose data `inputs` are those with these columns negated. It outlives this.
  SampleRows(const Problem& problem, const Inputs& inputs, const Expectation& known, const Standard& standard,
             ColumnSigns signs = {});
  SampleVerdict judge(const GuardedOutputs& outputs) const;

 private:
  Comparison compare(const Expectation& expectation, const GuardedOutputs& outputs) const;
  bool right_as_stated(const GuardedOutputs& outputs) const;

  Problem problem_;
  Inputs inputs_;
  std::optional<Expectation> computed_;
  const Expectation* known_ = nullptr;
  const Standard& standard_;
  double budget_ = kRowBudget;
  ColumnSigns signs_;
};

}  // namespace attest
