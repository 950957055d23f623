#include "harness/cases/guard_pattern.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace attest {
namespace {

/// A quiet NaN of each size; those of 16 and 8 bits are one in each type.
struct Pattern {
  std::uint8_t of_8;
  std::uint16_t of_16;
  std::uint32_t of_32;
  std::uint64_t of_64;

  /// use(the pattern of this type) as an unsigned number of the same size.
  template <class Use>
  auto with(DType dtype, const Use& use) const {
    switch (size_of(dtype)) {
      case 8: return use(of_64);
      case 4: return use(of_32);
      case 2: return use(of_16);
      default: return use(of_8);
    }
  }
};

// They differ in the leading bits of their payloads, too: these survive a conversion to another type.
constexpr Pattern kOutput{0x7fu, 0x7fe5u, 0x7fe5a5a5u, 0x7ffca5a5a5a5a5a5u};
constexpr Pattern kPaddingPattern{0xffu, 0x7fd3u, 0x7fd3c3c3u, 0x7ffac3c3c3c3c3c3u};

void fill(std::span<std::byte> bytes, DType dtype, const Pattern& pattern) {
  pattern.with(dtype, [&](auto bits) {
    const std::size_t count = bytes.size() / sizeof bits;
    for (std::size_t n = 0; n < count; ++n) std::memcpy(bytes.data() + n * sizeof bits, &bits, sizeof bits);
  });
}

template <class Bits>
Bits bits_at(const std::byte* bytes, std::int64_t element) {
  Bits bits;
  std::memcpy(&bits, bytes + element * static_cast<std::int64_t>(sizeof bits), sizeof bits);
  return bits;
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, DType dtype) { fill(bytes, dtype, kOutput); }

void fill_padding(std::span<std::byte> bytes, DType dtype) {
  if (is_floating(dtype))
    fill(bytes, dtype, kPaddingPattern);
  else if (dtype == DType::i8)
    std::ranges::fill(bytes, std::byte{0x80});  // the largest of them
  else if (dtype == DType::i4)
    std::ranges::fill(bytes, std::byte{0x88});  // two of them
  else
    std::ranges::fill(bytes, dtype == DType::boolean ? std::byte{1} : std::byte{0xff});
}

bool is_pattern(const std::byte* bytes, DType dtype, std::size_t element) {
  return count_written(bytes, dtype, static_cast<std::int64_t>(element), 1, 1) == 0;
}

std::int64_t count_written(const std::byte* bytes, DType dtype, std::int64_t first, std::int64_t count,
                           std::int64_t stride) {
  return kOutput.with(dtype, [&](auto pattern) {
    using Bits = decltype(pattern);
    std::int64_t written = 0;
    // Most rows are dense, and a loop that says so becomes one over vectors.
    for (std::int64_t n = 0; stride == 1 && n < count; ++n) written += bits_at<Bits>(bytes, first + n) != pattern;
    for (std::int64_t n = 0; stride != 1 && n < count; ++n)
      written += bits_at<Bits>(bytes, first + n * stride) != pattern;
    return written;
  });
}

}  // namespace attest
