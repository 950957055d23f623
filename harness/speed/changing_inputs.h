// The data of a benchmark: no two runs get the same, so that no answer can be kept.
//
// Before every run the signs of one feature of q, of v and (before a sample's first) of k are drawn anew, in place. A
// sign changes no magnitude, tie, zero or NaN: whatever the case's fill is about stays. An output column follows the
// feature of v, so that an earlier answer shows in every row.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "harness/cases/inputs.h"

namespace attest {

class ChangingInputs {
 public:
  /// Copies of `inputs` to rotate among: two where both fit into the last-level cache together or one doesn't fit at
  /// all, else one. `seed` draws every change.
  ChangingInputs(const CaseInputs& inputs, std::uint64_t seed);

  /// Moves on to the next set, changes it and gives its views, valid until that set's turn comes again. With `keys`, k
  /// changes as well.
  const Inputs& next(bool keys);

  std::size_t sets() const { return sets_.size(); }
  /// Bytes of q, k and v of one set.
  double set_bytes() const { return set_bytes_; }

 private:
  void draw_signs(TensorStorage& tensor);

  std::mt19937_64 random_;
  std::vector<CaseInputs> sets_;
  std::vector<Inputs> views_;
  std::size_t turn_ = 0;
  double set_bytes_ = 0;
};

/// Of the largest cache that the system reports; 0 where it reports none.
double last_level_cache_bytes();

}  // namespace attest
