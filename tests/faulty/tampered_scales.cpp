// Mistakes of the scales of codes: forgotten, those of another head, row, block or tensor, or read as another type.
#include <array>
#include <cmath>
#include <cstdint>

#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

/// Every index along the axis gets the scale of the first.
void share_axis(ChangedInputs& c, TensorId scales, std::size_t axis) {
  if (c.inputs.has(scales)) c.inputs.change(scales).strides[axis] = 0;
}

/// The blocks of a row get each other's scales, the first that of the last.
void reverse_blocks(ChangedInputs& c, TensorId scales) {
  if (!c.inputs.has(scales)) return;
  ConstTensor& t = c.inputs.change(scales);
  const std::int64_t last = t.shape[3] - 1;
  t.data = static_cast<const char*>(t.data) + last * t.strides[3] * static_cast<std::int64_t>(size_of(t.dtype));
  t.strides[3] = -t.strides[3];
}

/// Scales of keys as a dense copy: of(the scale, b, j).
template <class Of>
void change_scales_of_keys(ChangedInputs& c, const Of& of) {
  const ConstTensor from = c.inputs.at(TensorId::k_scales);
  const Index4& n = from.shape;
  c.rows.clear();
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) {
    c.rows.push_back(of(load(from.data, from.dtype, from.offset(b, h, j, d)), b, j));
  });
  c.inputs.set(TensorId::k_scales, {c.rows.data(), DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
}

void forget_scales_of_cache(const Call& p, ChangedInputs& c) {
  if (!c.inputs.has(TensorId::k_scales) || p.past == 0 || p.page_size) return;
  change_scales_of_keys(c,
                        [&](double scale, std::int64_t b, std::int64_t j) { return j < p.past_length(b) ? 1 : scale; });
}

/// Of scales in e8m0.
template <class Of>
void change_powers(ChangedInputs& c, const Of& of) {
  if (!c.inputs.has(TensorId::k_scales) || c.inputs.at(TensorId::k_scales).dtype != DType::e8m0) return;
  change_scales_of_keys(c, [&](double scale, std::int64_t, std::int64_t) { return of(scale); });
}

// clang-format off
constexpr std::array kMistakes = {
    Mistake{"scales_dropped", "scales of keys are ignored (66)", [](Call& p) { p.k_scale.reset(); },
            [](const Call&, ChangedInputs& c) { c.inputs.remove(TensorId::k_scales); }},
    Mistake{"scales_of_head_0", "every key head has the scales of the first (190)", nullptr,
            [](const Call&, ChangedInputs& c) { share_axis(c, TensorId::k_scales, 1); }},
    Mistake{"scales_of_queries_dropped", "scales of queries are ignored (191)", [](Call& p) { p.q_scale.reset(); },
            [](const Call&, ChangedInputs& c) { c.inputs.remove(TensorId::q_scales); }},
    Mistake{"scales_of_values_dropped", "scales of values are ignored, those of latent ones too (192)",
            [](Call& p) {
              p.v_scale.reset();
              p.latent = p.latent && !p.k_scale;  // else the view is read as values without scales
            },
            [](const Call&, ChangedInputs& c) { c.inputs.remove(TensorId::v_scales); }},
    Mistake{"scales_of_keys_for_values", "values have the scales of their keys (193)", nullptr,
            [](const Call&, ChangedInputs& c) {
              if (c.inputs.has(TensorId::k_scales) && c.inputs.has(TensorId::v_scales))
                c.inputs.set(TensorId::v_scales, c.inputs.at(TensorId::k_scales));
            }},
    Mistake{"scales_of_page_0", "every page has the scales of the first (194)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.page_size) share_axis(c, TensorId::k_scales, 0);
            }},
    Mistake{"scales_of_blocks_reversed", "blocks of a row of values have the scales of each other (195)", nullptr,
            [](const Call&, ChangedInputs& c) { reverse_blocks(c, TensorId::v_scales); }},
    Mistake{"e8m0_with_another_bias", "scales in e8m0 are read with a bias of 125 (198)", nullptr,
            [](const Call&, ChangedInputs& c) { change_powers(c, [](double scale) { return 4 * scale; }); }},
    Mistake{"e8m0_as_integers", "codes of scales in e8m0 are multiplied by as they are (199)", nullptr,
            [](const Call&, ChangedInputs& c) { change_powers(c, [](double scale) { return std::log2(scale) + 127; }); }},
    Mistake{"scales_of_cache_one", "scales of cached keys are 1 (196)", nullptr, forget_scales_of_cache},
};
// clang-format on

}  // namespace

std::span<const Mistake> scale_mistakes() { return kMistakes; }

}  // namespace attest::faulty
