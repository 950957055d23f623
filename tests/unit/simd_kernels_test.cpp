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
