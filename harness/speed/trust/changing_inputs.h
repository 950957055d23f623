// The data of a benchmark: no two runs get the same, so that neither an answer can be kept nor a part of one.
//
// Before every run each element of q, k, v, cached keys and values, and of a state that is carried over, changes in
// place: its sign is drawn anew, and so are the last bits of its mantissa, two of which count the runs, so that no
// element is what it was in the three runs before. Exponents, zeros, infinities and NaN stay: what the case's fill is
// about does. Masks, decays and page tables stay as well: what they hide decides how much work there is.
//
// Gradients get one of two data whose results are known, with the signs of columns drawn anew (column_signs.h): what is
// saved of a forward pass has to be right for every run.
//
// This is outside of what is timed and takes about a nanosecond an element. seconds_per_change() says what it took.
//
// Plans are shown addresses that they could write to, so what must lie there is kept a second time. The copy follows
// only when somebody asks: changing it before each run would fill the caches with it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "harness/cases/inputs.h"
#include "harness/speed/trust/column_signs.h"

namespace attest {

class ChangingInputs {
 public:
  /// Copies of `inputs` to rotate among: two where both fit into the last-level cache together or one doesn't fit at
  /// all, else one. `seed` draws every change.
  ChangingInputs(const CaseInputs& inputs, std::uint64_t seed);
  /// The same for gradients, of two data made for this call, which outlive this.
  ChangingInputs(const Call& call, const std::array<const CaseInputs*, 2>& known, std::uint64_t seed);

  /// Moves on to the next set, changes it and gives its views, valid until that set's turn comes again.
  const Inputs& next();
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

  /// Which of the known data the set handed out last has, and with which signs.
  std::size_t known() const { return sets_[turn_].shown_as.known; }
  ColumnSigns signs() const { return signs_of(sets_[turn_].shown_as); }

  std::size_t sets() const { return sets_.size(); }
  /// Bytes of one set that are numbers: q, k, v and the like.
  double set_bytes() const { return set_bytes_; }
  /// On average.
  double seconds_per_change() const { return changes_ > 0 ? seconds_ / static_cast<double>(changes_) : 0; }

 private:
  /// Which numbers lie in a set: those of the case, or of one of the known data, in run 0, else what `seed` makes of
  /// them.
  struct Draw {
    std::uint64_t seed = 0, run = 0;
    std::size_t known = 0;
  };
  struct Set {
    CaseInputs shown, kept;
    Inputs views;  ///< of what is shown
    Draw shown_as, kept_as;
  };

  std::size_t sets_for(const CaseInputs& inputs);
  void redraw(CaseInputs& data, const Draw& from, const Draw& to) const;
  ColumnSigns signs_of(const Draw& draw) const;
  const CaseInputs& kept(Set& set);

  std::mt19937_64 random_;
  std::optional<Call> call_;                  ///< of gradients
  std::array<const CaseInputs*, 2> known_{};  ///< likewise
  std::vector<Set> sets_;
  const CaseInputs* staged_ = nullptr;  ///< in the set of this turn
  std::size_t turn_ = 0;
  std::uint64_t changes_ = 0;
  double set_bytes_ = 0, seconds_ = 0;
};

/// Other data for the same call, drawn by `seed` as for one run, with saved results that are right for them.
CaseInputs redrawn(const Problem& problem, const CaseInputs& inputs, std::uint64_t seed, int threads = 1);

/// Of the largest cache that the system reports; 0 where it reports none.
double last_level_cache_bytes();

}  // namespace attest
