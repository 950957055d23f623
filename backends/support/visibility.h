// Which keys a query row sees, as intervals and mask lookups. Shared by the tiled host backends.
//
// Deliberately not the reference's code: the two are checked against each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <vector>

#include "backends/support/held_part.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest::support {

/// Half-open interval of keys.
struct KeyRange {
  std::int64_t first = 0, last = 0;
  bool empty() const { return first >= last; }
  KeyRange within(std::int64_t low, std::int64_t high) const { return {std::max(first, low), std::min(last, high)}; }
  /// The smallest interval that holds both.
  void widen(const KeyRange& other) {
    if (other.empty()) return;
    *this = empty() ? other : KeyRange{std::min(first, other.first), std::max(last, other.last)};
  }
};

/// Keys of one row before masks: the prefix that everyone sees, and the band of causal and window after it.
struct RowKeys {
  KeyRange prefix, band;
  std::int64_t diagonal = 0;  ///< the key on the diagonal, for ALiBi
};

class Visibility {
 public:
  /// All outlive it; inputs, and which part of the call's they are, may change. Rows and keys are the call's.
  Visibility(const Call& problem, const Inputs& inputs, const HeldPart& held = kAllHeld)
      : problem_(problem), inputs_(inputs), held_(held) {
    if (!problem.segments) return;
    const auto& keys = problem.segments->key;
    const auto& queries = problem.segments->query.empty() ? keys : problem.segments->query;
    Segment segment;
    for (std::size_t n = 0; n < keys.size(); ++n) {
      segment.queries = queries[n];
      segment.keys = keys[n];
      segment_of_row_.insert(segment_of_row_.end(), static_cast<std::size_t>(queries[n]), segments_.size());
      segments_.push_back(segment);
      segment.first_query += queries[n];
      segment.first_key += keys[n];
    }
  }

  RowKeys row(std::int64_t b, std::int64_t i) const {
    const Call& p = problem_;
    RowKeys row;
    Segment s{0, 0, p.query_count(b), p.key_count(b)};
    if (!segments_.empty()) s = segments_[segment_of_row_[static_cast<std::size_t>(i)]];
    std::int64_t offset = p.align == Align::bottom_right ? s.keys - s.queries : 0;
    if (p.past > 0) offset = p.past_lengths.empty() ? p.past : p.past_lengths[static_cast<std::size_t>(b)];
    const std::int64_t diagonal = i - s.first_query + offset;
    row.diagonal = s.first_key + diagonal;
    if (i >= p.query_count(b)) return row;  // padding sees nothing

    std::int64_t first = 0, last = s.keys;
    if (p.window_left != Call::kUnbounded) first = std::clamp<std::int64_t>(diagonal - p.window_left, 0, s.keys);
    const std::int64_t right = p.causal ? 0 : p.window_right;
    if (right < s.keys - diagonal) last = std::clamp<std::int64_t>(diagonal + right + 1, 0, s.keys);
    const std::int64_t end = p.key_count(b);
    row.band = KeyRange{s.first_key + first, s.first_key + last}.within(0, end);
    std::int64_t prefix = std::min(p.prefix, s.keys);
    if (p.prefix_causal) prefix = std::clamp<std::int64_t>(diagonal + 1, 0, prefix);
    row.prefix = KeyRange{s.first_key, s.first_key + prefix}.within(0, end);
    if (row.band.empty() || row.prefix.last >= row.band.first) {  // one interval
      row.band.widen(row.prefix);
      row.prefix = {};
    }
    return row;
  }

  /// False when blocks hide every pair of the rectangle.
  bool any_block(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t rows, KeyRange keys) const {
    if (!inputs_.blocks()) return true;
    const BlockSpec& m = *problem_.blocks;
    for (std::int64_t i = row / m.rows * m.rows; i < row + rows; i += m.rows) {
      for (std::int64_t j = keys.first / m.columns * m.columns; j < keys.last; j += m.columns) {
        if (block_visible(b, h, i, j)) return true;
      }
    }
    return false;
  }

  /// Turns capped scores of keys first, first + 1, ... of row i into biased ones: -inf where hidden, biases added.
  template <class Real>
  void apply(std::int64_t b, std::int64_t h, std::int64_t i, const RowKeys& row, std::int64_t first, std::int64_t n,
             Real* scores) const {
    constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
    if (inputs_.slopes()) add_alibi(b, h, row.diagonal - first, n, scores);
    if (inputs_.mask()) apply_mask(b, h, i, first, n, scores);
    if (inputs_.blocks()) apply_blocks(b, h, i, first, n, scores);
    if (inputs_.indices()) apply_lists(b, h, i, first, n, scores);
    const auto fill = [&](std::int64_t from, std::int64_t to) {
      from = std::clamp<std::int64_t>(from - first, 0, n);
      std::fill(scores + from, scores + std::clamp<std::int64_t>(to - first, from, n), kHidden);
    };
    fill(first, row.prefix.empty() ? row.band.first : row.prefix.first);
    if (!row.prefix.empty()) fill(row.prefix.last, row.band.first);
    fill(row.band.last, first + n);
  }

  /// Whether query i sees key j, everything considered. Slow; for rare paths.
  bool sees(std::int64_t b, std::int64_t h, std::int64_t i, const RowKeys& row, std::int64_t j) const {
    const bool in_range = (j >= row.prefix.first && j < row.prefix.last) || (j >= row.band.first && j < row.band.last);
    if (!in_range || (inputs_.blocks() && !block_visible(b, h, i, j))) return false;
    if (inputs_.indices()) {
      bool listed = false;
      each_listed(b, h, i, [&](const KeyRange& keys) { listed = listed || (j >= keys.first && j < keys.last); });
      if (!listed) return false;
    }
    const ConstTensor* mask = inputs_.mask();
    if (!mask) return true;
    const double element = load(mask->data, mask->dtype, mask_offset(*mask, b, h, i, j));
    return is_additive(*mask) ? element != -std::numeric_limits<double>::infinity() : element != 0;
  }

 private:
  bool block_visible(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const BlockSpec& m = *problem_.blocks;
    return inputs_.block(b, h - held_.head, i / m.rows - held_.query / m.rows, j / m.columns);
  }
  std::int64_t mask_offset(const ConstTensor& mask, std::int64_t b, std::int64_t h, std::int64_t i,
                           std::int64_t j) const {
    return mask.offset(b, h - held_.head, i - held_.query, j - held_.key);
  }

  struct Segment {
    std::int64_t first_query = 0, first_key = 0, queries = 0, keys = 0;
  };

  template <class Real>
  void add_alibi(std::int64_t b, std::int64_t h, std::int64_t diagonal, std::int64_t n, Real* scores) const {
    const auto slope = static_cast<Real>(inputs_.slope(b, h));
    const auto add = [&]<class Index>(Index from) {
      for (Index j = 0; j < static_cast<Index>(n); ++j) scores[j] -= slope * static_cast<Real>(std::abs(from - j));
    };
    // Vectors turn numbers of 32 bits into floats, but not those of 64.
    constexpr std::int64_t kNear = std::int64_t{1} << 30;
    if (std::max(std::abs(diagonal), n) < kNear)
      add(static_cast<std::int32_t>(diagonal));
    else
      add(diagonal);
  }

  template <class Real>
  void apply_blocks(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t first, std::int64_t n,
                    Real* scores) const {
    const std::int64_t width = problem_.blocks->columns;
    for (std::int64_t j = 0; j < n;) {
      const std::int64_t end = std::min(n, ((first + j) / width + 1) * width - first);
      if (!block_visible(b, h, i, first + j)) {
        std::fill(scores + j, scores + end, -std::numeric_limits<Real>::infinity());
      }
      j = end;
    }
  }

  /// The runs of keys that a query's list names.
  template <class Visit>
  void each_listed(std::int64_t b, std::int64_t h, std::int64_t i, const Visit& visit) const {
    const ConstTensor& lists = *inputs_.indices();
    const std::int64_t group = (h - held_.head) / problem_.heads_per_group(), block = problem_.select->block;
    const auto* const entry = static_cast<const std::int32_t*>(lists.data) + lists.offset(b, group, i - held_.query, 0);
    for (std::int64_t n = 0; n < lists.shape[3]; ++n) {
      const std::int64_t number = entry[n * lists.strides[3]];
      if (number >= 0) visit(KeyRange{number * block, (number + 1) * block});
    }
  }

  template <class Real>
  void apply_lists(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t first, std::int64_t n,
                   Real* scores) const {
    thread_local std::vector<char> listed;
    listed.assign(static_cast<std::size_t>(n), 0);
    each_listed(b, h, i, [&](const KeyRange& keys) {
      const KeyRange here = keys.within(first, first + n);
      for (std::int64_t j = here.first; j < here.last; ++j) listed[static_cast<std::size_t>(j - first)] = 1;
    });
    for (std::int64_t j = 0; j < n; ++j) {
      if (listed[static_cast<std::size_t>(j)] == 0) scores[j] = -std::numeric_limits<Real>::infinity();
    }
  }

  template <class Real>
  void apply_mask(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t first, std::int64_t n,
                  Real* scores) const {
    const ConstTensor& mask = *inputs_.mask();
    const std::int64_t at = mask_offset(mask, b, h, i, first);
    // A step that the compiler knows lets it use vectors.
    const auto with_step = [step = mask.strides[3]](const auto& loop) {
      if (step == 1)
        loop(std::integral_constant<std::int64_t, 1>());
      else
        loop(step);
    };
    if (!is_additive(mask)) {
      const auto* bytes = static_cast<const std::uint8_t*>(mask.data) + at;
      with_step([&](auto step) {
        for (std::int64_t j = 0; j < n; ++j)
          scores[j] = bytes[j * step] ? scores[j] : -std::numeric_limits<Real>::infinity();
      });
      return;
    }
    with_elements(mask.data, mask.dtype, [&](auto bias, const auto& number) {
      bias += at;
      with_step([&](auto step) {
        for (std::int64_t j = 0; j < n; ++j) {
          const auto value = number(bias[j * step]);
          // A hidden key may hold NaN, which must not survive the sum. Choosing before the sum and not after it leaves
          // nothing that a vector could not do.
          const Real score = value == -std::numeric_limits<decltype(value)>::infinity() ? Real{0} : scores[j];
          scores[j] = score + static_cast<Real>(value);
        }
      });
    });
  }

  const Call& problem_;
  const Inputs& inputs_;
  const HeldPart& held_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> segment_of_row_;
};

}  // namespace attest::support
