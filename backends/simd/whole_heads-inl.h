// A whole head of attention, whose scores of a few rows stay in the first-level cache: for one instruction set,
// included once for each by kernels.cpp.
//
// Every row's maximum is known before its first weight: nothing is rescaled, and rows are divided by their sums before
// they are stored.
#if defined(ATTEST_BACKENDS_SIMD_WHOLE_HEADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_BACKENDS_SIMD_WHOLE_HEADS_INL_H_
#undef ATTEST_BACKENDS_SIMD_WHOLE_HEADS_INL_H_
#else
#define ATTEST_BACKENDS_SIMD_WHOLE_HEADS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attest::simd::HWY_NAMESPACE {

/// Asks for lines that the next head reads, some at a time.
class Fetching {
 public:
  template <class Real>
  Fetching(const WholeHead<Real>& head, std::int64_t times) {
    for (const FetchedBytes& one : head.next) lines_ += one.bytes / kLine;
    each_time_ = (lines_ + times - 1) / std::max<std::int64_t>(times, 1);
    next_ = head.next;
  }
  HWY_INLINE void Some() {
    for (std::int64_t n = 0; n < each_time_ && at_ < std::ssize(next_); ++n) {
      const FetchedBytes& range = next_[static_cast<std::size_t>(at_)];
      if (done_ >= range.bytes) {
        ++at_;
        done_ = 0;
        continue;
      }
      __builtin_prefetch(range.from + done_, 0, 2);
      done_ += kLine;
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;
  std::array<FetchedBytes, 3> next_;
  std::int64_t lines_ = 0, each_time_ = 0, at_ = 0, done_ = 0;
};

/// Scores of one row to weights. `seen` keys of it are visible, from the first on, at least one; weights of the others,
/// up to `vectors`, become 0. Gives 1 / sum, and the row's logsumexp where `lse` is set.
template <class Real, bool kMasked>
HWY_INLINE Real WeighRow(Real* HWY_RESTRICT scores, std::int64_t seen, std::int64_t vectors, Real scale,
                         const Real* HWY_RESTRICT mask, Real* lse) {
  const TagOf<Real> tag;
  constexpr std::int64_t kStep = kLanes<Real>;
  const auto by = hn::Set(tag, scale), none = hn::Set(tag, -std::numeric_limits<Real>::infinity());
  const std::int64_t whole = seen / kStep, rest = seen % kStep;
  const auto visible = hn::FirstN(tag, static_cast<std::size_t>(rest));
  const auto score = [&](std::int64_t n) HWY_ATTR {
    const auto product = hn::LoadU(tag, scores + n * kStep);
    if constexpr (kMasked) {
      const auto bias = n < whole ? hn::LoadU(tag, mask + n * kStep) : LoadFirst(mask + n * kStep, rest);
      return hn::MulAdd(product, by, bias);
    }
    return hn::Mul(product, by);
  };
  auto most = none;
  for (std::int64_t n = 0; n < whole; ++n) {
    const auto x = score(n);
    hn::StoreU(x, tag, scores + n * kStep);
    most = hn::Max(most, x);
  }
  if (rest > 0) {
    const auto x = hn::IfThenElse(visible, score(whole), none);
    hn::StoreU(x, tag, scores + whole * kStep);
    most = hn::Max(most, x);
  }
  const auto maximum = hn::MaxOfLanes(tag, most);
  auto total = hn::Zero(tag);
  for (std::int64_t n = 0; n < whole; ++n) {
    const auto weight = Exp(tag, hn::Sub(hn::LoadU(tag, scores + n * kStep), maximum));
    hn::StoreU(weight, tag, scores + n * kStep);
    total = hn::Add(total, weight);
  }
  if (rest > 0) {
    const auto weight = hn::IfThenElseZero(visible, Exp(tag, hn::Sub(hn::LoadU(tag, scores + whole * kStep), maximum)));
    hn::StoreU(weight, tag, scores + whole * kStep);
    total = hn::Add(total, weight);
  }
  for (std::int64_t n = whole + (rest > 0); n < vectors; ++n) hn::StoreU(hn::Zero(tag), tag, scores + n * kStep);
  const Real sum = hn::GetLane(hn::SumOfLanes(tag, total));
  if (lse) *lse = hn::GetLane(maximum) + std::log(sum);
  return 1 / sum;
}

/// Rows of R queries from the first on, N vectors of columns. False when a number that is stored is not finite.
template <int R, int N, class Real>
HWY_NOINLINE bool OutputGroup(const WholeHead<Real>& head, const Real* weights, const Real* values, std::int64_t stride,
                              std::int64_t keys, const Real* factors, Real* out, std::int64_t columns) {
  const TagOf<Real> tag;
  Sums<Real, R, N> sums;
  sums.Clear();
  Multiply<R, N>(weights, kHeadKeys, values, stride, keys, sums);
  auto odd = hn::Zero(tag);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const auto factor = hn::Set(tag, factors[r]);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const auto x = hn::Mul(sums.at[r][n], factor);
      odd = hn::Add(odd, hn::Sub(x, x));
      Real* to = out + r * head.value_dim + n * kLanes<Real>;
      if (n + 1 < N || columns == N * kLanes<Real>) {
        hn::StoreU(x, tag, to);
      } else {
        StoreFirst(x, to, columns - n * kLanes<Real>);
      }
    }
  }
  return hn::AllTrue(tag, hn::Eq(odd, hn::Zero(tag)));
}

/// Keys up to the last one that a group of rows sees.
template <class Real>
HWY_INLINE std::int64_t KeysOfGroup(const WholeHead<Real>& head, std::int64_t row) {
  return head.seen ? *std::max_element(head.seen + row, head.seen + row + kRows) : head.keys;
}

/// A group of rows from `row` on.
template <class Real>
HWY_INLINE bool HeadGroup(const WholeHead<Real>& head, std::int64_t row, Real* weights) {
  constexpr int R = kRows;
  const std::int64_t keys = KeysOfGroup(head, row);
  const std::int64_t vectors = (keys + kLanes<Real> - 1) / kLanes<Real>;
  Real factors[R];
  for (int r = 0; r < R; ++r) {
    const std::int64_t seen = head.seen ? head.seen[row + r] : keys;
    Real* scores = weights + r * kHeadKeys;
    Real* lse = head.lse ? head.lse + row + r : nullptr;
    factors[r] = head.mask ? WeighRow<Real, true>(scores, seen, vectors, head.scale,
                                                  head.mask + (row + r) * head.mask_stride, lse)
                           : WeighRow<Real, false>(scores, seen, vectors, head.scale, nullptr, lse);
  }
  bool finite = true;
  for (std::int64_t column = 0; column < head.value_dim; column += kWidth<Real>) {
    const std::int64_t columns = std::min(kWidth<Real>, head.value_dim - column);
    const std::int64_t width = (columns + kLanes<Real> - 1) / kLanes<Real> * kLanes<Real>;
    const Real* values = head.values + column * (head.values_packed ? head.keys : 1);
    WithVectors(width / kLanes<Real>, [&]<int N>() {
      finite &= OutputGroup<R, N>(head, weights, values, head.values_packed ? width : head.value_stride, keys, factors,
                                  head.out + row * head.value_dim + column, columns);
    });
  }
  return finite;
}

/// Calls `function` with the first row of each group of kRows, and the group's number. The last one begins early rather
/// than end late: some rows are computed twice.
template <class Function>
HWY_INLINE void EachWholeGroup(std::int64_t first, std::int64_t last, const Function& function) {
  std::int64_t group = 0;
  for (std::int64_t row = first; row < last; row += kRows) function(std::min(row, last - kRows), group++);
}

template <class Real>
bool AttendHead(const WholeHead<Real>& head) {
  constexpr std::int64_t kGroup = kRows * kHeadKeys;
  bool finite = true;
  Fetching fetching(head, (head.rows + kRows - 1) / kRows * ((head.keys + kWidth<Real> - 1) / kWidth<Real> + 1));
  for (std::int64_t first = 0; first < head.rows; first += kHeadRows) {
    const std::int64_t last = std::min(first + kHeadRows, head.rows);
    for (std::int64_t key = 0; key < head.keys; key += kWidth<Real>) {
      EachWholeGroup(first, last, [&](std::int64_t row, std::int64_t group) {
        fetching.Some();
        const std::int64_t seen = std::min(KeysOfGroup(head, row) - key, kWidth<Real>);
        if (seen <= 0) return;
        WithVectors((seen + kLanes<Real> - 1) / kLanes<Real>, [&]<int N>() {
          ScoreGroup<kRows, N>(head.queries + row * head.query_stride, head.query_stride,
                               head.keys_packed + key * head.key_dim, head.key_dim, Real{1},
                               head.weights + group * kGroup + key, kHeadKeys);
        });
      });
    }
    EachWholeGroup(first, last, [&](std::int64_t row, std::int64_t group) {
      fetching.Some();
      finite &= HeadGroup(head, row, head.weights + group * kGroup);
    });
  }
  return finite;
}

}  // namespace attest::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
