// 16-bit storage, the random words of dropout, ALiBi's slopes: values known from elsewhere.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backends/support/host_results.h"
#include "reference/base/half.h"
#include "reference/call/problem.h"
#include "reference/softmax/philox.h"

namespace attest {
namespace {

TEST(Half, EveryBitPatternSurvivesTheRoundTrip) {
  for (unsigned n = 0; n < 65536; ++n) {
    const auto bits = static_cast<std::uint16_t>(n);
    const auto half = static_cast<double>(f16_to_float(bits)), brain = static_cast<double>(bf16_to_float(bits));
    EXPECT_TRUE(std::isnan(half) || to_f16(half) == bits) << n;
    EXPECT_TRUE(std::isnan(brain) || to_bf16(brain) == bits) << n;
  }
}

TEST(Half, TiesGoToEvenAndEdgesAreExact) {
  EXPECT_EQ(to_f16(1.0), 0x3c00);
  EXPECT_EQ(to_f16(-2.0), 0xc000);
  EXPECT_EQ(to_f16(65504), 0x7bff);
  EXPECT_EQ(to_f16(65519.99), 0x7bff);
  EXPECT_EQ(to_f16(65520), 0x7c00);    // the tie rounds to infinity
  EXPECT_EQ(to_f16(0x1p-24), 0x0001);  // smallest subnormal
  EXPECT_EQ(to_f16(0x1p-25), 0x0000);  // tie to even
  EXPECT_EQ(to_f16(0x1.8p-25), 0x0001);
  EXPECT_EQ(to_f16(1 + 0x1p-11), 0x3c00);  // tie to even
  EXPECT_EQ(to_f16(1 + 0x1.8p-10), 0x3c02);
  EXPECT_EQ(to_f16(1 + 0x1p-11 + 0x1p-40), 0x3c01);  // through float this would be a tie
  EXPECT_EQ(to_bf16(1 + 0x1p-8), 0x3f80);
  EXPECT_EQ(to_bf16(1 + 0x1p-8 + 0x1p-40), 0x3f81);
  EXPECT_EQ(to_bf16(std::numeric_limits<double>::infinity()), 0x7f80);
  EXPECT_TRUE(std::isnan(f16_to_float(to_f16(std::nan("")))));
  EXPECT_TRUE(std::isnan(bf16_to_float(to_bf16(std::nan("")))));
}

/// What host backends round with, against the reference's rounding: every float that is zero behind its first bits, the
/// tie behind it, and the numbers next to both.
void expect_rounding(int cut, std::uint16_t (*rounded)(float), std::uint16_t (*exact)(double),
                     float (*back)(std::uint16_t)) {
  const std::uint32_t tie = 1u << (cut - 1), last = (1u << cut) - 1;
  std::uint32_t wrong = 0, example = 0;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += std::uint64_t{1} << cut) {
    for (const std::uint32_t low : {0u, 1u, tie - 1, tie, tie + 1, last}) {
      const std::uint32_t bits = static_cast<std::uint32_t>(first) | low;
      const auto x = std::bit_cast<float>(bits);
      const bool right = std::isnan(x) ? std::isnan(back(rounded(x))) : rounded(x) == exact(static_cast<double>(x));
      if (right) continue;
      ++wrong;
      example = bits;
    }
  }
  EXPECT_EQ(wrong, 0u) << std::hex << example;
}

TEST(Half, BackendsRoundAsTheReference) {
  expect_rounding(16, support::bf16_of, to_bf16, bf16_to_float);
  expect_rounding(13, support::f16_of, to_f16, f16_to_float);
}

TEST(Philox, KnownAnswers) {
  // From the known-answer file of the Random123 library, philox 4x32 with 10 rounds.
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0, 0), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DropsAboutTheShareAskedFor) {
  const std::uint64_t threshold = dropout_threshold(0.3);
  int dropped = 0;
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 200; ++j) dropped += !dropout_keeps(7, threshold, 0, 0, i, j);
  }
  EXPECT_NEAR(dropped / 40000.0, 0.3, 0.01);
  EXPECT_TRUE(dropout_keeps(7, dropout_threshold(0), 0, 0, 0, 0));
}

TEST(Alibi, PublishedSlopes) {
  const auto eight = published_alibi_slopes(8);
  for (std::size_t h = 0; h < 8; ++h) EXPECT_DOUBLE_EQ(eight[h], std::exp2(-static_cast<double>(h + 1)));
  const auto three = published_alibi_slopes(3);  // two of two heads, then every other one of four
  ASSERT_EQ(three.size(), 3u);
  EXPECT_DOUBLE_EQ(three[0], 0x1p-4);
  EXPECT_DOUBLE_EQ(three[1], 0x1p-8);
  EXPECT_DOUBLE_EQ(three[2], 0x1p-2);
  EXPECT_TRUE(published_alibi_slopes(0).empty());
}

}  // namespace
}  // namespace attest
