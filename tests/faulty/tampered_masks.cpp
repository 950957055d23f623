// Mistakes of masks and windows that belong to sequences: cached cells, spans; and of a causal mask beside a scale.
#include <array>
#include <cstdint>
#include <limits>

#include "reference/softmax/attention.h"
#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

bool has_window(const Call& p) { return p.window_left != Call::kUnbounded; }

bool keeps_last_cells(const Call& p) {
  return p.page_size && p.batch > 1 && has_window(p) && !p.blocks && p.key_length > 0 && p.query_length > 0;
}

/// Of all cells of the cache, as many as one sequence's window needs: the keys in others are lost.
void keep_last_cells(const Call& p, ChangedInputs& c) {
  if (!keeps_last_cells(p)) return;
  const std::int64_t rows = *p.page_size;
  const std::int64_t first = c.inputs.k().shape[0] * rows - (p.query_length + std::min(p.window_left, p.key_length));
  const Index4 n = {p.batch, p.query_heads, 1, p.key_length};
  each_index(n, [&](std::int64_t b, std::int64_t, std::int64_t, std::int64_t j) {
    c.blocks.push_back(j < p.key_count(b) && c.inputs.page(b, j / rows) * rows + j % rows >= first);
  });
  c.give_blocks(n);
}

/// Spans that are longer than the window become causal: what the mask shows behind a query goes.
void drop_long_spans(const Call& p, ChangedInputs& c) {
  if (!p.mask || p.mask->additive || !has_window(p)) return;
  const ConstTensor mask = *c.inputs.mask();
  const Index4 n = mask.shape;
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const std::int64_t offset = p.key_count(b) - p.query_count(b), keys = p.key_count(b);
    const auto seen = [&](std::int64_t query, std::int64_t key) {
      return load(mask.data, mask.dtype, mask.offset(b, h, query, key)) != 0;
    };
    bool shown = seen(i, j);
    if (shown && j > i + offset && j < keys) {
      std::int64_t first = i, end = j + 1;
      while (end < keys && seen(i, end)) ++end;
      while (first > 0 && seen(first - 1, end - 1)) --first;
      shown = end - (first + offset) <= p.window_left + 1;
    }
    c.blocks.push_back(shown);
  });
  c.give_flags(TensorId::mask, n);
}

/// -inf times 0 is NaN, and times a number below 0 the largest score of all: rows with keys behind the diagonal are
/// NaN.
void hide_before_scaling(const Call& p, ChangedInputs& c) {
  if (!p.has_scores() || !p.causal || p.scale_value() > 0) return;
  const ConstTensor q = c.inputs.q();
  c.give_rows(p, TensorId::q, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    const bool hides = locate(p, b, l, 0).diagonal < p.key_count(b) - 1;
    return hides ? std::numeric_limits<double>::quiet_NaN() : load(q.data, q.dtype, q.offset(b, h, l, d));
  });
}

constexpr std::array kMistakes = {
    Mistake{"hidden_before_scaling", "causal hides keys before the scale, which may be 0 or below (202)", nullptr,
            hide_before_scaling},
    Mistake{"window_of_last_cells", "of sequences in pages a window keeps the last cells alone (118)",
            [](Call& p) {
              if (keeps_last_cells(p)) p.blocks = BlockSpec{p.query_length, 1};
            },
            keep_last_cells},
    Mistake{"window_lost_beside_mask", "a window beside a boolean mask is ignored (120)",
            [](Call& p) {
              if (p.mask && !p.mask->additive) p.window_left = p.window_right = Call::kUnbounded;
            }},
    Mistake{"long_spans_are_causal", "spans that are longer than the window are causal (121)", nullptr,
            drop_long_spans},
};

}  // namespace

std::span<const Mistake> mask_mistakes() { return kMistakes; }

}  // namespace attest::faulty
