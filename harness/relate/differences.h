// Two results of a backend held against each other: bits first, and then differences within the bounds of both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "harness/comparison/compare.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/relate/derived_call.h"

namespace attest {

/// One element that two results have with other bits.
struct Difference {
  TensorId result = TensorId::out;
  Index4 at{};                  ///< in the whole call
  double whole = 0, other = 0;  ///< what was computed for it
  double expected = 0;          ///< by the reference
  double allowed = 0;           ///< the sum of both bounds
  /// The difference as a fraction of what is allowed; infinity where one side alone is NaN or infinite.
  double fraction() const;
};

/// Where elements differ in bits.
struct Differences {
  std::int64_t elements = 0, differing = 0, outside = 0;
  std::optional<Difference> first, first_outside;  ///< in the order of elements; outside the sum of the bounds
  std::optional<Difference> largest;               ///< by its fraction

  void add(const Difference& one);
  /// Those of another result besides.
  void add(const Differences& others);
};

/// Whether two numbers have the same bits; all NaN are alike.
bool have_same_bits(double one, double other);

struct BoundedElement {
  double expected = 0, bound = 0;
};

/// The reference's numbers for every element of a call's results, and how far a backend may be from each.
class BoundedResults {
 public:
  /// What the backend states of its conventions is applied to the call.
  BoundedResults(const Backend& backend, const Problem& problem, const Inputs& inputs, int threads);

  const BoundedElement& at(TensorId result, const Index4& index) const;

 private:
  std::size_t place_of_element(TensorId result, const Index4& at) const;

  Call call_;
  std::array<std::vector<BoundedElement>, kTensorCount> elements_;
};

/// Computes the bounds of a call; it is not called while all bits are the same.
using MakeBounds = std::function<const BoundedResults&()>;

/// Calls visit(result, place in the whole, place in the part, the whole's number, the part's) for every element that a
/// part and the whole have in common.
template <class Visit>
void each_common_element(const Call& whole, const GuardedOutputs& of_whole, const Arrangement& part,
                         const GuardedOutputs& of_part, const Visit& visit) {
  for (const TensorId result : results_of(part.call)) {
    if (!is_comparable(part, whole, result)) continue;
    each_index(seen_shape(part.call, result), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const auto at = place_in_whole(part, whole, result, {b, h, l, d});
      if (!at) return;
      visit(result, *at, Index4{b, h, l, d}, of_whole.at(result, (*at)[0], (*at)[1], (*at)[2], (*at)[3]),
            of_part.at(result, b, h, l, d));
    });
  }
}

/// Where these differ.
Differences differences(const Call& whole, const GuardedOutputs& of_whole, const Arrangement& part,
                        const GuardedOutputs& of_part, const MakeBounds& whole_bounds, const MakeBounds& part_bounds);

}  // namespace attest
