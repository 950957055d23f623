#include "reference/call/tensor_place.h"

namespace attest {
namespace {

std::optional<std::int64_t> checked_extent(const Index4& shape, const Index4& strides, std::int64_t offset) {
  for (std::int64_t n : shape) {
    if (n == 0) return offset;
  }
  std::int64_t last = offset;
  for (int axis = 0; axis < 4; ++axis) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &step) || __builtin_add_overflow(last, step, &last)) {
      return std::nullopt;
    }
  }
  std::int64_t bytes = 0;
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, 8, &bytes)) return std::nullopt;
  return last;
}

/// Packed sequences of the call's lengths, one after another with the call's gap between them.
void pack_sequences(const Call& p, TensorId id, TensorPlace& place) {
  place.starts = {0};
  const bool of_queries = id == TensorId::q || id == TensorId::out;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    place.counts.push_back(of_queries ? p.query_count(b) : p.key_count(b));
    const std::int64_t gap = b + 1 < p.batch ? p.gap : 0;
    place.starts.push_back(place.starts.back() + place.counts.back() + gap);
  }
}

Index4 shape_of(const Call& p, TensorId id) {
  switch (id) {
    case TensorId::q: return {p.batch, p.query_heads, p.query_length, p.key_dim};
    case TensorId::k:
    case TensorId::v: {
      const std::int64_t dim = id == TensorId::k ? p.key_dim : p.value_dim;
      if (p.page_size) return {page_count(p), p.key_heads, *p.page_size, dim};
      return {p.batch, p.key_heads, p.key_length - p.past, dim};
    }
    case TensorId::out: return {p.batch, p.query_heads, p.query_length, p.value_dim};
    case TensorId::mask: break;
  }
  Index4 shape = {p.batch, p.query_heads, p.query_length, p.key_length};
  for (int axis = 0; axis < 4; ++axis) {
    if (!p.mask || !p.mask->kept[axis]) shape[axis] = 1;
  }
  return shape;
}

Index4 strides_of(const Call& p, TensorId id, const Index4& n) {
  const TensorSpec& spec = p.tensor(id);
  if (spec.strides) return *spec.strides;
  if (id == TensorId::mask) {
    Index4 strides = {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
    for (int axis = 0; axis < 4; ++axis) {
      if (!p.mask || !p.mask->kept[axis]) strides[axis] = 0;
    }
    return strides;
  }
  switch (spec.layout.value_or(p.layout)) {
    case Layout::bhld: return {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
    // Packed sequences: one row after another, heads side by side; the batch's stride is not used.
    case Layout::thd: return {0, n[3], n[1] * n[3], 1};
    case Layout::blhd:
    case Layout::bld: return {n[2] * n[1] * n[3], n[3], n[1] * n[3], 1};
    // Packed tensors keep q, k and v (or k and v) of one position side by side; the output is plain.
    case Layout::qkv:
      if (id == TensorId::out) break;
      return {n[2] * 3 * n[1] * n[3], n[3], 3 * n[1] * n[3], 1};
    case Layout::kv:
      if (id == TensorId::out || id == TensorId::q) break;
      return {n[2] * 2 * n[1] * n[3], n[3], 2 * n[1] * n[3], 1};
  }
  return {n[2] * n[1] * n[3], n[3], n[1] * n[3], 1};
}

/// Strides of a dense tensor are products of its extents: sizes are checked before they are multiplied.
bool fits(const Index4& shape) {
  std::int64_t elements = 1;
  for (std::int64_t n : shape) {
    if (n > 0 && __builtin_mul_overflow(elements, n, &elements)) return false;
  }
  return elements <= std::int64_t{1} << 59;
}

Index4 dense_strides(const Index4& n) { return {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}; }

}  // namespace

TensorPlace place_of(const Call& p, TensorId id) {
  TensorPlace place;
  place.shape = shape_of(p, id);
  if (!fits(place.shape)) return place;
  place.strides = strides_of(p, id, place.shape);
  place.offset = p.tensor(id).offset;
  Index4 stored = place.shape;
  if (p.packed_sequences() && id != TensorId::mask) {
    pack_sequences(p, id, place);
    stored[0] = 1;
    stored[2] = place.starts.back();
  }
  place.elements = checked_extent(stored, place.strides, place.offset);
  return place;
}

TensorPlace dense_place(const Index4& shape) {
  TensorPlace place;
  place.shape = shape;
  place.strides = dense_strides(shape);
  place.elements = checked_extent(shape, place.strides, 0);
  return place;
}

CallPlaces places_of(const Call& p) {
  CallPlaces places{place_of(p, TensorId::q),
                    place_of(p, TensorId::k),
                    place_of(p, TensorId::v),
                    place_of(p, TensorId::out),
                    std::nullopt,
                    std::nullopt,
                    std::nullopt};
  if (p.mask) places.mask = place_of(p, TensorId::mask);
  if (p.past > 0 && !p.page_size) {  // pages hold the cached keys too
    places.past_k = dense_place({p.batch, p.key_heads, p.past, p.key_dim});
    places.past_v = dense_place({p.batch, p.key_heads, p.past, p.value_dim});
  }
  return places;
}

}  // namespace attest
