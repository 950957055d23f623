// Which weights dropout keeps where a call draws them: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011), of which
// the first word alone is asked for.
//
// Deliberately not the reference's code: the two are checked against each other.
#pragma once

#include <cmath>
#include <cstdint>

namespace attest::support {

/// The first word at counter (b, h, i, j) under the key `seed`, its low half first.
constexpr std::uint32_t first_philox_word(std::uint64_t seed, std::uint32_t b, std::uint32_t h, std::uint32_t i,
                                          std::uint32_t j) {
  auto low = static_cast<std::uint32_t>(seed), high = static_cast<std::uint32_t>(seed >> 32);
  for (int rounds = 10;;) {
    const std::uint64_t of_b = std::uint64_t{b} * 3528531795U, of_i = std::uint64_t{i} * 3449720151U;
    b = h ^ low ^ static_cast<std::uint32_t>(of_i >> 32);
    if (--rounds == 0) return b;
    i = j ^ high ^ static_cast<std::uint32_t>(of_b >> 32);
    h = static_cast<std::uint32_t>(of_i);
    j = static_cast<std::uint32_t>(of_b);
    low += 2654435769U;   // the golden ratio
    high += 3144134277U;  // sqrt(3) - 1
  }
}
// From the known-answer file of the Random123 library.
static_assert(first_philox_word(0, 0, 0, 0, 0) == 0x6627e8d5);
static_assert(first_philox_word(0x299f31d0a4093822, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344) == 0xd16cfe09);

/// A word below it drops its weight: `probability` of 2^32, to the nearest.
inline std::uint64_t drop_below(double probability) {
  return static_cast<std::uint64_t>(std::floor(std::ldexp(probability, 32) + 0.5));
}

/// Whether query i of head h in batch b keeps the weight of key j.
constexpr bool keeps_weight(std::uint64_t seed, std::uint64_t drop_below, std::int64_t b, std::int64_t h,
                            std::int64_t i, std::int64_t j) {
  return !(first_philox_word(seed, static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(h),
                             static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j)) < drop_below);
}

}  // namespace attest::support
