// The output of a timed run held against what its inputs give: on rows drawn at random, or where it is known.
#pragma once

#include <cstdint>
#include <optional>

#include "harness/comparison/compare.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/speed/trust/column_signs.h"

namespace attest {

/// What 16 or so rows of one run must be: the first and the last ones, and others that `draw` chooses.
class SampleRows {
 public:
  /// Computed on the calling thread alone, so that what other threads of the process do meanwhile is the backend's.
  SampleRows(const Problem& problem, const Inputs& inputs, const Producer& producer, std::uint64_t draw);
  /// All rows of an expectation, of whose data these columns are negated. It outlives this.
  SampleRows(const Problem& problem, const Expectation& known, const Producer& producer, ColumnSigns signs = {});
  Comparison compare(const GuardedOutputs& outputs) const;

 private:
  const Problem& problem_;
  std::optional<Expectation> computed_;
  const Expectation* known_ = nullptr;
  std::size_t producer_ = 0;
  ColumnSigns signs_;
};

/// A number for the bits of some thousand elements of each output, evenly spread: two results that differ have two.
std::uint64_t fingerprint(GuardedOutputs& outputs);

/// Whether every byte of the outputs is the same.
bool same_bits(GuardedOutputs& a, GuardedOutputs& b);

}  // namespace attest
