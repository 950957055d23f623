// Element types of stored tensors, and the small vocabulary every other header uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "reference/base/names.h"

namespace attest {

/// Floating types first; a boolean is a byte, 0 or 1.
enum class DType : std::uint8_t { f64, f32, f16, bf16, boolean, i32 };
template <>
inline constexpr auto kNames<DType> = name_table("f64", "f32", "f16", "bf16", "bool", "i32");

inline constexpr std::array kFloatingTypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
inline constexpr std::array<std::string_view, kFloatingTypes.size()> kFloatingNames = {"f64", "f32", "f16", "bf16"};

constexpr bool is_floating(DType type) { return type < DType::boolean; }

/// Bytes of one element.
constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::f64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::boolean: return 1;
  }
  return 0;
}

/// The type of sums, of lse, and of the small tensors (slopes, sinks) that go with a storage type.
constexpr DType accumulator_of(DType stored) { return stored == DType::f64 ? DType::f64 : DType::f32; }

/// Largest finite number of a type.
constexpr double largest_of(DType type) {
  switch (type) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f32: return static_cast<double>(std::numeric_limits<float>::max());
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.fep127;
    case DType::boolean: return 1;
    case DType::i32: return std::numeric_limits<std::int32_t>::max();
  }
  return 0;
}

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
