// The error that the kernel of backends/support/eigen declares for its exp, measured.
#if __has_include(<Eigen/Core>)
#pragma GCC diagnostic ignored "-Wignored-attributes"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "backends/support/eigen/packet_exp.h"

namespace attest {
namespace {

template <class Real>
using PacketOf = typename Eigen::internal::packet_traits<Real>::type;

template <class Real>
Real exp_of(Real x) {
  alignas(64) Real row[16];
  std::fill(std::begin(row), std::end(row), x);
  auto sum = Eigen::internal::pset1<PacketOf<Real>>(Real{0});
  exp_row(row, 16, Real{0}, sum);
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

TEST(EigenExp, SumsGrowAndEndsStayUntouched) {
  constexpr std::int64_t kLanes = Eigen::internal::packet_traits<float>::size;
  alignas(64) float row[6 * kLanes];
  for (std::int64_t n = 0; n < 6 * kLanes; n += kLanes) {
    std::fill(std::begin(row), std::end(row), 2.0f);
    auto sum = Eigen::internal::pset1<PacketOf<float>>(1.0f);
    exp_row(row, n, 2.0f, sum);
    EXPECT_EQ(Eigen::internal::predux(sum), static_cast<float>(n + kLanes));
    EXPECT_EQ(row[n], 2.0f);  // beyond n
    EXPECT_EQ(Eigen::internal::predux_max(max_of_row(row, n)), n == 0 ? -INFINITY : 1.0f);
    row[n] = 3.0f;
    EXPECT_EQ(Eigen::internal::predux_max(max_of_row(row, n + kLanes)), 3.0f);
  }
}

}  // namespace
}  // namespace attest
#endif
