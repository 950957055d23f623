// Element types of stored tensors, and the small vocabulary every other header uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace attest {

enum class DType : std::uint8_t { f64, f32, f16, bf16 };

constexpr std::size_t size_of(DType type) {
  return type == DType::f64 ? 8 : type == DType::f32 ? 4 : 2;
}

constexpr std::string_view name_of(DType type) {
  constexpr std::string_view names[] = {"f64", "f32", "f16", "bf16"};
  return names[static_cast<int>(type)];
}

/// Extents or element strides of a rank-4 tensor: batch, head, length, feature
/// (for a mask: batch, head, query, key).
using Index4 = std::array<std::int64_t, 4>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace attest
