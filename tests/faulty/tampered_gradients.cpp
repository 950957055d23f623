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
};
// clang-format on

}  // namespace

std::span<const Mistake> gradient_mistakes() { return kMistakes; }

}  // namespace attest::faulty
