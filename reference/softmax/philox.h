// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011), and the
// dropout decision drawn from it. Counter-based: the word for (b, h, i, j) needs no other.
#pragma once

#include <array>
#include <cstdint>

namespace attest {

using PhiloxWords = std::array<std::uint32_t, 4>;

constexpr PhiloxWords philox4x32(PhiloxWords counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ULL * counter[0], b = 0xCD9E8D57ULL * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// round(p * 2^32), of a half or almost one upwards, for all time: a word below it drops its weight.
constexpr std::uint64_t dropout_threshold(double probability) {
  return static_cast<std::uint64_t>(probability * 0x1p32 + 0.5);  // NOLINT(bugprone-incorrect-roundings)
}

/// Whether the weight of query i and key j is kept: word 0 at counter (b, h, i, j), key = seed (low word first).
constexpr bool dropout_keeps(std::uint64_t seed, std::uint64_t threshold, std::int64_t b, std::int64_t h,
                             std::int64_t i, std::int64_t j) {
  const PhiloxWords counter = {static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(h),
                               static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j)};
  return philox4x32(counter, static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32))[0] >= threshold;
}

}  // namespace attest
