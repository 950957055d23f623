// The errors that backends/simd declares for its functions, measured for each instruction set that this processor has.
#if defined(ATTEST_HAS_SIMD)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/simd/kernels.h"

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
