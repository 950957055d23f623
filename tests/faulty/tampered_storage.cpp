// Mistakes of storage in 16, 8 and 4 bits: bytes that are taken for those of another format.
#include <array>

#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

constexpr TensorId kStored[] = {TensorId::q, TensorId::k, TensorId::v, TensorId::past_k, TensorId::past_v};

/// Views of one format become those of another.
void take_for(ChangedInputs& c, DType format, DType other) {
  for (const TensorId id : kStored) {
    if (c.inputs.has(id) && c.inputs.at(id).dtype == format) c.inputs.change(id).dtype = other;
  }
}

/// Values of one format become others: change(number).
template <class Change>
void change_values(ChangedInputs& c, DType format, const Change& change) {
  const ConstTensor& v = c.inputs.v();
  if (v.dtype != format || v.starts) return;
  const Index4 n = v.shape;
  c.rows.clear();
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    c.rows.push_back(change(load(v.data, v.dtype, v.offset(b, h, l, d))));
  });
  c.inputs.set(TensorId::v, {c.rows.data(), DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
}

/// Values of 4 bits are taken from the other half of their byte.
void swap_pairs(ChangedInputs& c) {
  const ConstTensor& v = c.inputs.v();
  if (!is_packed_in_pairs(v.dtype) || v.starts) return;
  const Index4 n = v.shape;
  c.rows.clear();
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    c.rows.push_back(load(v.data, v.dtype, v.offset(b, h, l, 0) + (d ^ 1)));
  });
  c.inputs.set(TensorId::v, {c.rows.data(), DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
}

// clang-format off
constexpr std::array kMistakes = {
    Mistake{"e4m3_with_another_bias", "e4m3 is read with the bias of e4m3fnuz (181)", nullptr,
            [](const Call&, ChangedInputs& c) { change_values(c, DType::e4m3, [](double x) { return x / 2; }); }},
    Mistake{"e4m3_as_e5m2", "e4m3 is read as e5m2 (182)", nullptr,
            [](const Call&, ChangedInputs& c) { take_for(c, DType::e4m3, DType::e5m2); }},
    Mistake{"e5m2_as_e4m3", "e5m2 is read as e4m3", nullptr,
            [](const Call&, ChangedInputs& c) { take_for(c, DType::e5m2, DType::e4m3); }},
    Mistake{"keys_as_the_other_16_bits", "keys and values in f16 are read as bf16, and the other way round (183)", nullptr,
            [](const Call&, ChangedInputs& c) {
              for (const TensorId id : {TensorId::k, TensorId::v}) {
                DType& type = c.inputs.change(id).dtype;
                type = type == DType::f16 ? DType::bf16 : type == DType::bf16 ? DType::f16 : type;
              }
            }},
    Mistake{"i8_without_sign", "integers of 8 bits are read as unsigned (184)", nullptr,
            [](const Call&, ChangedInputs& c) {
              change_values(c, DType::i8, [](double x) { return x < 0 ? x + 256 : x; });
            }},
    Mistake{"pairs_swapped", "codes of 4 bits are taken from the other half of their byte (200)", nullptr,
            [](const Call&, ChangedInputs& c) { swap_pairs(c); }},
    Mistake{"i4_less_7", "integers of 4 bits are read as their code less 7 (201)", nullptr,
            [](const Call&, ChangedInputs& c) {
              change_values(c, DType::i4, [](double x) { return (x < 0 ? x + 16 : x) - 7; });
            }},
    Mistake{"e2m1_as_i4", "e2m1 is read as integers of 4 bits", nullptr,
            [](const Call&, ChangedInputs& c) { take_for(c, DType::e2m1, DType::i4); }},
};
// clang-format on

}  // namespace

std::span<const Mistake> storage_mistakes() { return kMistakes; }

}  // namespace attest::faulty
