// The data of a benchmark: no two runs get the same, so that no answer can be kept.
//
// Before every run the signs of one feature of q, of v and (before a sample's first) of k are drawn anew, in place. A
// sign changes no magnitude, tie, zero or NaN: whatever the case's fill is about stays. An output column follows the
// feature of v, so that an earlier answer shows in every row.
//
// Plans are shown addresses that they could write to, so what must lie there is kept a second time. The copy follows
// only when somebody asks: changing it before each run would fill the caches with it.
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
  /// Moves on to the next set and puts `data`, made for the same call, in its place until restore(): other data at
  /// addresses that are not new. `data` outlives that.
  const Inputs& stage(const CaseInputs& data);

  /// What the set handed out last was given, in memory that no plan was shown.
  const CaseInputs& kept();
  /// Whether the set handed out last holds that.
  bool intact();
  /// Whether all sets hold what they were given.
  bool all_intact();
  /// Puts back into all sets what is theirs.
  void restore();

  std::size_t sets() const { return sets_.size(); }
  /// Bytes of q, k and v of one set.
  double set_bytes() const { return set_bytes_; }

 private:
  /// New signs of one feature of one tensor.
  struct Change {
    TensorStorage CaseInputs::*tensor;
    std::int64_t feature;
    std::uint64_t bits;
  };
  struct Set {
    CaseInputs shown, kept;
    Inputs views;                 ///< of what is shown
    std::vector<Change> pending;  ///< that the copy still lacks, the last one of each feature
  };

  static void apply(const Change& change, CaseInputs& data);
  void change(Set& set, TensorStorage CaseInputs::*tensor);
  const CaseInputs& kept(Set& set);

  std::mt19937_64 random_;
  std::vector<Set> sets_;
  const CaseInputs* staged_ = nullptr;  ///< in the set of this turn
  std::size_t turn_ = 0;
  double set_bytes_ = 0;
};

/// Of the largest cache that the system reports; 0 where it reports none.
double last_level_cache_bytes();

}  // namespace attest
