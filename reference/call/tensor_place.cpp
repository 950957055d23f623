#include "reference/call/tensor_place.h"

#include <algorithm>
#include <utility>

namespace attest {
namespace {

__extension__ typedef __int128 Wide;  // sizes are checked before they are trusted

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
  const bool of_queries = row_of(id).axes[2] == Axis::queries;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    place.counts.push_back(of_queries ? p.query_count(b) : p.key_count(b));
    const std::int64_t gap = b + 1 < p.batch ? p.gap : 0;
    place.starts.push_back(place.starts.back() + place.counts.back() + gap);
  }
}

Index4 dense_strides(const Index4& n) { return {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}; }

/// The tensor whose place in a layout it has.
TensorId laid_as(TensorId id) {
  switch (id) {
    case TensorId::saved_o:
    case TensorId::part_o:
    case TensorId::dout: return TensorId::out;
    case TensorId::new_k:
    case TensorId::new_v:
    case TensorId::q_rope:
    case TensorId::dq: return TensorId::q;
    case TensorId::k_rope:
    case TensorId::cache_k:
    case TensorId::dk: return TensorId::k;
    case TensorId::cache_v:
    case TensorId::dv: return TensorId::v;
    default: return id;
  }
}

/// Whether it has numbers for each row that no layout places, one as lse or one for each dimension as the decay.
bool is_list_of_rows(TensorId id) {
  const std::array<Axis, 4>& axes = row_of(id).axes;
  if (id == TensorId::k_positions) return true;
  return axes[2] == Axis::queries && (axes[3] == Axis::one || axes[3] == Axis::key_dim || axes[3] == Axis::selected) &&
         !has_layout(id);
}

/// By the layout, of the tensors that have one.
Index4 strides_of(Layout layout, TensorId id, const Index4& n) {
  switch (layout) {
    case Layout::bhld: return dense_strides(n);
    // Packed sequences: one row after another, heads side by side; the batch's stride is not used.
    case Layout::thd: return {0, n[3], n[1] * n[3], 1};
    case Layout::blhd:
    case Layout::bld: break;
    // Packed tensors keep q, k and v (or k and v) of one position side by side; the output is plain.
    case Layout::qkv:
      if (laid_as(id) == TensorId::out) break;
      return {n[2] * 3 * n[1] * n[3], n[3], 3 * n[1] * n[3], 1};
    case Layout::kv:
      if (laid_as(id) == TensorId::out || laid_as(id) == TensorId::q) break;
      return {n[2] * 2 * n[1] * n[3], n[3], 2 * n[1] * n[3], 1};
  }
  return {n[2] * n[1] * n[3], n[3], n[1] * n[3], 1};
}

Index4 strides_of(const Call& p, TensorId id, const Index4& n) {
  const TensorSpec& spec = p.tensor(id);
  if (spec.strides) return *spec.strides;
  if (has_layout(id)) {
    const Layout layout = (is_part(id) ? p.tensor(laid_as(id)) : spec).layout.value_or(p.layout);
    return strides_of(layout == Layout::thd && !is_packed(p, id) ? Layout::blhd : layout, id, n);
  }
  // Packed rows have their heads side by side.
  Index4 strides = is_packed(p, id) ? strides_of(Layout::thd, id, n) : dense_strides(n);
  const std::array<bool, 4> shared = broadcast_axes(p, id);
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (shared[axis]) strides[axis] = 0;
  }
  return strides;
}

/// Strides of a dense tensor are products of its extents: sizes are checked before they are multiplied.
bool fits(const Index4& shape) {
  std::int64_t elements = 1;
  for (std::int64_t n : shape) {
    if (n > 0 && __builtin_mul_overflow(elements, n, &elements)) return false;
  }
  return elements <= std::int64_t{1} << 59;
}

}  // namespace

bool has_layout(TensorId id) {
  switch (laid_as(id)) {
    case TensorId::q:
    case TensorId::k:
    case TensorId::v:
    case TensorId::out: return true;
    default: return false;
  }
}

bool follows_packing(TensorId id) { return has_layout(id) || is_list_of_rows(id); }

bool is_packed(const Call& p, TensorId id) {
  const bool of_keys = laid_as(id) == TensorId::k || laid_as(id) == TensorId::v;
  const bool in_pages = p.page_size && of_keys;
  return p.packed_sequences() && !in_pages && follows_packing(id);
}

TensorPlace place_of(const Call& p, TensorId id) {
  TensorPlace place;
  place.shape = stored_shape(p, id);
  if (!fits(place.shape)) return place;
  place.strides = strides_of(p, id, place.shape);
  place.offset = p.tensor(id).offset;
  Index4 stored = place.shape;
  if (is_packed(p, id)) {
    pack_sequences(p, id, place);
    stored[0] = 1;
    stored[2] = place.starts.back();
  }
  place.elements = checked_extent(stored, place.strides, place.offset);
  return place;
}

bool is_injective(const Index4& shape, const Index4& strides) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;
  for (int axis = 0; axis < 4; ++axis) {
    if (shape[axis] > 1) axes.emplace_back(strides[axis], shape[axis]);
  }
  std::sort(axes.begin(), axes.end());
  Wide reach = 0;
  for (const auto& [stride, extent] : axes) {
    if (stride <= reach) return false;
    reach += static_cast<Wide>(stride) * (extent - 1);
  }
  return true;
}

TensorPlace dense_place(const Index4& shape) {
  TensorPlace place;
  place.shape = shape;
  place.strides = dense_strides(shape);
  place.elements = checked_extent(shape, place.strides, 0);
  return place;
}

}  // namespace attest
