// Element types of stored tensors, and the small vocabulary every other header uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reference/base/format.h"

namespace attest {

/// The type of sums, of lse, and of the small tensors (slopes, sinks) that go with a storage type.
constexpr DType accumulator_of(DType stored) { return stored == DType::f64 ? DType::f64 : DType::f32; }

/// Extents or element strides of a rank-4 tensor: batch, head, length, feature
/// (for a mask: batch, head, query, key).
using Index4 = std::array<std::int64_t, 4>;

/// Calls visit(b, h, l, d) for every index of a shape, the last axis fastest.
template <class Visit>
void each_index(const Index4& n, const Visit& visit) {
  for (std::int64_t b = 0; b < n[0]; ++b) {
    for (std::int64_t h = 0; h < n[1]; ++h) {
      for (std::int64_t l = 0; l < n[2]; ++l) {
        for (std::int64_t d = 0; d < n[3]; ++d) visit(b, h, l, d);
      }
    }
  }
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace attest
