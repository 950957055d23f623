#include "harness/cases/guard_pattern.h"

#include <cstdint>
#include <cstring>

namespace attest {
namespace {

/// A quiet NaN of each size; those of 16 bits are one in both types.
struct Pattern {
  std::uint16_t of_16;
  std::uint32_t of_32;
  std::uint64_t of_64;

  const void* of(DType dtype) const {
    switch (size_of(dtype)) {
      case 8: return &of_64;
      case 4: return &of_32;
      default: return &of_16;
    }
  }
};

// They differ in the leading bits of their payloads, too: these survive a conversion to another type.
constexpr Pattern kOutput{0x7fe5u, 0x7fe5a5a5u, 0x7ffca5a5a5a5a5a5u};
constexpr Pattern kPadding{0x7fd3u, 0x7fd3c3c3u, 0x7ffac3c3c3c3c3c3u};

void fill(std::span<std::byte> bytes, DType dtype, const Pattern& pattern) {
  const std::size_t step = size_of(dtype);
  for (std::size_t at = 0; at + step <= bytes.size(); at += step)
    std::memcpy(bytes.data() + at, pattern.of(dtype), step);
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, DType dtype) { fill(bytes, dtype, kOutput); }

void fill_padding(std::span<std::byte> bytes, DType dtype) { fill(bytes, dtype, kPadding); }

bool is_pattern(const std::byte* bytes, DType dtype, std::size_t element) {
  return std::memcmp(bytes + element * size_of(dtype), kOutput.of(dtype), size_of(dtype)) == 0;
}

}  // namespace attest
