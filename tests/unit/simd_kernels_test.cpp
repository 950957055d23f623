// The errors that backends/simd declares for its functions, measured for each instruction set that this processor has.
#if defined(ATTEST_HAS_SIMD)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/simd/kernels.h"
#include "reference/base/half.h"

namespace attest::simd {
namespace {

template <class Real>
double ulps(Real got, long double want) {
  int exponent = 0;
  std::frexp(want, &exponent);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) /
                             std::ldexp(1.0L, exponent - std::numeric_limits<Real>::digits));
}

/// The largest error over `count` arguments from `low` to `high`.
template <class Real, class Exact>
double worst(void (*function)(Real*, std::int64_t), Real low, Real high, int count, const Exact& exact) {
  std::vector<Real> arguments, results;
  for (int n = 0; n <= count; ++n)
    arguments.push_back(low + (high - low) * static_cast<Real>(n) / static_cast<Real>(count));
  results = arguments;
  function(results.data(), static_cast<std::int64_t>(results.size()));
  double most = 0;
  for (std::size_t n = 0; n < results.size(); ++n)
    most = std::max(most, ulps(results[n], exact(static_cast<long double>(arguments[n]))));
  return most;
}

const auto kExp = [](long double x) { return std::exp(x); };
const auto kTanh = [](long double x) { return std::tanh(x); };

TEST(SimdKernels, FunctionsStayWithinTheirDeclaredErrors) {
  for (const Target& target : targets()) {
    const auto& f32 = kernels_of<float>(target);
    const auto& f64 = kernels_of<double>(target);
    EXPECT_LE(worst(f32.exp_row, -87.3f, static_cast<float>(kChunkNats), 1'000'000, kExp), kExpUlps) << target.name;
    EXPECT_LE(worst(f64.exp_row, -708.0, kChunkNats, 200'000, kExp), kExpUlps) << target.name;
    EXPECT_LE(worst(f32.tanh_row, -10.0f, 10.0f, 1'000'001, kTanh), kTanhUlps) << target.name;
    EXPECT_LE(worst(f64.tanh_row, -10.0, 10.0, 100'001, kTanh), kTanhUlps) << target.name;
  }
}

template <class Real>
void expect_edges(const Kernels<Real>& kernels, Real below) {
  constexpr Real kInf = std::numeric_limits<Real>::infinity();
  Real row[] = {-kInf, below, std::numeric_limits<Real>::lowest(), 0, std::numeric_limits<Real>::quiet_NaN()};
  kernels.exp_row(row, 5);
  EXPECT_EQ(row[0], 0);
  EXPECT_EQ(row[1], 0);
  EXPECT_EQ(row[2], 0);
  EXPECT_EQ(row[3], 1);
  EXPECT_TRUE(std::isnan(row[4]));
}

TEST(SimdKernels, HiddenKeysGetExactlyZeroAndNaNStays) {
  for (const Target& target : targets()) {
    SCOPED_TRACE(target.name);
    expect_edges<float>(kernels_of<float>(target), -88.1f);
    expect_edges<double>(kernels_of<double>(target), -709.2);
  }
}

template <class Real>
void expect_weights(const Kernels<Real>& kernels) {
  constexpr Real kInf = std::numeric_limits<Real>::infinity(), kNaN = std::numeric_limits<Real>::quiet_NaN();
  Real scores[16] = {1, -kInf, 2, kNaN}, products[16] = {3, kInf, -4, 1};
  std::fill(scores + 4, scores + 16, -kInf);
  kernels.weigh(scores, products, 16, 2, Real{0.5});
  const Real weight = std::exp(Real{-1}), error = 4 * std::numeric_limits<Real>::epsilon();
  EXPECT_NEAR(scores[0], weight, error);
  EXPECT_NEAR(products[0], weight * Real{3.5}, 4 * error);
  EXPECT_EQ(scores[2], 1);
  EXPECT_EQ(products[2], -3.5);
  EXPECT_TRUE(std::isnan(scores[3]) && std::isnan(products[3]));
  // A hidden key gets 0, whatever the others are.
  for (const std::size_t hidden : {1, 4, 15}) EXPECT_TRUE(scores[hidden] == 0 && products[hidden] == 0) << hidden;
  Real score[16], product[16] = {1};
  std::fill(score, score + 16, -kInf);
  kernels.weigh(score, product, 16, kNaN, kNaN);
  EXPECT_TRUE(score[0] == 0 && product[0] == 0);
}

TEST(SimdKernels, WeightsAndScoreGradientsOfARow) {
  for (const Target& target : targets()) {
    SCOPED_TRACE(target.name);
    expect_weights(kernels_of<float>(target));
    expect_weights(kernels_of<double>(target));
  }
}

template <class Real>
void expect_turned_product(const Kernels<Real>& kernels) {
  constexpr std::int64_t kDepth = 7, kStride = 64;
  const std::int64_t columns = 5 * kernels.lanes;  // whole registers and a rest
  for (const std::int64_t rows : {4, 12, 16, 64}) {
    std::vector<Real> left(kDepth * kStride), right(static_cast<std::size_t>(kDepth * columns));
    std::vector<Real> out(static_cast<std::size_t>(rows * columns), 1);
    for (std::size_t n = 0; n < left.size(); ++n) left[n] = static_cast<Real>(n % 11) - 5;
    for (std::size_t n = 0; n < right.size(); ++n) right[n] = static_cast<Real>(n % 7) - 3;
    kernels.multiply_add_turned({.rows = rows,
                                 .columns = columns,
                                 .depth = kDepth,
                                 .left = left.data(),
                                 .left_stride = kStride,
                                 .right = right.data(),
                                 .right_stride = columns,
                                 .out = out.data(),
                                 .out_stride = columns});
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        Real sum = 1;
        for (std::int64_t t = 0; t < kDepth; ++t)
          sum += left[static_cast<std::size_t>(t * kStride + r)] * right[static_cast<std::size_t>(t * columns + c)];
        EXPECT_EQ(out[static_cast<std::size_t>(r * columns + c)], sum) << rows << " rows: " << r << ", " << c;
      }
    }
  }
}

TEST(SimdKernels, ProductsOfATurnedMatrix) {
  for (const Target& target : targets()) {
    SCOPED_TRACE(target.name);
    expect_turned_product(kernels_of<float>(target));
    expect_turned_product(kernels_of<double>(target));
  }
}

std::vector<Pair> random_pairs(std::size_t count, unsigned start) {
  std::vector<Pair> pairs;
  const auto bf16_of = [](int number) { return to_bf16(number); };
  for (unsigned n = 0; n < count; ++n) {
    const int low = static_cast<int>((n * 7 + start) % 13) - 6, high = static_cast<int>((n * 5 + start) % 11) - 5;
    pairs.push_back(static_cast<Pair>(bf16_of(low) | bf16_of(high) << 16));
  }
  return pairs;
}
float low_of(Pair pair) { return bf16_to_float(static_cast<std::uint16_t>(pair)); }
float high_of(Pair pair) { return bf16_to_float(static_cast<std::uint16_t>(pair >> 16)); }

/// Small integers: every product and sum is exact.
void expect_products_of_pairs(const Kernels<float>& kernels, std::int64_t keys) {
  constexpr std::int64_t kRows = 12, kDepth = 7;
  const std::int64_t columns = 5 * kernels.lanes, pairs_of_keys = pairs_of(keys);
  std::vector<Pair> queries = random_pairs(kRows * kPairsOfVector, 1), of_keys = random_pairs(kDepth * kTileKeys, 2);
  const std::vector<Pair> values = random_pairs(static_cast<std::size_t>(pairs_of_keys * columns), 3);
  std::vector<Pair> rounded(kRows * kTileKeys / 2);
  std::vector<float> weights(kRows * kTileKeys), out(static_cast<std::size_t>(kRows * columns), 1);
  PairTile pairs{kPairsOfVector, queries.data(), of_keys.data(), values.data(), rounded.data(), 2};
  Tile<float> tile;
  tile.rows = kRows;
  tile.keys = tile.values_loaded = keys;
  tile.key_dim = 2 * kDepth - 1;
  tile.value_dim = tile.out_stride = columns;
  tile.weights = weights.data();
  tile.out = out.data();
  tile.pairs = &pairs;
  kernels.scores(tile);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t j = 0; j < keys; ++j) {
      float sum = 0;
      for (std::int64_t d = 0; d < kDepth; ++d) {
        const Pair query = queries[static_cast<std::size_t>(r * kPairsOfVector + d)];
        const Pair key = of_keys[static_cast<std::size_t>(d * kTileKeys + j)];
        sum += low_of(query) * low_of(key) + high_of(query) * high_of(key);
      }
      ASSERT_EQ(weights[static_cast<std::size_t>(r * kTileKeys + j)], 2 * sum) << r << ", " << j;
    }
  }
  // 1 + 2^-8 + 2^-16 rounds up, and 1 + 2^-8 to even: down.
  const float numbers[] = {1 + 0x1p-8f + 0x1p-16f, 1 + 0x1p-8f, 3, 0};
  const float nearest[] = {1 + 0x1p-7f, 1, 3, 0};
  for (std::size_t n = 0; n < weights.size(); ++n)
    weights[n] = static_cast<std::int64_t>(n) % kTileKeys < keys ? numbers[n % 4] : 0;
  kernels.accumulate(tile);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      float sum = 1;
      for (std::int64_t j = 0; j < keys; ++j) {
        const std::int64_t column = c / kernels.width * kernels.width,
                           width = std::min(kernels.width, columns - column);
        const Pair value = values[static_cast<std::size_t>(column * pairs_of_keys + j / 2 * width + c - column)];
        sum += nearest[j % 4] * (j % 2 == 0 ? low_of(value) : high_of(value));
      }
      ASSERT_EQ(out[static_cast<std::size_t>(r * columns + c)], sum) << r << ", " << c;
    }
  }
}

TEST(SimdKernels, ProductsOfPairs) {
  for (const Target& target : targets()) {
    const auto& kernels = kernels_of<float>(target);
    EXPECT_EQ(kernels.takes_pairs, target.pairs) << target.name;
    if (!target.pairs) continue;
    for (const std::int64_t keys : {64, 63, 17, 1}) {
      SCOPED_TRACE(keys);
      expect_products_of_pairs(kernels, keys);
    }
  }
}

TEST(SimdKernels, PairsOfValuesAreFinite) {
  for (const Target& target : targets()) {
    if (!target.pairs) continue;
    const auto& kernels = kernels_of<float>(target);
    constexpr std::int64_t kKeys = 5, kDim = 67, kStride = 70;
    std::vector<std::uint16_t> rows(kKeys * kStride, 0x7f80);  // what lies between rows doesn't count
    for (std::int64_t j = 0; j < kKeys; ++j) {
      for (std::int64_t c = 0; c < kDim; ++c)
        rows[static_cast<std::size_t>(j * kStride + c)] = static_cast<std::uint16_t>(100 * j + c);
    }
    std::vector<Pair> packed(pairs_of(kKeys) * 2 * static_cast<std::size_t>(kernels.width), 1);
    EXPECT_TRUE(kernels.pack_value_pairs(rows.data(), kStride, kKeys, kDim, packed.data()));
    EXPECT_EQ(packed[0], 100u << 16);
    EXPECT_EQ(packed[static_cast<std::size_t>(2 * kernels.width + 3)], 403u);  // nothing beside the last row
    for (const unsigned odd : {0x7f80u, 0xff80u, 0x7fc1u}) {
      for (const std::int64_t at : {std::int64_t{0}, 1 * kStride + 66, 4 * kStride + 31}) {
        std::vector<std::uint16_t> some = rows;
        some[static_cast<std::size_t>(at)] = static_cast<std::uint16_t>(odd);
        EXPECT_FALSE(kernels.pack_value_pairs(some.data(), kStride, kKeys, kDim, packed.data())) << odd << ", " << at;
      }
    }
  }
}

/// Forcing one must not leave it behind for the next who asks.
TEST(SimdKernels, EachTargetHasItsOwn) {
  const std::vector<Target> all = targets();
  ASSERT_FALSE(all.empty());
  for (std::size_t n = 1; n < all.size(); ++n) {
    EXPECT_NE(&kernels_of<float>(all[n]), &kernels_of<float>(all[n - 1])) << all[n].name;
    EXPECT_LE(kernels_of<float>(all[n]).lanes, kernels_of<float>(all[n - 1]).lanes) << all[n].name;
  }
}

}  // namespace
}  // namespace attest::simd
#endif
