#include "reference/operators/work.h"

#include <algorithm>

#include "reference/softmax/attention.h"

namespace attest {
namespace {

/// Keys that row i of batch b sees when neither segments nor masks decide: the band, and the prefix outside it.
std::int64_t count_in_band(const Call& p, std::int64_t b, std::int64_t i) {
  const std::int64_t diagonal = i + p.diagonal_offset(b), keys = p.key_count(b);
  std::int64_t first = 0, last = keys;
  if (p.causal) last = std::min(last, diagonal + 1);
  if (p.window_right < keys - diagonal) last = std::min(last, diagonal + p.window_right + 1);
  if (p.window_left != Call::kUnbounded) first = std::max(first, diagonal - p.window_left);
  last = std::max(first, last);
  std::int64_t prefix = std::min(p.prefix, keys);
  if (p.prefix_causal) prefix = std::clamp<std::int64_t>(diagonal + 1, 0, prefix);
  const std::int64_t shared = std::max<std::int64_t>(std::min(last, prefix) - first, 0);
  return last - first + prefix - shared;
}

}  // namespace

double count_visible_pairs(const Call& p, const Inputs& inputs) {
  // Without a mask every head sees the same.
  const bool by_head = inputs.mask() || inputs.blocks(), simple = !by_head && !p.segments;
  double pairs = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < (by_head ? p.query_heads : 1); ++h) {
      for (std::int64_t i = 0; i < p.query_count(b); ++i) {
        if (simple) pairs += static_cast<double>(count_in_band(p, b, i));
        for (std::int64_t j = 0; !simple && j < p.key_count(b); ++j) pairs += visible(p, inputs, b, h, i, j);
      }
    }
  }
  return by_head ? pairs : pairs * static_cast<double>(p.query_heads);
}

double useful_operations(const Call& p, const Inputs& inputs) {
  if (p.op == Op::attention) {
    return 2 * count_visible_pairs(p, inputs) * static_cast<double>(p.key_dim + p.value_dim);
  }
  const double state = static_cast<double>(p.key_dim) * static_cast<double>(p.value_dim);
  const double tokens = static_cast<double>(p.batch) * static_cast<double>(p.query_length);
  const double written = 2 + (p.has_decay() ? 1 : 0) + (p.has_beta() ? 2 : 0);
  return tokens * state * (2 * static_cast<double>(p.query_heads) + written * static_cast<double>(p.key_heads));
}

double row_operations(const Call& p) {
  if (p.op != Op::attention) return 4 * static_cast<double>(p.key_dim) * static_cast<double>(p.value_dim);
  return static_cast<double>(std::max<std::int64_t>(p.key_length, 1)) * static_cast<double>(p.key_dim + p.value_dim);
}

double dense_multiply_adds(const Call& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.query_heads) * static_cast<double>(p.query_length) *
         static_cast<double>(p.key_length) * static_cast<double>(p.key_dim + p.value_dim);
}

}  // namespace attest
