// Mistakes of merges of partial results: other operators are left as they are.
#include <array>
#include <cmath>

#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

/// The logsumexps of the parts, each as `change` makes it: the call's own are left alone.
template <class Change>
void change_lse(ChangedInputs& c, Change change) {
  if (!c.inputs.has(TensorId::part_lse)) return;
  const ConstTensor was = c.inputs.part_lse();
  const Index4& n = was.shape;
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    c.part_lse.push_back(change(load(was.data, was.dtype, was.offset(b, h, l, d))));
  });
  c.inputs.set(TensorId::part_lse, {c.part_lse.data(), DType::f64, n, {n[1] * n[2], n[2], 1, 1}});
}

/// Rows whose parts are all empty.
template <class Change>
void change_empty_rows(const Call& p, const Outputs& o, Change change) {
  if (!p.has_parts() || !o.lse()) return;
  each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t l) {
    const MutableTensor& lse = *o.lse();
    if (load(lse.data, lse.dtype, lse.offset(b, h, l, 0)) == -kInfinity) change(b, h, l);
  });
}

// clang-format off
constexpr std::array kMistakes = {
    Mistake{"merge_nan_of_nothing", "a row whose parts are all empty is NaN (130)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              change_empty_rows(p, o, [&](std::int64_t b, std::int64_t h, std::int64_t l) {
                each_in_row(*o.lse(), b, h, l, [](double, std::int64_t) { return kNaN; });
                if (o.has(TensorId::out)) each_in_row(o.out(), b, h, l, [](double, std::int64_t) { return kNaN; });
              });
            }},
    Mistake{"merge_finite_lse_of_nothing", "a row whose parts are all empty has a finite logsumexp (131)", nullptr, nullptr,
            [](const Call& p, const Outputs& o) {
              change_empty_rows(p, o, [&](std::int64_t b, std::int64_t h, std::int64_t l) {
                each_in_row(*o.lse(), b, h, l, [](double, std::int64_t) { return 0.0; });
              });
            }},
    Mistake{"merge_base_2_as_e", "logsumexps in base 2 are merged as natural ones (132)", [](Call& p) { p.base2 = false; }},
    Mistake{"merge_dense_lse", "logsumexps with strides are read one after the other (133)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.has_parts()) take_as_dense(c, {TensorId::part_lse});
            }},
    Mistake{"merge_lse_of_heads_last", "logsumexps are read with the heads side by side (134)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (!p.has_parts() || p.tensor(TensorId::part_lse).is_placed()) return;
              ConstTensor& lse = c.inputs.change(TensorId::part_lse);
              lse.strides[1] = 1;
              lse.strides[2] = lse.shape[1];
            }},
    Mistake{"merge_reads_empty_parts", "an empty part is read, with a weight of 0 (135)", nullptr,
            [](const Call&, ChangedInputs& c) { change_lse(c, [](double x) { return x == -kInfinity ? -1e30 : x; }); }},
    Mistake{"merge_unscaled_maximum", "logsumexps enter the weights without their scale (136)", nullptr,
            [](const Call&, ChangedInputs& c) { change_lse(c, [](double x) { return x / 2; }); }},
    Mistake{"merge_without_maximum", "no maximum is subtracted: exp overflows", nullptr,
            [](const Call&, ChangedInputs& c) { change_lse(c, [](double x) { return x > 88 ? kInfinity : x; }); }},
    Mistake{"merge_of_equal_weights", "every part has the same weight", nullptr,
            [](const Call&, ChangedInputs& c) { change_lse(c, [](double x) { return x == -kInfinity ? x : 0; }); }},
    Mistake{"merge_narrow_lse", "logsumexps pass through bf16", nullptr,
            [](const Call&, ChangedInputs& c) {
              change_lse(c, [](double x) { return static_cast<double>(bf16_to_float(to_bf16(x))); });
            }},
    Mistake{"merge_drops_last_part", "the last of several parts is dropped",
            [](Call& p) {
              if (p.parts > 1) --p.parts;
            }},
};
// clang-format on

}  // namespace

std::span<const Mistake> merge_mistakes() { return kMistakes; }

}  // namespace attest::faulty
