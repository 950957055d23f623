// Merging parts: the exact result, merges as backends do them within their bound, and wrong merges beyond it.
#include "reference/merge/part_merge.h"

#include <gtest/gtest.h>

#include <functional>

#include "backends/support/parts/row_merge.h"
#include "reference/arithmetic/rounding.h"
#include "tests/unit/parts_of_keys.h"

namespace attest {
namespace {

using support::PartOrder;
using support::PositionSpan;
using support::RowMerge;
using support::spans_of_part;

constexpr std::size_t kColumns = 5;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Setting {
  DType accumulator, sent;
  std::int64_t parts = 1;
  PartOrder order = PartOrder::contiguous;
  double spread = 1, hidden = 0;
  std::int64_t keys = 40;
};

std::vector<PartOfRow> parts_of(const KeyRow& row, const Setting& s, std::mt19937& random) {
  std::vector<PartOfRow> parts;
  for (std::int64_t part = 0; part < s.parts; ++part)
    parts.push_back(attend(row, spans_of_part(s.keys, part, s.parts, s.order), kColumns));
  std::shuffle(parts.begin(), parts.end(), random);
  return parts;
}

/// The parts with what their way in these types costs.
std::vector<PartOfRow> as_sent(std::vector<PartOfRow> parts, DType out, DType lse) {
  for (PartOfRow& part : parts) {
    const double own = unit_roundoff(lse) * std::fabs(part.lse);
    part.lse_error += std::isfinite(own) ? own : 0;
    part.out_error.resize(part.out.size());
    for (std::size_t c = 0; c < part.out.size(); ++c)
      part.out_error[c] += unit_roundoff(out) * std::fabs(part.out[c]) + underflow_unit(out, false);
  }
  return parts;
}

/// A merge of parts as they travelled: adds each to a row.
template <class Real>
using Merge = std::function<double(const std::vector<PartOfRow>& sent, std::vector<Real>& out)>;

template <class Real>
double right_merge(const std::vector<PartOfRow>& sent, std::vector<Real>& out) {
  RowMerge<Real> merge(out);
  for (const PartOfRow& part : sent) {
    const std::vector<Real> values(part.out.begin(), part.out.end());
    merge.add(std::span<const Real>(values), static_cast<Real>(part.lse));
  }
  return static_cast<double>(merge.finish());
}

/// The largest error/bound of one row, outputs and logsumexp together.
template <class Real>
double ratio(const Setting& s, std::mt19937& random, const Merge<Real>& merge) {
  const KeyRow row = random_row(random, s.keys, kColumns, s.spread, s.hidden);
  const PartOfRow exact = attend(row, {{0, s.keys}}, kColumns);
  const std::vector<PartOfRow> parts = parts_of(row, s, random);
  Arithmetic arithmetic;
  arithmetic.accumulator = s.accumulator;
  arithmetic.key_block = 1;  // one by one
  const MergedRow bound = bound_merge(as_sent(parts, s.sent, s.accumulator), {exact.out, exact.lse}, arithmetic);
  std::vector<PartOfRow> sent = parts;
  for (PartOfRow& part : sent) {
    for (double& value : part.out) value = stored_as(s.sent, value);
    if (std::isinf(part.lse)) part.out.assign(kColumns, std::nan(""));  // what nobody may look at
    part.lse = stored_as(s.accumulator, part.lse);
  }
  std::vector<Real> out(kColumns, 99);
  const double lse = merge(sent, out);
  if (std::isinf(exact.lse)) return std::isinf(lse) && out == std::vector<Real>(kColumns) ? 0 : kInfinite;
  double largest = std::fabs(lse - exact.lse) / bound.lse;
  for (std::size_t c = 0; c < kColumns; ++c) {
    const double one = std::fabs(static_cast<double>(out[c]) - exact.out[c]) / bound.out[c];
    largest = one <= largest ? largest : one;  // NaN counts
  }
  return largest;
}

/// The largest of many rows: 1 to 16 parts, both orders, some of them empty or hidden, scores close and far apart.
template <class Real>
double largest_ratio(DType accumulator, DType sent, const Merge<Real>& merge) {
  std::mt19937 random(7);
  double largest = 0;
  for (std::int64_t parts = 1; parts <= 16; ++parts) {
    for (const PartOrder order : {PartOrder::contiguous, PartOrder::zigzag}) {
      for (const double spread : {0.0, 1.0, 30.0, 300.0}) {
        for (const std::int64_t keys : {1, 7, 40}) {
          for (const double hidden : {0.0, 0.5, 0.95}) {
            const double one = ratio({accumulator, sent, parts, order, spread, hidden, keys}, random, merge);
            largest = one <= largest ? largest : one;
          }
        }
      }
    }
  }
  return largest;
}

/// Within the bound, and not so far that the bound says nothing: a rounding to 16 bits is nearly all of it.
TEST(PartMerge, HoldsForMergesInAnyOrder) {
  const double f64 = largest_ratio<double>(DType::f64, DType::f64, right_merge<double>);
  EXPECT_LE(f64, 1);
  EXPECT_GT(f64, 0.05);
  const double f32 = largest_ratio<float>(DType::f32, DType::f32, right_merge<float>);
  EXPECT_LE(f32, 1);
  EXPECT_GT(f32, 0.05);
  for (const DType sent : {DType::f16, DType::bf16}) {
    const double narrow = largest_ratio<float>(DType::f32, sent, right_merge<float>);
    EXPECT_LE(narrow, 1);
    EXPECT_GT(narrow, 0.5);
  }
}

/// Partial results in 16 bits that were declared as f32, a sum kept in 16 bits while they go round, and a mean: wrong.
TEST(PartMerge, DoesNotHoldForWrongMerges) {
  std::mt19937 random(3);
  const Setting plain{DType::f32, DType::f32, 4, PartOrder::contiguous, 1, 0, 40};
  const Merge<float> narrowed = [](const std::vector<PartOfRow>& sent, std::vector<float>& out) {
    std::vector<PartOfRow> parts = sent;
    for (PartOfRow& part : parts) {
      for (double& value : part.out) value = stored_as(DType::bf16, value);
    }
    return right_merge<float>(parts, out);
  };
  EXPECT_GT(ratio<float>(plain, random, narrowed), 100);
  const Merge<float> kept_narrow = [](const std::vector<PartOfRow>& sent, std::vector<float>& out) {
    PartOfRow so_far = sent.front();
    for (std::size_t n = 1; n < sent.size(); ++n) {
      so_far.lse = right_merge<float>({so_far, sent[n]}, out);
      so_far.out.assign(out.begin(), out.end());
      for (double& value : so_far.out) value = stored_as(DType::f16, value);
    }
    out.assign(so_far.out.begin(), so_far.out.end());
    return so_far.lse;
  };
  EXPECT_GT(ratio<float>(plain, random, kept_narrow), 100);
  Setting sixteen = plain;
  sixteen.sent = DType::f16;
  sixteen.parts = 16;
  sixteen.keys = 160;
  double grown = 0;
  for (int n = 0; n < 50; ++n) grown = std::max(grown, ratio<float>(sixteen, random, kept_narrow));
  EXPECT_GT(grown, 1) << "the error grows with the parts: one rounding of each is declared";
  const Merge<float> mean = [](const std::vector<PartOfRow>& sent, std::vector<float>& out) {
    std::vector<PartOfRow> parts = sent;
    for (PartOfRow& part : parts) part.lse = 0;
    right_merge<float>(parts, out);
    std::vector<float> ignored(out.size());
    return right_merge<float>(sent, ignored);
  };
  EXPECT_GT(ratio<float>(plain, random, mean), 100);
}

/// exp of a logsumexp overflows where these are far apart: the largest must be taken out first.
TEST(PartMerge, DoesNotHoldForExponentialsThatOverflow) {
  std::mt19937 random(5);
  const Setting apart{DType::f32, DType::f32, 4, PartOrder::contiguous, 300, 0, 40};
  const Merge<float> naive = [](const std::vector<PartOfRow>& sent, std::vector<float>& out) {
    float sum = 0;
    std::fill(out.begin(), out.end(), 0.f);
    for (const PartOfRow& part : sent) {
      const float weight = std::exp(static_cast<float>(part.lse));
      sum += weight;
      for (std::size_t c = 0; c < out.size(); ++c) out[c] += weight * static_cast<float>(part.out[c]);
    }
    for (float& value : out) value /= sum;
    return static_cast<double>(std::log(sum));
  };
  EXPECT_FALSE(ratio<float>(apart, random, naive) <= 1);
  EXPECT_LE(ratio<float>(apart, random, right_merge<float>), 1);
}

TEST(PartMerge, SaysNothingWhereItCannot) {
  const Arithmetic f32;
  const std::vector<PartOfRow> huge = {{{3e38}, 0, {}, 0}, {{3e38}, 0, {}, 0}};
  EXPECT_EQ(bound_merge(huge, merge_parts(huge), f32).out[0], kInfinite) << "the sum may overflow";
  const std::vector<PartOfRow> far = {{{kInfinite}, -200, {}, 0}, {{1}, 0, {}, 0}};
  EXPECT_EQ(bound_merge(far, merge_parts(far), f32).out[0], kInfinite)
      << "0 times infinity, or a small number times it";
  Arithmetic other = f32;
  other.base2 = true;
  const std::vector<PartOfRow> low = {{{1}, -3e38, {}, 0}, {{1}, 0, {}, 0}};
  EXPECT_EQ(bound_merge(low, merge_parts(low), other).lse, kInfinite) << "times log2(e) it overflows";
  EXPECT_LT(bound_merge(low, merge_parts(low), f32).lse, 1e-5);
}

TEST(PartMerge, LeavesOutEmptyPartsAndKeepsOtherNumbersThatAreNone) {
  const Arithmetic f32;
  const std::vector<PartOfRow> blind = {{{std::nan("")}, -kInfinite, {}, 0}, {{7}, -kInfinite, {}, 0}};
  EXPECT_EQ(merge_parts(blind).out, std::vector<double>{0});
  EXPECT_EQ(merge_parts(blind).lse, -kInfinite);
  EXPECT_EQ(bound_merge(blind, merge_parts(blind), f32).out[0], 0);
  const std::vector<PartOfRow> half = {{{std::nan("")}, -kInfinite, {}, 0}, {{7}, 3, {}, 0}};
  EXPECT_EQ(merge_parts(half).out, std::vector<double>{7});
  EXPECT_EQ(merge_parts(half).lse, 3);
  for (const double lse : {std::nan(""), kInfinite}) {
    const std::vector<PartOfRow> none = {{{1}, lse, {}, 0}, {{1}, 0, {}, 0}};
    EXPECT_TRUE(std::isnan(merge_parts(none).lse));
    EXPECT_TRUE(std::isnan(merge_parts(none).out[0]));
    EXPECT_EQ(bound_merge(none, merge_parts(none), f32).lse, 0);
  }
  const std::vector<PartOfRow> infinite = {{{kInfinite, 1}, 0, {}, 0}, {{1, std::nan("")}, -1, {}, 0}};
  EXPECT_EQ(merge_parts(infinite).out[0], kInfinite);
  EXPECT_TRUE(std::isnan(merge_parts(infinite).out[1]));
  EXPECT_EQ(bound_merge(infinite, merge_parts(infinite), f32).out, (std::vector<double>{0, 0}));
}

TEST(PartMerge, InBase2IsTheSameRowWithOtherLogarithms) {
  const std::vector<PartOfRow> natural = {{{1, -2}, 3, {}, 0}, {{5, 8}, 1.5, {}, 0}};
  std::vector<PartOfRow> base2 = natural;
  for (PartOfRow& part : base2) part.lse /= std::log(2.0);
  const MergedRow a = merge_parts(natural), b = merge_parts(base2, true);
  EXPECT_NEAR(a.lse, b.lse * std::log(2.0), 1e-14);
  EXPECT_NEAR(a.out[1], b.out[1], 1e-14);
  // An arithmetic that works in the base of the case converts nothing.
  Arithmetic of_e, of_2;
  of_2.base2 = true;
  EXPECT_LT(bound_merge(base2, b, of_2, true).lse, bound_merge(base2, b, of_e, true).lse);
  EXPECT_LT(bound_merge(natural, a, of_e).out[1], bound_merge(natural, a, of_2).out[1]);
  EXPECT_NEAR(bound_merge(natural, a, of_e).out[0], bound_merge(base2, b, of_2, true).out[0], 1e-9);
}

/// An exp that is as far off as is stated, in the directions that cost most, takes nearly all of the bound.
TEST(PartMerge, LeavesRoomForTheStatedErrorOfExp) {
  Arithmetic f32;
  f32.exp_ulps = 1000;
  const double off = 2 * unit_roundoff(DType::f32) * 1000;
  const std::vector<PartOfRow> parts = {{{1}, 0, {}, 0}, {{-1}, -0.5, {}, 0}};
  const MergedRow exact = merge_parts(parts), bound = bound_merge(parts, exact, f32);
  const auto merged = [&](double first, double second) {
    const double a = 1 + first, b = std::exp(-0.5) * (1 + second);
    return MergedRow{{(a - b) / (a + b)}, std::log(a + b)};
  };
  const double out = std::fabs(merged(off, -off).out[0] - exact.out[0]) / bound.out[0];
  EXPECT_LE(out, 1);
  EXPECT_GT(out, 0.9);
  const double lse = std::fabs(merged(off, off).lse - exact.lse) / bound.lse;
  EXPECT_LE(lse, 1);
  EXPECT_GT(lse, 0.9);
}

/// What the parts were off before they were sent is in the bound, in proportion to their weights.
TEST(PartMerge, InheritsErrors) {
  const Arithmetic f64{Rounding{.accumulator = DType::f64}, {}};
  std::vector<PartOfRow> parts = {{{1}, 0, {1e-3}, 0}, {{1}, -std::log(3.0), {0}, 0}};
  EXPECT_NEAR(bound_merge(parts, merge_parts(parts), f64).out[0], 0.75e-3, 1e-9);
  parts[0] = {{2}, 0, {0}, 1e-3};
  const MergedRow other = merge_parts(parts);
  EXPECT_GE(bound_merge(parts, other, f64).out[0], 1e-3 * 0.75 * 0.25);
  EXPECT_GE(bound_merge(parts, other, f64).lse, 1e-3 * 0.75);
}

}  // namespace
}  // namespace attest
