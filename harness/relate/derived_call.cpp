#include "harness/relate/derived_call.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "reference/call/tensor_place.h"
#include "reference/options/find_fault.h"
#include "reference/softmax/key_place.h"

namespace attest {
namespace {

template <class Number>
std::vector<Number> numbers_from(Number first, std::int64_t count) {
  std::vector<Number> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), first);
  return list;
}

/// Whether every element of the part has the numbers of the same element of the whole.
bool keeps_numbers(const Arrangement& part) {
  const bool other_keys = part.first_key != 0 || !part.keys.empty();
  return part.batches == numbers_from<std::int64_t>(0, part.call.batch) && !other_keys && part.first_query_head == 0 &&
         std::ranges::all_of(part.first_query, [](std::int64_t first) { return first == 0; });
}

bool is_stored(const Call& call, TensorId id, const Index4& at) {
  const Axis rows = row_of(id).axes[2];
  if (!is_packed(call, id)) return true;
  return at[2] < (rows == Axis::queries ? call.query_count(at[0]) : call.key_count(at[0]));
}

/// The head of q or k of the whole, of one of the part.
std::int64_t shared_head(const Arrangement& part, const Call& whole, std::int64_t head) {
  return part.call.qk_heads == whole.qk_heads ? head : whole.qk_head(head);
}

/// The element of the whole that is this one of a tensor of the part.
Index4 whole_place(const Arrangement& part, const Call& whole, TensorId id, const Index4& at) {
  const auto b = static_cast<std::size_t>(at[0]);
  Index4 to = at;
  if (part.batches.empty()) return to;  // of no sequence, and all that tensors without a batch have
  for (std::size_t n = 0; n < 4; ++n) {
    switch (row_of(id).axes[n]) {
      case Axis::batch: to[n] = part.batches[b]; break;
      case Axis::query_heads: to[n] += part.first_query_head; break;
      case Axis::q_heads: to[n] = shared_head(part, whole, part.first_query_head + at[n]); break;
      case Axis::key_heads: to[n] += part.first_key_head; break;
      case Axis::queries: to[n] += part.first_query[b]; break;
      case Axis::keys: to[n] = whole.has_state() ? at[n] : part.key(at[0], at[n]); break;
      case Axis::mask_rows: to[n] += part.first_query[b] / whole.blocks->rows; break;
      case Axis::mask_columns: to[n] += part.first_key / whole.blocks->columns; break;
      default: break;
    }
  }
  return to;
}

/// Pages of the part in the opposite order of those of the whole that they stand for, and no others.
void fill_page_table(const Arrangement& part, const Call& whole, const Inputs& inputs, TensorStorage& table) {
  struct Entry {
    std::int64_t page, b, n;
  };
  std::vector<Entry> entries;
  for (std::int64_t b = 0; b < part.call.batch; ++b) {
    for (std::int64_t n = 0; n < table.shape()[3]; ++n) table.set(b, 0, 0, n, -1);
    for (std::int64_t n = 0; n < page_count(part.call, b); ++n)
      entries.push_back({whole.page_size ? inputs.page(part.batches[static_cast<std::size_t>(b)], n) : n, b, n});
  }
  std::ranges::stable_sort(entries, std::greater<>(), &Entry::page);
  for (std::size_t n = 0; n < entries.size(); ++n) table.set(entries[n].b, 0, 0, entries[n].n, static_cast<double>(n));
}

double value_at(const ConstTensor& from, const Index4& at) {
  return load(from.data, from.dtype, from.offset(at[0], at[1], at[2], at[3]));
}

/// Keys or values, wherever they lie in both calls.
void copy_keys(const Arrangement& part, const Call& whole, const Inputs& inputs, Cache cache, CaseInputs& made) {
  const bool values = cache == Cache::values;
  const Inputs views = made.views();
  const std::int64_t dim = values ? whole.value_dim : whole.key_dim;
  for (std::int64_t b = 0; b < part.call.batch; ++b) {
    const std::int64_t from = part.batches[static_cast<std::size_t>(b)];
    for (std::int64_t j = 0; j < part.call.stored_keys(b); ++j) {
      const KeyPlace place = place_of_key(part.call, views, b, j);
      const std::int64_t of_whole = part.key(b, j);
      const bool there = of_whole < whole.stored_keys(from);
      const std::int64_t heads = made.at(place.tensor(cache)).shape()[1];
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t head = part.first_key_head + h;
        const std::int64_t of_head = values ? head : shared_head(part, whole, head);
        for (std::int64_t d = 0; d < dim; ++d) {
          const double value = there ? load_cached(whole, inputs, cache, from, of_head, of_whole, d) : 0;
          set_cached(made, part.call, cache, place, h, d, value);
        }
      }
    }
  }
}

/// The slopes and sinks that a call lists, for its own batches and heads.
void list_own_numbers(Arrangement& part, const Call& whole, const Inputs& inputs) {
  const auto own = [&](const std::vector<double>& list, bool by_batch) {
    std::vector<double> numbers;
    for (std::int64_t b = 0; b < (by_batch ? part.call.batch : 1); ++b) {
      const std::int64_t first = by_batch ? part.batches[static_cast<std::size_t>(b)] * whole.query_heads : 0;
      for (std::int64_t h = 0; h < part.call.query_heads; ++h)
        numbers.push_back(list[static_cast<std::size_t>(first + part.first_query_head + h)]);
    }
    return numbers;
  };
  const bool other_heads = part.call.query_heads != whole.query_heads;
  if (part.call.alibi && (other_heads || whole.slopes_per_batch()))
    part.call.alibi_slopes = own(list_numbers(inputs.slopes()), whole.slopes_per_batch());
  if (part.call.sinks && !whole.sink_values.empty()) part.call.sink_values = own(whole.sink_values, false);
}

/// Whether a key has the same type wherever it lies in either call: one that becomes a cached key, or is one no more,
/// would be rounded otherwise.
bool keeps_types(const Call& part, const Call& whole) {
  if (whole.past == 0 && part.past == 0) return true;
  return type_of(whole, TensorId::past_k) == type_of(whole, TensorId::k) &&
         type_of(whole, TensorId::past_v) == type_of(whole, TensorId::v) &&
         type_of(part, TensorId::past_k) == type_of(part, TensorId::k) &&
         type_of(part, TensorId::past_v) == type_of(part, TensorId::v);
}

/// Whether queries and keys that are rotated by their places stand where they stand in the whole, and those that were
/// cached in one call were so in the other.
bool keeps_places(const Arrangement& part, const Call& whole) {
  const Call& own = part.call;
  if (whole.rope == Rope::none) return true;
  for (std::int64_t b = 0; b < own.batch; ++b) {
    const std::int64_t of_whole = part.batches[static_cast<std::size_t>(b)];
    if (own.rotated_cache && whole.append) return false;  // new keys are written there, and then read
    if (own.rotated_cache && own.past_length(b) != whole.past_length(of_whole)) return false;
    for (std::int64_t j = 0; own.rotated_cache && j < own.stored_keys(b); ++j) {
      if ((j < own.past_length(b)) != (part.key(b, j) < whole.past_length(of_whole))) return false;
    }
    if (own.rope_positions > 0) continue;
    for (std::int64_t j = 0; j < own.stored_keys(b); ++j) {
      if (part.key(b, j) != j) return false;
    }
    const std::int64_t first = part.first_query[static_cast<std::size_t>(b)];
    if (own.query_length > 0 && own.diagonal_offset(b) != first + whole.diagonal_offset(of_whole)) return false;
  }
  return true;
}

}  // namespace

Arrangement Arrangement::same(const Call& whole) {
  Arrangement part{whole, numbers_from<std::int64_t>(0, whole.batch), {}};
  // Other calls are told their lengths, and have the new keys in the cache.
  Call& call = part.call;
  if (call.dynamic && !call.lengths)
    call.lengths = LengthSpec{{}, std::vector(static_cast<std::size_t>(whole.batch), whole.key_length)};
  call.dynamic = call.append = false;
  part.first_query.assign(static_cast<std::size_t>(whole.batch), 0);
  for (TensorSpec& spec : part.call.tensors) {
    spec.strides.reset();
    spec.offset = 0;
  }
  return part;
}

std::optional<Arrangement> possible(Arrangement part, const Problem& whole, const Inputs& inputs) {
  if (!traits_of(whole.call.op).tokens) return std::nullopt;  // queries and keys are what the other calls differ in
  if (whole.call.has_stored_scales()) return std::nullopt;    // their places follow from those of the keys
  if (!keeps_types(part.call, whole.call) || !keeps_places(part, whole)) return std::nullopt;
  if (part.call.dropout > 0 && !inputs.keep() && !keeps_numbers(part)) return std::nullopt;
  list_own_numbers(part, whole, inputs);
  const auto fault = [&] { return find_fault({part.call, whole.data}).has_value(); };
  if (fault()) {
    // One packed tensor, for example, needs as many queries as keys.
    if (!part.call.packed_sequences()) part.call.layout = Layout::bhld;
    for (TensorSpec& spec : part.call.tensors) spec.layout.reset();
  }
  if (fault() && part.call.pass == Pass::forward) {
    const bool lse = part.call.wants(Output::lse);
    part.call.outputs = {Output::o};
    if (lse) part.call.outputs.push_back(Output::lse);
  }
  if (fault()) return std::nullopt;
  return part;
}

CaseInputs inputs_of_part(const Arrangement& part, const Call& whole, const Inputs& inputs) {
  CaseInputs made;
  std::vector<TensorId> list = inputs_of(part.call);
  if (inputs.has(TensorId::keep)) list.push_back(TensorId::keep);
  for (const TensorId id : list) {
    TensorStorage& storage = made.add(part.call, id);
    switch (id) {
      case TensorId::k:
      case TensorId::v:
      case TensorId::past_k:
      case TensorId::k_rope:
      case TensorId::past_v: continue;  // below, when it is known where each key lies
      case TensorId::page_table: fill_page_table(part, whole, inputs, storage); continue;
      case TensorId::past_lengths:
        for (std::int64_t b = 0; b < part.call.batch; ++b)
          storage.set(b, 0, 0, 0, static_cast<double>(part.call.past_length(b)));
        continue;
      default: break;
    }
    const ConstTensor& from = inputs.at(id);
    each_index(storage.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      if (l >= storage.place().rows(b)) return;
      const Index4 at = whole_place(part, whole, id, {b, h, l, d});
      storage.set(b, h, l, d, is_stored(whole, id, at) ? value_at(from, at) : 0);
    });
  }
  copy_keys(part, whole, inputs, Cache::keys, made);
  if (!part.call.latent) copy_keys(part, whole, inputs, Cache::values, made);
  return made;
}

bool is_comparable(const Arrangement& part, const Call& whole, TensorId result) {
  const TensorRow& row = row_of(result);
  if (!has_tensor(whole, result) || !has_tensor(part.call, result)) return false;
  const std::array<bool, 4> shared = broadcast_axes(whole, result);
  const auto has_axis = [&](std::size_t n, Axis axis) { return row.axes[n] == axis && !shared[n]; };
  const bool sums = is_of_gradients(result) || result == TensorId::present_state;
  if (!sums) return true;
  const Call& own = part.call;
  if (own.batch != whole.batch && !has_axis(0, Axis::batch)) return false;
  if (has_axis(1, Axis::key_heads) && own.heads_per_group() != whole.heads_per_group()) return false;
  if (own.query_heads != whole.query_heads && !has_axis(1, Axis::query_heads) && !has_axis(1, Axis::key_heads))
    return false;
  return own.query_length == whole.query_length || has_axis(2, Axis::queries);
}

std::optional<Index4> place_in_whole(const Arrangement& part, const Call& whole, TensorId result, const Index4& at) {
  Index4 to = whole_place(part, whole, result, at);
  const std::array<bool, 4> shared = broadcast_axes(whole, result);
  for (std::size_t n = 0; n < 4; ++n) {
    if (shared[n]) to[n] = 0;
  }
  const Index4 shape = seen_shape(whole, result);
  for (std::size_t n = 0; n < 4; ++n) {
    if (to[n] >= shape[n]) return std::nullopt;
  }
  if (!is_stored(part.call, result, at) || !is_stored(whole, result, to)) return std::nullopt;
  return to;
}

}  // namespace attest
