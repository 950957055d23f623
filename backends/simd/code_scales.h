// Scales of keys and values that are stored in 8 bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "backends/support/key_rows.h"
#include "backends/support/prepared_rows.h"
#include "reference/call/call.h"

namespace attest::simd {

template <class Real>
class CodeScales {
 public:
  /// With gradients keys and values were multiplied before.
  explicit CodeScales(const Call& call) {
    if (call.wants_gradients()) return;
    keys_ = call.k_scale;
    values_ = call.v_scale;
  }

  bool any() const { return keys_ || values_; }
  /// Whether each row has one.
  bool of_rows() const { return !in_blocks(keys_) && !in_blocks(values_); }

  /// Multiplies the row of key j, which lies at `place`.
  void apply(const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t j, const support::KeyPlace& place,
             Cache which, Real* row) const {
    const auto& spec = of(which);
    if (!spec) return;
    const std::int64_t columns = support::tensor_of(inputs, place, which).shape[3];
    support::PreparedRows<Real>::dequantise(tensor(inputs, which), *spec, at(inputs, b, h, j, place), columns, row);
  }

  /// Those of `count` keys from `first` on; 1 where there are none.
  void read(const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t count, Cache which,
            Real* to) const {
    if (!of(which)) return static_cast<void>(std::fill_n(to, count, Real{1}));
    const ConstTensor& scales = tensor(inputs, which);
    const auto offset_of = [&](std::int64_t j) {
      const auto place = at(inputs, b, h, j, support::find_key(inputs, b, j));
      return scales.offset(place[0], place[1], place[2], 0);
    };
    if (scales.dtype == DType::f32 && (!inputs.page_table() || support::place_of_keys(inputs, b, first, count))) {
      const auto* from = static_cast<const float*>(scales.data) + offset_of(first);
      for (std::int64_t j = 0; j < count; ++j) to[j] = static_cast<Real>(from[j * scales.strides[2]]);
    } else {
      for (std::int64_t j = 0; j < count; ++j)
        to[j] = static_cast<Real>(load(scales.data, scales.dtype, offset_of(first + j)));
    }
  }

 private:
  static bool in_blocks(const std::optional<ScaleSpec>& spec) { return spec && spec->share == ScaleShare::block; }

  const std::optional<ScaleSpec>& of(Cache which) const { return which == Cache::keys ? keys_ : values_; }

  static const ConstTensor& tensor(const Inputs& inputs, Cache which) {
    return inputs.at(which == Cache::keys ? TensorId::k_scales : TensorId::v_scales);
  }

  /// Those of pages lie beside them; others are numbered as keys are.
  static std::array<std::int64_t, 3> at(const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t j,
                                        const support::KeyPlace& place) {
    if (inputs.page_table()) return {place.batch, h, place.row};
    return {b, h, j};
  }

  std::optional<ScaleSpec> keys_, values_;
};

}  // namespace attest::simd
