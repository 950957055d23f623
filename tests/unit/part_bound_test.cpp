// Merging parts: the exact result, merges as backends do them within their bound, and wrong merges beyond it.
#include "reference/softmax/bounds/part_bound.h"

#include <gtest/gtest.h>

#include <functional>

#include "backends/support/parts/row_merge.h"
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
  const MergeBound bound = bound_merge(parts, {exact.out, exact.lse}, arithmetic, s.sent, s.accumulator);
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
TEST(PartBound, HoldsForMergesInAnyOrder) {
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
TEST(PartBound, DoesNotHoldForWrongMerges) {
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
TEST(PartBound, DoesNotHoldForExponentialsThatOverflow) {
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

TEST(PartBound, SaysNothingWhereItCannot) {
  const Arithmetic f32;
  const std::vector<PartOfRow> huge = {{{3e38}, 0, {}, 0}, {{3e38}, 0, {}, 0}};
  const MergedRow merged = merge_parts(huge);
  EXPECT_EQ(bound_merge(huge, merged, f32, DType::f32, DType::f32).out[0], kInfinite) << "the sum may overflow";
  const std::vector<PartOfRow> wide = {{{1e5}, 0, {}, 0}, {{1}, 0, {}, 0}};
  EXPECT_EQ(bound_merge(wide, merge_parts(wide), f32, DType::f16, DType::f32).out[0], kInfinite) << "f16 ends before";
  EXPECT_LT(bound_merge(wide, merge_parts(wide), f32, DType::bf16, DType::f32).out[0], 1e3);
  const std::vector<PartOfRow> nan = {{{std::nan("")}, 1, {}, 0}, {{1}, std::nan(""), {}, 0}};
  EXPECT_EQ(bound_merge(nan, merge_parts(nan), f32, DType::f32, DType::f32).lse, kInfinite);
  const std::vector<PartOfRow> blind = {{{std::nan("")}, -kInfinite, {}, 0}, {{7}, -kInfinite, {}, 0}};
  EXPECT_EQ(merge_parts(blind).out, std::vector<double>{0});
  EXPECT_EQ(merge_parts(blind).lse, -kInfinite);
  EXPECT_EQ(bound_merge(blind, merge_parts(blind), f32, DType::f32, DType::f32).out[0], 0);
}

/// What the parts were off before they were sent is in the bound, in proportion to their weights.
TEST(PartBound, InheritsErrors) {
  const Arithmetic f64{Rounding{.accumulator = DType::f64}, {}};
  std::vector<PartOfRow> parts = {{{1}, 0, {1e-3}, 0}, {{1}, -std::log(3.0), {0}, 0}};
  const MergedRow merged = merge_parts(parts);
  const double out = bound_merge(parts, merged, f64, DType::f64, DType::f64).out[0];
  EXPECT_NEAR(out, 0.75e-3, 1e-9);
  parts[0] = {{2}, 0, {0}, 1e-3};
  const MergedRow other = merge_parts(parts);
  EXPECT_GE(bound_merge(parts, other, f64, DType::f64, DType::f64).out[0], 1e-3 * 0.75 * 0.25);
  EXPECT_GE(bound_merge(parts, other, f64, DType::f64, DType::f64).lse, 1e-3 * 0.75);
}

}  // namespace
}  // namespace attest
