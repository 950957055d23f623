// The error that backends/eigen declares for its exp, measured.
#if __has_include(<Eigen/Core>)
#pragma GCC diagnostic ignored "-Wignored-attributes"
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backends/eigen/packet_exp.h"

namespace attest {
namespace {

template <class Real>
Real exp_of(Real x) {
  std::vector<Real> row(16, x);
  exp_row(row.data(), 16, Real{0});
  return row[3];
}

template <class Real>
double ulps(Real got, long double want) {
  int exponent = 0;
  std::frexp(want, &exponent);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) /
                             std::ldexp(1.0L, exponent - std::numeric_limits<Real>::digits));
}

TEST(EigenExp, StaysWithinItsDeclaredError) {
  double worst = 0;
  for (int n = 0; n < 4'000'000; ++n) {
    const float x = -87.3f * static_cast<float>(n) / 4e6f;
    worst = std::max(worst, ulps(exp_of(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, kPacketExpUlps);
  worst = 0;
  for (int n = 0; n < 500'000; ++n) {
    const double x = -707.9 * static_cast<double>(n) / 5e5;
    worst = std::max(worst, ulps(exp_of(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, kPacketExpUlps);
}

TEST(EigenExp, HiddenKeysGetExactlyZeroAndNaNStays) {
  for (float x : {-std::numeric_limits<float>::infinity(), -88.1f, -1e30f, std::numeric_limits<float>::lowest()}) {
    EXPECT_EQ(exp_of(x), 0.0f) << x;
  }
  EXPECT_EQ(exp_of(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(exp_of(std::numeric_limits<double>::quiet_NaN())));
}

TEST(EigenExp, RaggedRowsSumWhatTheyHold) {
  for (std::int64_t n = 0; n < 40; ++n) {
    std::vector<float> row(static_cast<std::size_t>(n) + 1, 2.0f);
    EXPECT_EQ(exp_row(row.data(), n, 2.0f), static_cast<float>(n));
    EXPECT_EQ(row.back(), 2.0f);  // untouched
  }
}

}  // namespace
}  // namespace attest
#endif
