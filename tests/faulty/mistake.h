// A mistake of a tampered backend: what it changes between the harness and `example`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "reference/call/call.h"
#include "reference/call/tensor_table.h"
#include "reference/call/tensors.h"

namespace attest::faulty {

/// Inputs that a mistake replaces; owns what it points at.
struct ChangedInputs {
  Inputs inputs;
  std::vector<double> slopes, sinks, rows, part_lse;
  std::vector<std::int32_t> pages;
  std::vector<std::uint8_t> blocks;  ///< or another tensor of flags

  /// What stands in the list, if anything, becomes the input.
  void give_slopes(const Call& p) {
    const bool by_batch = slopes.size() > static_cast<std::size_t>(p.query_heads);
    if (slopes.empty()) return;
    inputs.set(TensorId::slopes, numbers_of_heads(slopes.data(), p.batch, p.query_heads, by_batch));
  }
  void give_sinks(const Call& p) {
    if (!sinks.empty()) inputs.set(TensorId::sinks, numbers_of_heads(sinks.data(), 1, p.query_heads, false));
  }
  void give_blocks(const Index4& n) { give_flags(TensorId::blocks, n); }
  void give_flags(TensorId id, const Index4& n) {
    inputs.set(id, {blocks.data(), DType::boolean, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
  }
  /// A tensor of query rows becomes a copy without packing: change(b, h, l, d) gives its numbers.
  template <class Change>
  void give_rows(const Call& p, TensorId id, Change change) {
    if (!inputs.has(id)) return;
    const Index4 n = inputs.at(id).shape;
    rows.assign(static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]), 0);
    auto to = rows.begin();
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      *to++ = l < p.stored_queries(b) ? change(b, h, l, d) : 0;
    });
    inputs.set(id, {rows.data(), DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
  }
};

struct Mistake {
  std::string_view name, text;
  void (*change_problem)(Call&) = nullptr;
  void (*change_inputs)(const Call&, ChangedInputs&) = nullptr;
  void (*change_outputs)(const Call&, const Outputs&) = nullptr;
  void (*change_views)(Outputs&) = nullptr;  ///< where results are to be written
};

/// Strides as if one element lay behind the other, but never beyond what was given: a wrong number, not a crash.
template <class Void>
void take_as_dense(AnyView<Void>& t) {
  const Index4& n = t.shape;
  const Index4 dense = {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
  for (std::size_t axis = 0; axis < 4; ++axis) t.strides[axis] = std::min(t.strides[axis], dense[axis]);
}
inline void take_as_dense(ChangedInputs& c, std::initializer_list<TensorId> ids) {
  for (const TensorId id : ids) take_as_dense(c.inputs.change(id));
}

template <class Change>
void each_element(const MutableTensor& t, Change change) {
  each_index(t.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    const std::int64_t at = t.offset(b, h, l, d);
    store(t.data, t.dtype, at, change(load(t.data, t.dtype, at)));
  });
}

/// Each row of a result that has storage: (b, h, l).
template <class Change>
void each_row(const Call& p, Change change) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t l = 0; l < p.stored_queries(b); ++l) change(b, h, l);
    }
  }
}

template <class Change>
void each_in_row(const MutableTensor& t, std::int64_t b, std::int64_t h, std::int64_t l, Change change) {
  for (std::int64_t d = 0; d < t.shape[3]; ++d) {
    const std::int64_t at = t.offset(b, h, l, d);
    store(t.data, t.dtype, at, change(load(t.data, t.dtype, at), d));
  }
}

/// Each gradient that the call asks for, as far as it is stored: change(index, value) becomes its element.
template <class Change>
void each_of_gradient(const Call& p, const Outputs& outputs, TensorId id, Change change) {
  const MutableTensor* t = outputs.find(id);
  if (!t) return;
  each_index(t->shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    const bool of_queries = row_of(id).axes[2] == Axis::queries;
    if (t->starts && l >= (of_queries ? p.query_count(b) : p.key_count(b))) return;
    const std::int64_t at = t->offset(b, h, l, d);
    store(t->data, t->dtype, at, change(Index4{b, h, l, d}, load(t->data, t->dtype, at)));
  });
}

/// Of gradients, of masks and windows of sequences, of merges, and of linear attention. The table of the others is in
/// tampered.cpp.
std::span<const Mistake> gradient_mistakes();
std::span<const Mistake> mask_mistakes();
std::span<const Mistake> merge_mistakes();
std::span<const Mistake> operand_mistakes();
std::span<const Mistake> scale_mistakes();
std::span<const Mistake> selection_mistakes();
std::span<const Mistake> state_mistakes();
std::span<const Mistake> storage_mistakes();

}  // namespace attest::faulty
