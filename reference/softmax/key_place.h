// Where queries, keys and values lie, as the reference reads them. Backends find them by code of their own.
#pragma once

#include <cstdint>

#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest {

/// Where key j of batch b is read: row `row` of entry `batch` of k and v, of past_k and past_v, or of new_k and new_v.
struct KeyPlace {
  enum class In : std::uint8_t { cache, past, fresh };
  In in = In::cache;
  std::int64_t batch = 0, row = 0;

  TensorId keys() const { return in == In::past ? TensorId::past_k : in == In::fresh ? TensorId::new_k : TensorId::k; }
  TensorId values() const {
    return in == In::past ? TensorId::past_v : in == In::fresh ? TensorId::new_v : TensorId::v;
  }
  TensorId tensor(Cache cache) const { return cache == Cache::keys ? keys() : values(); }
};

/// Its place in the cache; a call that appends writes its new keys there.
inline KeyPlace place_in_cache(const Inputs& inputs, std::int64_t b, std::int64_t j) {
  if (inputs.page_table())
    return {KeyPlace::In::cache, inputs.page(b, j / inputs.rows_of_page()), j % inputs.rows_of_page()};
  const std::int64_t past = inputs.past_length(b);
  if (j < past) return {KeyPlace::In::past, b, j};
  return {KeyPlace::In::cache, b, j - past};
}

inline KeyPlace place_of_key(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t j) {
  if (call.append && j >= call.first_new_key(b) && j < call.key_count(b))
    return {KeyPlace::In::fresh, b, j - call.first_new_key(b)};
  return place_in_cache(inputs, b, j);
}

/// The nearest number of the type, of two the even one.
inline double as_stored(DType type, double value) {
  double room = 0;
  store(&room, type, 0, value);
  return load(&room, type, 0);
}

/// What element d of a row of codes is multiplied by, 1 without scales: those of row `row` of entry `batch`.
inline double scale_at(const ConstTensor* scales, const std::optional<ScaleSpec>& spec, std::int64_t batch,
                       std::int64_t h, std::int64_t row, std::int64_t d) {
  if (!scales) return 1;
  return load(scales->data, scales->dtype,
              scales->offset(batch, h, row, spec->share == ScaleShare::block ? d / spec->block : 0));
}

/// Of key (or value) j of batch b. Scales of pages lie beside them, others are numbered as all keys are; columns that
/// lie apart have none.
inline double scale_of_key(const Call& call, const Inputs& inputs, Cache cache, std::int64_t b, std::int64_t h,
                           std::int64_t j, std::int64_t d) {
  const bool in_keys = cache == Cache::keys || call.latent;  // latent values are dequantised with their keys
  const ConstTensor* const scales = in_keys ? inputs.k_scales() : inputs.v_scales();
  if (!scales || (cache == Cache::keys && d >= call.stored_key_dim())) return 1;
  const bool in_pages = inputs.page_table();
  const KeyPlace place = in_pages ? place_in_cache(inputs, b, j) : KeyPlace{KeyPlace::In::cache, b, j};
  return scale_at(scales, in_keys ? call.k_scale : call.v_scale, place.batch, h, place.row, d);
}

/// Likewise, of query i.
inline double scale_of_query(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i,
                             std::int64_t d) {
  return d < call.stored_key_dim() ? scale_at(inputs.q_scales(), call.q_scale, b, h, i, d) : 1;
}

/// Feature d of key (or value) j of key head h, wherever it lies: in the past, in a page or among the new ones. One
/// that the call appends is as the cache holds it then.
inline double load_code(const Call& call, const Inputs& inputs, Cache cache, std::int64_t b, std::int64_t h,
                        std::int64_t j, std::int64_t d) {
  const KeyPlace place = place_of_key(call, inputs, b, j);
  if (cache == Cache::keys && d >= call.stored_key_dim()) {
    const ConstTensor& apart = inputs.at(TensorId::k_rope);
    return load(apart.data, apart.dtype, apart.offset(place.batch, h, place.row, d - call.stored_key_dim()));
  }
  const ConstTensor& from = inputs.at(place.tensor(cache));
  const double value = load(from.data, from.dtype, from.offset(place.batch, h, place.row, d));
  // One that is rotated first is rounded behind that (operands.h).
  if (place.in != KeyPlace::In::fresh || (cache == Cache::keys && call.rotated_cache)) return value;
  return as_stored(inputs.at(cache == Cache::keys ? TensorId::k : TensorId::v).dtype, value);
}

/// The same, times its scale.
inline double load_cached(const Call& call, const Inputs& inputs, Cache cache, std::int64_t b, std::int64_t h,
                          std::int64_t j, std::int64_t d) {
  return load_code(call, inputs, cache, b, h, j, d) * scale_of_key(call, inputs, cache, b, h, j, d);
}

/// Feature d of query i, from q or from the columns that lie apart.
inline double load_query_code(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i,
                              std::int64_t d) {
  const bool is_apart = d >= call.stored_key_dim();
  const ConstTensor& from = inputs.at(is_apart ? TensorId::q_rope : TensorId::q);
  return load(from.data, from.dtype, from.offset(b, h, i, is_apart ? d - call.stored_key_dim() : d));
}

inline double load_query(const Call& call, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i,
                         std::int64_t d) {
  return load_query_code(call, inputs, b, h, i, d) * scale_of_query(call, inputs, b, h, i, d);
}

}  // namespace attest
