// Queries, keys and values that are dequantised, normalised, rotated, scaled or put together from two tensors once for
// all tiles: dense rows of a plan's own, which its kernel then reads as those of a call without such options.
//
// Deliberately not the reference's code: the two are checked against each other.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "backends/support/host_results.h"
#include "backends/support/key_place.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest::support {

template <class Real>
class PreparedRows {
 public:
  /// Of the inputs, views in which q, and where they need it k and v, are the plan's own. They are valid until the next
  /// call. `call` has the lengths of this run; the same inputs where it needs none of this.
  Inputs of(const Call& call, const Inputs& inputs) {
    Inputs own = inputs;
    const bool has_scaled_values = scales_of(call, Cache::values).has_value();
    const bool has_own_keys =
        call.prepares_operands() || call.latent_apart || has_scaled_values || call.k_scale.has_value();
    if (!has_own_keys && call.scales == Scales::none && !call.q_scale) return own;
    own.set(TensorId::q, queries(call, inputs));
    if (!has_own_keys) return own;
    own.set(TensorId::k, keys(call, inputs));
    const bool is_gathered = inputs.page_table() || inputs.past_k().data;  // values lie beside their keys
    if (is_gathered || has_scaled_values) own.set(TensorId::v, gathered(call, inputs, Cache::values, values_));
    if (!is_gathered) return own;
    for (const TensorId id : {TensorId::page_table, TensorId::past_k, TensorId::past_v, TensorId::past_lengths})
      own.remove(id);
    return own;
  }

  /// Key j of batch b, in place.
  static void prepare_key(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t j, Real* row) {
    prepare(call, inputs, TensorId::k_norm, position(inputs, TensorId::k_positions, b, j, j), row);
  }

  /// Multiplies a row of codes by its scales, which lie at `at`: batch or page, head, and row.
  static void dequantise(const ConstTensor& scales, const ScaleSpec& spec, const std::array<std::int64_t, 3>& at,
                         std::int64_t columns, Real* row) {
    const std::int64_t block = spec.share == ScaleShare::block ? spec.block : columns;
    for (std::int64_t first = 0, n = 0; first < columns; first += block, ++n) {
      const auto scale = static_cast<Real>(load(scales.data, scales.dtype, scales.offset(at[0], at[1], at[2], n)));
      for (std::int64_t d = first; d < std::min(columns, first + block); ++d) row[d] *= scale;
    }
  }

  std::size_t bytes() const { return (queries_.size() + keys_.size() + values_.size()) * sizeof(Real); }

 private:
  static constexpr DType kType = std::is_same_v<Real, double> ? DType::f64 : DType::f32;

  static Real number(const Inputs& inputs, TensorId id, std::int64_t b, std::int64_t h, std::int64_t row,
                     std::int64_t d) {
    const ConstTensor& from = inputs.at(id);
    return static_cast<Real>(load(from.data, from.dtype, from.offset(b, h, row, d)));
  }

  ConstTensor queries(const Call& call, const Inputs& inputs) {
    const std::int64_t dim = call.key_dim;
    queries_.assign(static_cast<std::size_t>(call.batch * call.query_heads * call.query_length * dim), 0);
    for (std::int64_t b = 0; b < call.batch; ++b) {
      for (std::int64_t h = 0; h < call.query_heads; ++h) {
        for (std::int64_t i = 0; i < call.stored_queries(b); ++i) {
          Real* const row = queries_.data() + ((b * call.query_heads + h) * call.query_length + i) * dim;
          read_row(inputs.q(), b, h, i, row);
          if (call.q_scale)
            dequantise(inputs.at(TensorId::q_scales), *call.q_scale, {b, h, i}, call.stored_key_dim(), row);
          if (call.latent_apart) read_row(inputs.at(TensorId::q_rope), b, h, i, row + call.stored_key_dim());
          prepare(call, inputs, TensorId::q_norm,
                  position(inputs, TensorId::q_positions, b, i, i + call.diagonal_offset(b)), row);
          Real factor = 1;
          if (call.has_head_scales()) factor *= number(inputs, TensorId::head_scales, 0, h, 0, 0);
          if (call.has_query_scales()) factor *= number(inputs, TensorId::query_scales, b, 0, i, 0);
          for (std::int64_t d = 0; d < dim && call.scales != Scales::none; ++d) row[d] *= factor;
        }
      }
    }
    return view(queries_, {call.batch, call.query_heads, call.query_length, dim});
  }

  ConstTensor keys(const Call& call, const Inputs& inputs) {
    const ConstTensor rows = gathered(call, inputs, Cache::keys, keys_);
    for (std::int64_t b = 0; b < call.batch; ++b) {
      const std::int64_t first = !call.rotated_cache ? 0 : call.append ? call.stored_keys(b) : inputs.past_length(b);
      for (std::int64_t h = 0; h < call.key_heads; ++h) {
        for (std::int64_t j = first; j < call.stored_keys(b); ++j) {
          prepare_key(call, inputs, b, j, keys_.data() + rows.offset(b, h, j, 0));
        }
      }
    }
    return rows;
  }

  /// Every stored key or value as a dense row; what is not stored is 0.
  ConstTensor gathered(const Call& call, const Inputs& inputs, Cache which, std::vector<Real>& to) {
    const std::int64_t dim = which == Cache::keys ? call.key_dim : call.value_dim;
    const Index4 shape{call.batch, call.key_heads, call.key_length, dim};
    to.assign(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * dim), 0);
    const ConstTensor rows = view(to, shape);
    const std::optional<ScaleSpec>& scales = scales_of(call, which);
    const std::int64_t columns = which == Cache::keys ? call.stored_key_dim() : dim;
    for (std::int64_t b = 0; b < call.batch; ++b) {
      for (std::int64_t j = 0; j < call.stored_keys(b); ++j) {
        const KeyPlace place = find_key(inputs, b, j);
        for (std::int64_t h = 0; h < call.key_heads; ++h) {
          Real* const row = to.data() + rows.offset(b, h, j, 0);
          read_row(tensor_of(inputs, place, which), place.batch, h, place.row, row);
          if (scales) {
            // Those of pages lie beside them; others are numbered as keys are.
            const bool in_pages = inputs.page_table() != nullptr;
            dequantise(inputs.at(which == Cache::keys || call.latent ? TensorId::k_scales : TensorId::v_scales),
                       *scales, {in_pages ? place.batch : b, h, in_pages ? place.row : j}, columns, row);
          }
          if (which == Cache::keys && call.latent_apart)
            read_row(inputs.at(TensorId::k_rope), place.batch, h, place.row, row + call.stored_key_dim());
        }
      }
    }
    return rows;
  }

  /// Of latent values, those of their keys.
  static const std::optional<ScaleSpec>& scales_of(const Call& call, Cache which) {
    return which == Cache::keys || call.latent ? call.k_scale : call.v_scale;
  }

  static ConstTensor view(const std::vector<Real>& rows, const Index4& shape) {
    return {rows.data(), kType, shape, {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}};
  }

  static std::int64_t position(const Inputs& inputs, TensorId list, std::int64_t b, std::int64_t row,
                               std::int64_t otherwise) {
    if (!inputs.has(list)) return otherwise;
    return inputs.at(list).as<const std::int32_t>()(b, 0, row, 0);
  }

  /// A row of q or k in place.
  static void prepare(const Call& call, const Inputs& inputs, TensorId weights, std::int64_t position, Real* row) {
    if (call.norm && !call.norm_after_rope) normalise(call, inputs, weights, row);
    const std::int64_t pairs = call.rotated_dims() / 2;
    // Partners are `apart` features from each other, pairs `step`.
    const std::int64_t apart = call.rope == Rope::halves ? pairs : 1, step = call.rope == Rope::halves ? 1 : 2;
    for (std::int64_t r = 0; r < pairs; ++r) {
      const Real cos = number(inputs, TensorId::cos, 0, 0, position, r);
      const Real sin = number(inputs, TensorId::sin, 0, 0, position, r);
      Real* const pair = row + r * step;
      const Real x = pair[0], y = pair[apart];
      pair[0] = x * cos - y * sin;
      pair[apart] = y * cos + x * sin;
    }
    if (call.norm && call.norm_after_rope) normalise(call, inputs, weights, row);
  }

  static void normalise(const Call& call, const Inputs& inputs, TensorId weights, Real* row) {
    const std::int64_t dim = call.key_dim;
    Real squares = 0;
    for (std::int64_t d = 0; d < dim; ++d) squares += row[d] * row[d];
    const Real factor = 1 / std::sqrt(squares / static_cast<Real>(dim) + static_cast<Real>(*call.norm));
    for (std::int64_t d = 0; d < dim; ++d) row[d] = row[d] * factor * number(inputs, weights, 0, 0, 0, d);
  }

  std::vector<Real> queries_, keys_, values_;
};

}  // namespace attest::support
