// Mistakes of backward passes: forward ones are left as they are.
#include <array>
#include <cmath>

#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

/// Numbers that are all 0, of the shape of an input.
void replace_by_zeros(ChangedInputs& c, TensorId id) {
  static constexpr double kZero = 0;
  const ConstTensor& was = c.inputs.at(id);
  if (was.data) c.inputs.set(id, {&kZero, DType::f64, was.shape, {}});
}

void scale_all(const Call& p, const Outputs& outputs, std::initializer_list<TensorId> ids, double factor) {
  for (const TensorId id : ids) each_of_gradient(p, outputs, id, [=](const Index4&, double x) { return x * factor; });
}

void set_where(const Call& p, const Outputs& outputs, std::initializer_list<TensorId> ids, double value,
               const auto& where) {
  for (const TensorId id : ids)
    each_of_gradient(p, outputs, id, [&](const Index4& at, double x) { return where(at) ? value : x; });
}

bool fewer_keys_than_queries(const Call& p) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    if (p.key_count(b) < p.query_count(b)) return true;
  }
  return false;
}

/// D is computed when the second half of do's rows is not written yet.
void read_half_of_dout(const Call& p, ChangedInputs& c) {
  const ConstTensor o = c.inputs.saved_o();
  c.give_rows(p, TensorId::saved_o, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    return l < p.query_count(b) / 2 ? load(o.data, o.dtype, o.offset(b, h, l, d)) : 0;
  });
}

/// Row l of sequence b is taken from row b * Lq + l of the packed rows, as if they were padded; 0 lies behind them.
void read_lse_as_padded(const Call& p, ChangedInputs& c) {
  const ConstTensor lse = c.inputs.saved_lse();
  if (!lse.starts) return;
  c.give_rows(p, TensorId::saved_lse, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t) {
    const std::int64_t row = b * p.query_length + l;
    const bool inside = row < lse.starts[p.batch - 1] + p.query_count(p.batch - 1);
    return inside ? load(lse.data, lse.dtype, h * lse.strides[1] + row * lse.strides[2]) : 0;
  });
}

constexpr std::int64_t kForwardTile = 128, kBackwardTile = 96;  ///< keys

bool mixes_up_tiles(const Call& p) {
  return p.wants_gradients() && p.blocks && p.blocks->columns == kForwardTile && p.key_dim > kForwardTile &&
         p.value_dim <= kForwardTile;
}

/// Tile n of the backward pass takes the block mask's entry n.
void read_blocks_by_backward_tiles(const Call& p, ChangedInputs& c) {
  if (!mixes_up_tiles(p)) return;
  Index4 n = c.inputs.blocks()->shape;
  const std::int64_t given = n[3];
  n[3] = (p.key_length + kBackwardTile - 1) / kBackwardTile;
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) {
    c.blocks.push_back(column < given && c.inputs.block(b, h, row, column));
  });
  c.give_blocks(n);
}

/// The queries that see a key are taken to be one range, which ends at the first that doesn't.
void end_at_first_gap(const Call& p, ChangedInputs& c) {
  if (!p.mask || p.mask->additive || p.pass != Pass::backward) return;
  const ConstTensor mask = *c.inputs.mask();
  const Index4 n = mask.shape;
  std::vector<std::uint8_t> begun(static_cast<std::size_t>(n[3])), ended(begun.size());
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const auto key = static_cast<std::size_t>(j);
    if (i == 0) begun[key] = ended[key] = 0;
    const bool seen = load(mask.data, mask.dtype, mask.offset(b, h, i, j)) != 0;
    ended[key] |= begun[key] && !seen;
    begun[key] |= seen;
    c.blocks.push_back(seen && !ended[key]);
  });
  c.give_flags(TensorId::mask, n);
}

/// Every batch's gradients of the inputs are the first one's.
void repeat_first_batch(const Call& p, const Outputs& o) {
  if (p.op != Op::gated_delta) return;
  for (const TensorId id : {TensorId::dq, TensorId::dk, TensorId::dv, TensorId::ddecay, TensorId::dbeta}) {
    each_of_gradient(p, o, id, [&](const Index4& at, double) {
      const MutableTensor& t = o.at(id);
      return load(t.data, t.dtype, t.offset(0, at[1], at[2], at[3]));
    });
  }
}

constexpr auto kFirstRow = [](const Index4& at) { return at[2] == 0; };

// clang-format off
constexpr std::array kMistakes = {
    Mistake{"backward_nan_past_half_a_tile", "dq is NaN where 64 queries are left over of tiles of 128 (13)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.query_length % 128 == 64) set_where(p, o, {TensorId::dq}, kNaN, kFirstRow);
            }},
    Mistake{"backward_not_deterministic", "dq changes by a rounding from run to run (24)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              static int runs = 0;
              const double factor = ++runs % 2 == 0 ? 1 + 0x1p-22 : 1;
              scale_all(p, o, {TensorId::dq}, factor);
            }},
    Mistake{"backward_unequal_dims", "dv loses its last column where dims differ (25)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.key_dim != p.value_dim) set_where(p, o, {TensorId::dv}, 0, [&](const Index4& at) { return at[3] == p.value_dim - 1; });
            }},
    Mistake{"backward_packed_fewer_keys", "dq is NaN where packed and causal with fewer keys than queries (35)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.packed_sequences() && p.causal && fewer_keys_than_queries(p)) set_where(p, o, {TensorId::dq}, kNaN, kFirstRow);
            }},
    Mistake{"backward_packed_softcap", "dq is wrong where packed and capped (36)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.packed_sequences() && p.softcap) scale_all(p, o, {TensorId::dq}, 1.03125);
            }},
    Mistake{"backward_many_sequences", "dv of the third packed sequence goes past its buffer (37)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.packed_sequences() && p.key_dim <= 64) set_where(p, o, {TensorId::dv}, 0, [](const Index4& at) { return at[0] >= 2; });
            }},
    Mistake{"backward_one_query", "dk and dv are NaN with one query (38)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.query_length == 1) set_where(p, o, {TensorId::dk, TensorId::dv}, kNaN, kFirstRow);
            }},
    Mistake{"backward_two_rows", "gradients of two rows of eight features are NaN (39)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.query_length == 2 && p.key_dim == 8) set_where(p, o, {TensorId::dq, TensorId::dk, TensorId::dv}, kNaN, kFirstRow);
            }},
    Mistake{"backward_nan_in_padding", "dq of padding rows is NaN (40)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              set_where(p, o, {TensorId::dq}, kNaN, [&](const Index4& at) { return at[2] >= p.query_count(at[0]); });
            }},
    Mistake{"backward_packed_offsets", "packed dq of the second sequence comes from a padded offset (41)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.packed_sequences()) set_where(p, o, {TensorId::dq}, 0, [](const Index4& at) { return at[0] == 1; });
            }},
    Mistake{"backward_swaps_dk_dv", "dk and dv are each other's (42)", nullptr, nullptr, nullptr,
            [](Outputs& o) {
              if (o.dk() && o.dv() && o.dk()->shape == o.dv()->shape) std::swap(o.change(TensorId::dk), o.change(TensorId::dv));
            }},
    Mistake{"backward_loses_causal", "gradients are those of a call without causal and window (43)",
            [](Call& p) {
              if (!p.wants_gradients()) return;
              p.causal = false;
              p.window_left = p.window_right = Call::kUnbounded;
            }},
    Mistake{"backward_other_dropout", "gradients are those of another dropout (44)",
            [](Call& p) { p.dropout_seed += p.wants_gradients() && p.dropout > 0 ? 1 : 0; }},
    Mistake{"backward_mask_alone", "dmask is 0 where nothing else is asked for (45)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.outputs == std::vector{Output::dmask}) scale_all(p, o, {TensorId::dmask}, 0);
            }},
    Mistake{"backward_nan_from_empty_row", "an empty row's NaN is in what all rows share (47)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              for (std::int64_t b = 0; b < p.batch; ++b) {
                if (p.query_count(b) < p.query_length) set_where(p, o, {TensorId::dk}, kNaN, [=](const Index4& at) { return at[0] == b; });
              }
            }},
    Mistake{"backward_always_causal", "gradients are always causal (48)",
            [](Call& p) { p.causal = p.causal || p.wants_gradients(); }},
    Mistake{"backward_heads_interleaved", "dk of the key heads are interleaved (49)", nullptr, nullptr, nullptr,
            [](Outputs& o) {
              if (!o.dk()) return;
              MutableTensor& t = o.change(TensorId::dk);
              if (t.starts || t.shape[1] < 2) return;
              t.data = static_cast<char*>(t.data) + static_cast<std::int64_t>(size_of(t.dtype)) * t.strides[1] * (t.shape[1] - 1);
              t.strides[1] = -t.strides[1];
            }},
    Mistake{"backward_mean_of_group", "dk and dv are means over the group (50)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              scale_all(p, o, {TensorId::dk, TensorId::dv}, 1 / static_cast<double>(std::max<std::int64_t>(p.heads_per_group(), 1)));
            }},
    Mistake{"backward_without_delta", "D is forgotten (53)", nullptr,
            [](const Call&, ChangedInputs& c) { replace_by_zeros(c, TensorId::saved_o); }},
    Mistake{"backward_scale_twice", "dk is scaled twice (53)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) { scale_all(p, o, {TensorId::dk}, p.scale_value()); }},
    Mistake{"backward_mask_of_first_batch", "dmask is a mean over the axes along which the mask is broadcast (53)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.mask && !p.mask->kept[0]) scale_all(p, o, {TensorId::dmask}, 1 / static_cast<double>(std::max<std::int64_t>(p.batch, 1)));
            }},
    Mistake{"backward_wide_grouped", "dk is wrong for wide heads of large groups in several batches, causal (99)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.key_dim == 256 && p.heads_per_group() >= 8 && p.batch > 1 && p.causal) scale_all(p, o, {TensorId::dk}, 1.015625);
            }},
    Mistake{"backward_blocks", "gradients of block masks are many times too large (100)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.blocks) scale_all(p, o, {TensorId::dq, TensorId::dk, TensorId::dv}, 150);
            }},
    Mistake{"backward_drops_dlse", "the derivative by lse is dropped (101)", nullptr,
            [](const Call&, ChangedInputs& c) {
              if (c.inputs.dlse()) replace_by_zeros(c, TensorId::dlse);
            }},
    Mistake{"backward_without_dsinks", "sinks get no gradient (102)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) { scale_all(p, o, {TensorId::dsinks}, 0); }},
    Mistake{"backward_past_tiles_with_mask", "NaN where one row is left over of tiles and there is a mask (103)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.query_length % 32 == 1 && p.query_length > 1 && p.mask)
                set_where(p, o, {TensorId::dq}, kNaN, [&](const Index4& at) { return at[2] == p.query_length - 1; });
            }},
    Mistake{"backward_block_beyond_sequence", "NaN where a block is longer than the sequence and lse counts (104)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.blocks && p.blocks->rows > p.query_length && p.dlse) set_where(p, o, {TensorId::dq}, kNaN, kFirstRow);
            }},
    Mistake{"backward_bias_of_causal", "a causal bias gets no gradient (105)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.causal) scale_all(p, o, {TensorId::dmask}, 0);
            }},
    Mistake{"backward_early_delta", "D of later rows is computed before do is written (109)", nullptr, read_half_of_dout},
    Mistake{"backward_sparse", "dq is 5e10 times too large where a boolean mask hides keys (110)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              if (p.mask && !p.mask->additive) scale_all(p, o, {TensorId::dq}, 5e10);
            }},
    Mistake{"backward_padded_lse", "packed rows find their lse where padded ones would have it (111)", nullptr, read_lse_as_padded},
    Mistake{"backward_tile_of_96", "block masks of 128 keys are read by tiles of 96 keys for wide keys (112)",
            [](Call& p) {
              if (mixes_up_tiles(p)) p.blocks->columns = kBackwardTile;
            },
            read_blocks_by_backward_tiles},
    Mistake{"backward_ends_at_gap", "a key's queries end at the first one that does not see it (113)", nullptr, end_at_first_gap},
    Mistake{"backward_first_batch", "gradients of the gated delta rule are those of the first batch (114)", nullptr, nullptr, repeat_first_batch},
};
// clang-format on

}  // namespace

std::span<const Mistake> gradient_mistakes() { return kMistakes; }

}  // namespace attest::faulty
