// Mistakes of queries and keys that are rotated, normalised and scaled.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

/// Places instead of those of the call: of each query and key, numbers from `query(b, i)` and `key(b, j)`.
template <class Query, class Key>
void give_places(const Call& p, ChangedInputs& c, const Query& query, const Key& key) {
  const std::int64_t queries = p.query_length, keys = p.key_length;
  c.pages.clear();
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t i = 0; i < queries; ++i) c.pages.push_back(static_cast<std::int32_t>(query(b, i)));
  }
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t j = 0; j < keys; ++j) c.pages.push_back(static_cast<std::int32_t>(key(b, j)));
  }
  c.inputs.set(TensorId::q_positions, {c.pages.data(), DType::i32, {p.batch, 1, queries, 1}, {queries, 0, 1, 0}});
  c.inputs.set(TensorId::k_positions,
               {c.pages.data() + p.batch * queries, DType::i32, {p.batch, 1, keys, 1}, {keys, 0, 1, 0}});
}
/// A call whose places are the mistake's own has them as tensors.
void take_places(Call& p) {
  if (p.rope != Rope::none && p.rope_positions == 0) p.rope_positions = table_rows(p);
}
bool has_places(const Call& p) { return p.rope != Rope::none && p.rope_positions == 0; }

/// The rows of cosines and sines in another order: row n becomes row other(n).
template <class Other>
void exchange_tables(ChangedInputs& c, const Other& other) {
  const Index4 n = c.inputs.at(TensorId::cos).shape;
  const auto size = static_cast<std::size_t>(n[2] * n[3]);
  c.rows.assign(2 * size, 0);
  std::size_t at = 0;
  for (const TensorId id : {TensorId::cos, TensorId::sin}) {
    const ConstTensor table = c.inputs.at(id);
    double* const to = c.rows.data() + at;
    each_index(n, [&](std::int64_t, std::int64_t, std::int64_t row, std::int64_t pair) {
      const std::int64_t from = std::min(other(row), n[2] - 1);
      c.rows[at++] = load(table.data, table.dtype, table.offset(0, 0, from, pair));
    });
    c.inputs.set(id, {to, DType::f64, n, {0, 0, n[3], 1}});
  }
}

/// The nearest number with 8 bits.
std::int64_t in_bf16(std::int64_t position) {
  double room = 0;
  store(&room, DType::bf16, 0, static_cast<double>(position));
  return static_cast<std::int64_t>(load(&room, DType::bf16, 0));
}

/// Weights of a norm, changed one by one.
template <class Change>
void change_weights(const Call& p, ChangedInputs& c, const Change& change) {
  if (!p.norm) return;
  const auto dim = static_cast<std::size_t>(p.key_dim);
  c.rows.clear();
  for (const TensorId id : {TensorId::q_norm, TensorId::k_norm}) {
    const ConstTensor from = c.inputs.at(id);
    for (std::int64_t d = 0; d < p.key_dim; ++d)
      c.rows.push_back(change(id, load(from.data, from.dtype, from.offset(0, 0, 0, d))));
  }
  for (const TensorId id : {TensorId::q_norm, TensorId::k_norm})
    c.inputs.set(id,
                 {c.rows.data() + (id == TensorId::k_norm ? dim : 0), DType::f64, {1, 1, 1, p.key_dim}, {0, 0, 0, 1}});
}

/// Of q and k that lie in one tensor each, whose norm comes first.
void normalise_over_heads(const Call& p, ChangedInputs& c) {
  if (!p.norm || p.norm_after_rope || p.page_size || p.past > 0 || p.packed_sequences()) return;
  const auto of_queries = static_cast<std::size_t>(p.batch * p.query_heads * p.query_length * p.key_dim);
  c.rows.assign(of_queries + static_cast<std::size_t>(p.batch * p.key_heads * p.key_length * p.key_dim), 0);
  for (const TensorId id : {TensorId::q, TensorId::k}) {
    double* const to = c.rows.data() + (id == TensorId::k ? of_queries : 0);
    const ConstTensor from = c.inputs.at(id),
                      weights = c.inputs.at(id == TensorId::q ? TensorId::q_norm : TensorId::k_norm);
    const Index4 n = from.shape;
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      double squares = 0;
      each_index({1, n[1], 1, n[3]}, [&](auto, std::int64_t head, auto, std::int64_t feature) {
        const double x = load(from.data, from.dtype, from.offset(b, head, l, feature));
        squares += x * x;
      });
      const double root = std::sqrt(squares / static_cast<double>(n[1] * n[3]) + *p.norm);
      to[((b * n[1] + h) * n[2] + l) * n[3] + d] = load(from.data, from.dtype, from.offset(b, h, l, d)) / root *
                                                   load(weights.data, weights.dtype, weights.offset(0, 0, 0, d));
    });
    c.inputs.set(id, {to, DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
  }
}

// clang-format off
constexpr std::array kMistakes = {
    Mistake{"rope_of_other_pairs", "rope takes its pairs side by side, or apart, as the call doesn't say (151)",
            [](Call& p) {
              if (p.rope != Rope::none) p.rope = p.rope == Rope::halves ? Rope::interleaved : Rope::halves;
            }},
    Mistake{"rope_positions_of_15_bits", "positions are kept in 15 bits (152)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.rope_positions > 1 << 15) exchange_tables(c, [](std::int64_t row) { return row % (1 << 15); });
            }},
    Mistake{"rope_positions_in_bf16", "angles are computed from positions in bf16 (153)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.rope != Rope::none) exchange_tables(c, in_bf16);
            }},
    Mistake{"rope_places_of_longest", "queries of every sequence are rotated as those of the longest (154)", take_places,
            [](const Call& p, ChangedInputs& c) {
              if (!has_places(p)) return;
              std::int64_t longest = 0;
              for (std::int64_t b = 0; b < p.batch; ++b) longest = std::max(longest, p.diagonal_offset(b));
              const std::int64_t last = table_rows(p) - 1;
              give_places(p, c, [&](auto, std::int64_t i) { return std::min(i + longest, last); }, [](auto, std::int64_t j) { return j; });
            }},
    Mistake{"rope_new_keys_from_0", "keys behind the cached ones are rotated as the first ones are (155)", take_places,
            [](const Call& p, ChangedInputs& c) {
              if (!has_places(p)) return;
              give_places(p, c, [&](std::int64_t b, std::int64_t i) { return i + p.diagonal_offset(b); },
                          [&](std::int64_t b, std::int64_t j) { return j < p.past_length(b) ? j : j - p.past_length(b); });
            }},
    Mistake{"rope_twice", "cached keys that were rotated before they were stored are rotated once more (156)",
            [](Call& p) { p.rotated_cache = false; }},
    Mistake{"rope_of_some_dropped", "where only some features are rotated none is (157)",
            [](Call& p) {
              if (p.rope == Rope::none || p.rotated_dims() == p.key_dim) return;
              p.rope = Rope::none;
              p.rotated_cache = p.norm_after_rope = false;
              p.rope_positions = 0;
            }},
    Mistake{"norm_over_heads", "the norm is taken over the features of all heads (158)", [](Call& p) { p.norm.reset(); },
            normalise_over_heads},
    Mistake{"norm_on_other_side", "the norm is taken on the other side of the rotation (159)",
            [](Call& p) {
              if (p.rope != Rope::none && p.norm) p.norm_after_rope = !p.norm_after_rope;
            }},
    Mistake{"norm_weights_plus_1", "the norm's weights are added to 1 (160)", nullptr,
            [](const Call& p, ChangedInputs& c) { change_weights(p, c, [](TensorId, double w) { return 1 + w; }); }},
    Mistake{"cap_on_other_side", "the cap is taken on the other side of the scale (161)",
            [](Call& p) {
              if (p.softcap) p.unscaled_cap = !p.unscaled_cap;
            }},
    Mistake{"scale_of_first", "every head and query is scaled as the first (162)", nullptr,
            [](const Call&, ChangedInputs& c) {
              for (const TensorId id : {TensorId::head_scales, TensorId::query_scales}) {
                if (!c.inputs.has(id)) continue;
                ConstTensor& scales = c.inputs.change(id);
                scales.strides = {};
                scales.starts = nullptr;
              }
            }},
    Mistake{"norm_weights_of_query", "keys are normalised with the weights of the queries", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.norm) c.inputs.set(TensorId::k_norm, c.inputs.at(TensorId::q_norm));
            }},
    Mistake{"norm_without_mean", "the norm divides by the root of the sum, not of the mean",
 nullptr,
            [](const Call& p, ChangedInputs& c) {
              const double root = std::sqrt(static_cast<double>(p.key_dim));
              change_weights(p, c, [root](TensorId, double w) { return w / root; });
            }},
    Mistake{"rope_turned_back", "features are rotated the other way", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.rope == Rope::none) return;
              exchange_tables(c, [](std::int64_t row) { return row; });
              const auto half = static_cast<std::ptrdiff_t>(c.rows.size() / 2);
              std::for_each(c.rows.begin() + half, c.rows.end(), [](double& sine) { sine = -sine; });
            }},
};
// clang-format on

}  // namespace

std::span<const Mistake> operand_mistakes() { return kMistakes; }

}  // namespace attest::faulty
