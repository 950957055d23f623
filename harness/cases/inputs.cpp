#include "harness/cases/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

#include "harness/base/parallel.h"
#include "harness/base/user_error.h"
#include "harness/cases/fill.h"
#include "harness/cases/rotation_tables.h"
#include "reference/call/tensor_place.h"
#include "reference/operators/operator.h"
#include "reference/softmax/attention.h"

namespace attest {
namespace {

constexpr std::uint64_t kSelectStream = 6200;

/// For each key of one key head: whether any query of any head of the group sees it.
std::vector<char> keys_seen(const Problem& problem, const Inputs& inputs, std::int64_t b, std::int64_t group) {
  const Call& p = problem.call;
  std::vector<char> seen(static_cast<std::size_t>(p.key_length), 0);
  const std::int64_t first = group * p.heads_per_group();
  for (std::int64_t j = 0; j < p.key_length; ++j) {
    for (std::int64_t h = first; h < first + p.heads_per_group() && !seen[static_cast<std::size_t>(j)]; ++h) {
      for (std::int64_t i = 0; i < p.query_length; ++i) {
        if (visible(p, inputs, b, h, i, j)) {
          seen[static_cast<std::size_t>(j)] = 1;
          break;
        }
      }
    }
  }
  return seen;
}

using SeenKeys = std::vector<std::vector<char>>;  ///< by batch and key head

/// q or do, row by row; or the columns of q that are a tensor of their own.
void fill_queries(const Problem& p, TensorId id, CaseInputs& inputs) {
  const bool is_apart = id == TensorId::q_rope;
  const TensorFill fill(p, is_apart ? TensorId::q : id);
  const std::int64_t first = is_apart ? p.call.stored_key_dim() : 0;
  TensorStorage& storage = inputs.at(id);
  const Index4 n = storage.shape();
  for (std::int64_t b = 0; b < n[0]; ++b) {
    const std::int64_t rows = p.call.stored_queries(b);
    for (std::int64_t h = 0; h < n[1]; ++h) {
      for (std::int64_t l = 0; l < rows; ++l) {
        for (std::int64_t d = 0; d < n[3]; ++d) storage.set(b, h, l, d, fill.at(b, h, l, first + d));
      }
    }
  }
}

/// NaN in the rows of do whose query sees no key.
void poison_empty_rows(const Problem& problem, CaseInputs& inputs) {
  const Call& p = problem.call;
  const Inputs views = inputs.views();
  TensorStorage& storage = inputs.at(TensorId::dout);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t i = 0; i < p.stored_queries(b); ++i) {
        bool empty = true;
        for (std::int64_t j = 0; empty && j < p.key_length; ++j) empty = !visible(p, views, b, h, i, j);
        for (std::int64_t c = 0; empty && c < p.value_dim; ++c) storage.set(b, h, i, c, kNaN);
      }
    }
  }
}

/// Keys or values, wherever they lie. With `seen`, hidden rows become NaN first, so that a row that shares storage with
/// a visible one (stride 0) ends as the visible one's.
void fill_keys(const Problem& problem, TensorId id, CaseInputs& inputs, const SeenKeys* seen) {
  const Call& p = problem.call;
  const TensorFill fill(problem, id);
  const bool values = id == TensorId::v;
  const Cache cache = values ? Cache::values : Cache::keys;
  const std::int64_t dim = values ? p.value_dim : p.key_dim;
  const std::int64_t heads = extent_of(p, row_of(id).axes[1]);
  const double divisor = values ? 1 : operator_of(p).key_divisor(problem);
  const Inputs views = inputs.views();
  for (int pass = seen ? 0 : 1; pass < 2; ++pass) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t l = 0; l < p.stored_keys(b); ++l) {
          const bool hidden =
              seen && !(*seen)[static_cast<std::size_t>(b * p.key_heads + h)][static_cast<std::size_t>(l)];
          if (hidden != (pass == 0)) continue;
          const KeyPlace place = place_of_key(p, views, b, l);
          for (std::int64_t d = 0; d < dim; ++d)
            set_cached(inputs, p, cache, place, h, d, hidden ? kNaN : fill.at(b, h, l, d) / divisor);
        }
      }
    }
  }
}

/// One NaN per key head, at a key that some query sees.
void poison_visible(const Problem& problem, std::uint64_t stream, const SeenKeys& seen, CaseInputs& inputs) {
  const Call& p = problem.call;
  const Inputs views = inputs.views();
  const std::int64_t dim = stream == 0 ? p.key_dim : p.value_dim;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.key_heads; ++h) {
      const auto head = static_cast<std::uint64_t>(b * p.key_heads + h);
      const std::uint64_t bits = hash_words(problem.data.seed, 4000 + stream, head);
      for (std::int64_t step = 0; step < p.key_length; ++step) {
        const std::int64_t l = static_cast<std::int64_t>((bits + static_cast<std::uint64_t>(step)) %
                                                         static_cast<std::uint64_t>(p.key_length));
        if (!seen[head][static_cast<std::size_t>(l)]) continue;
        const KeyPlace place = place_of_key(p, views, b, l);
        set_cached(inputs, p, stream == 1 ? Cache::values : Cache::keys, place, h,
                   static_cast<std::int64_t>((bits >> 32) % static_cast<std::uint64_t>(dim)), kNaN);
        break;
      }
    }
  }
}

/// Sets every element that is stored: value(b, h, l, d).
template <class Value>
void fill_with(TensorStorage& storage, const Value& value) {
  each_index(storage.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    const auto number = value(b, h, l, d);  // for rows that packed sequences don't store, too
    if (l < storage.place().rows(b)) storage.set(b, h, l, d, static_cast<double>(number));
  });
}

/// The numbers of a list, one element after the other.
template <class Number>
void fill_with(TensorStorage& storage, const std::vector<Number>& list) {
  std::size_t at = 0;
  fill_with(storage, [&](auto, auto, auto, auto) { return static_cast<double>(list.at(at++)); });
}

/// Numbers between the two that the table of tensors gives. Each such tensor of a call has a stream of its own.
void fill_drawn(const Problem& p, CaseInputs& inputs) {
  std::uint64_t stream = 6000;
  for (const TensorId id : inputs_of(p)) {
    const bool is_table = id == TensorId::cos || id == TensorId::sin;
    if (!row_of(id).drawn || is_table || row_of(id).of == &OperatorTraits::parts) continue;
    std::uint64_t index = 0;
    fill_with(inputs.add(p, id), [&](auto, auto, auto, auto) { return input_value(p, id, stream, index++); });
    ++stream;
  }
}

/// Cosines and sines, and the positions that come as tensors.
void fill_rotation(const Problem& p, CaseInputs& inputs) {
  if (!has_tensor(p, TensorId::cos)) return;
  const RotationTables tables(p.data.rope_base, p.call.rotated_dims());
  fill_with(inputs.add(p, TensorId::cos), [&](auto, auto, auto row, auto pair) { return tables.cos(row, pair); });
  fill_with(inputs.add(p, TensorId::sin), [&](auto, auto, auto row, auto pair) { return tables.sin(row, pair); });
  std::uint64_t stream = 6500;
  for (const TensorId id : {TensorId::q_positions, TensorId::k_positions}) {
    if (!has_tensor(p, id)) continue;
    std::uint64_t index = 0;
    fill_with(inputs.add(p, id), [&](auto, auto, auto, auto) {
      return static_cast<double>(hash_words(p.data.seed, stream, index++) %
                                 static_cast<std::uint64_t>(p.call.rope_positions));
    });
    ++stream;
  }
}

/// Results that are merged, and their logsumexps. With `poison`, empty ones become NaN first, so that one that shares
/// storage with another (stride 0) ends as the other's.
void fill_parts(const Problem& p, bool poison, CaseInputs& inputs) {
  TensorStorage &o = inputs.add(p, TensorId::part_o), &lse = inputs.add(p, TensorId::part_lse);
  const Index4 n = o.shape();
  const auto rows = static_cast<std::uint64_t>(p.call.batch * n[1] * n[2]);
  std::uint64_t row = 0;
  each_index({n[0], n[1], n[2], 1}, [&](auto at, auto h, auto l, auto) {
    const std::int64_t part = at / p.call.batch;
    lse.set(at, h, l, 0, part_lse_value(p, part, row++ % rows, rows));
  });
  const TensorFill fill(p, TensorId::part_o);
  const ConstTensor sums = lse.view();
  for (const bool empty : {true, false}) {
    each_index(n, [&](auto at, auto h, auto l, auto c) {
      const bool is_poisoned = poison && load(sums.data, sums.dtype, sums.offset(at, h, l, 0)) == -kInfinity;
      if (is_poisoned == empty) o.set(at, h, l, c, is_poisoned ? kNaN : fill.at(at, h, l, c));
    });
  }
}

/// Queries, keys, values and do, with what is poisoned.
void fill_tokens(const Problem& p, CaseInputs& inputs) {
  SeenKeys seen;
  if (!p.data.poison.empty()) {
    for (std::int64_t b = 0; b < p.call.batch; ++b) {
      for (std::int64_t g = 0; g < p.call.key_heads; ++g) seen.push_back(keys_seen(p, inputs.views(), b, g));
    }
  }
  const auto poisons = [&](const char* kind, const char* letter) {
    const std::size_t colon = p.data.poison.find(':');
    return p.data.poison.starts_with(kind) && p.data.poison.find(letter, colon) != std::string::npos;
  };
  fill_queries(p, TensorId::q, inputs);
  if (has_tensor(p, TensorId::q_rope)) fill_queries(p, TensorId::q_rope, inputs);
  fill_keys(p, TensorId::k, inputs, poisons("hidden", "k") ? &seen : nullptr);
  if (!p.call.latent) fill_keys(p, TensorId::v, inputs, poisons("hidden", "v") ? &seen : nullptr);
  if (poisons("visible", "k")) poison_visible(p, 0, seen, inputs);
  if (poisons("visible", "v")) poison_visible(p, 1, seen, inputs);
  if (has_tensor(p, TensorId::dout)) {
    inputs.add(p, TensorId::dout);
    fill_queries(p, TensorId::dout, inputs);
    if (p.data.poison == "hidden:do") poison_empty_rows(p, inputs);
  }
}

/// Lists of keys: distinct numbers in any order, then what the fill says; -1 where there are no more.
void fill_indices(const Problem& problem, TensorStorage& indices) {
  const Call& p = problem.call;
  const Fill& fill = problem.data.select_fill;
  const Index4 n = indices.shape();
  for (std::int64_t b = 0; b < n[0]; ++b) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(selectable(p, b)));
    std::iota(numbers.begin(), numbers.end(), 0);
    for (std::int64_t h = 0; h < n[1]; ++h) {
      for (std::int64_t i = 0; i < indices.place().rows(b); ++i) {
        const auto list = static_cast<std::uint64_t>((b * n[1] + h) * p.query_length + i);
        const auto drawn = [&](std::uint64_t stream, std::int64_t at) {
          return hash_words(problem.data.seed, kSelectStream + stream, list << 24 | static_cast<std::uint64_t>(at));
        };
        for (std::int64_t at = 0; at < n[3]; ++at) {
          const std::size_t first = static_cast<std::size_t>(at),
                            left = numbers.size() - std::min(first, numbers.size());
          std::int64_t number = -1;
          if (left > 0) {
            std::swap(numbers[first], numbers[first + drawn(0, at) % left]);
            number = numbers[first];
          }
          const bool changed = !fill.args.empty() && fill.name != "after" && hash_uniform(drawn(1, at)) < fill.args[0];
          if (fill.name == "random" && changed) number = -1;
          if (fill.name == "repeated" && changed && at > 0 && !numbers.empty())
            number = numbers[std::min<std::size_t>(drawn(2, at) % first, numbers.size() - 1)];
          if (fill.name == "after" && static_cast<double>(at) >= fill.args[0]) number = -1;
          indices.set(b, h, i, at, static_cast<double>(number));
        }
      }
    }
  }
}

void refuse_overflow(const TensorStorage& storage, TensorId id) {
  const std::string name = id == TensorId::mask ? "the mask" : std::string(name_of(id));
  const DType dtype = storage.dtype();
  if (storage.overflowed() == 0) return;
  throw UserError(
      fmt::format("dtype={}: {} would hold {:g}, beyond its largest number {:g}; choose another fill or type",
                  name_of(dtype), name, storage.overflowed(), largest_of(dtype)));
}

/// New keys must fit into the type of the cache.
void refuse_overflow_of_new(const CaseInputs& inputs, TensorId fresh, TensorId cache) {
  const ConstTensor numbers = inputs.at(fresh).view();
  TensorStorage one(dense_place({1, 1, 1, 1}), inputs.at(cache).dtype());
  each_index(numbers.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    if (l < inputs.at(fresh).place().rows(b))
      one.set(0, 0, 0, 0, load(numbers.data, numbers.dtype, numbers.offset(b, h, l, d)));
  });
  refuse_overflow(one, cache);
}

}  // namespace

std::vector<TensorId> CaseInputs::list() const {
  std::vector<TensorId> list;
  for (const TensorRow& row : tensor_rows()) {
    if (!is_output(row.id) && has(row.id)) list.push_back(row.id);
  }
  return list;
}

TensorStorage& CaseInputs::add(const Call& call, TensorId id) {
  if (call.latent) latent_columns_ = call.value_dim;
  return add(id, TensorStorage(place_of(call, id), type_of(call, id)), seen_shape(call, id));
}

TensorStorage& CaseInputs::add(TensorId id, TensorStorage storage, const Index4& seen) {
  there_[index(id)] = true;
  seen_[index(id)] = seen;
  return storage_[index(id)] = std::move(storage);
}

Inputs CaseInputs::views() const {
  Inputs inputs;
  for (const TensorId id : list()) {
    ConstTensor view = at(id).view();
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (view.shape[axis] != seen_[index(id)][axis]) view.strides[axis] = 0;
    }
    view.shape = seen_[index(id)];
    inputs.set(id, view);
  }
  if (!latent_columns_) return inputs;
  for (const auto& [keys, values] :
       {std::pair{TensorId::k, TensorId::v}, std::pair{TensorId::past_k, TensorId::past_v}}) {
    if (!inputs.has(keys)) continue;
    ConstTensor view = inputs.at(keys);
    view.shape[3] = *latent_columns_;
    inputs.set(values, view);
  }
  return inputs;
}

void set_cached(CaseInputs& inputs, const Call& call, Cache cache, const KeyPlace& place, std::int64_t head,
                std::int64_t d, double value) {
  const bool is_apart = cache == Cache::keys && d >= call.stored_key_dim();
  TensorStorage& to = inputs.at(is_apart ? TensorId::k_rope : place.tensor(cache));
  to.set(place.batch, head, place.row, is_apart ? d - call.stored_key_dim() : d, value);
}

void add_small_inputs(const Problem& p, CaseInputs& inputs) {
  if (has_tensor(p, TensorId::slopes)) fill_with(inputs.add(p, TensorId::slopes), make_slopes(p));
  if (has_tensor(p, TensorId::sinks)) fill_with(inputs.add(p, TensorId::sinks), make_sinks(p));
  if (has_tensor(p, TensorId::past_lengths)) fill_with(inputs.add(p, TensorId::past_lengths), p.call.past_lengths);
  if (has_tensor(p, TensorId::query_lengths)) {
    fill_with(inputs.add(p, TensorId::query_lengths), [&](auto b, auto, auto, auto) { return p.call.query_count(b); });
    fill_with(inputs.add(p, TensorId::key_lengths), [&](auto b, auto, auto, auto) { return p.call.key_count(b); });
  }
  if (has_tensor(p, TensorId::page_table)) fill_with(inputs.add(p, TensorId::page_table), make_page_table(p));
  if (has_tensor(p, TensorId::blocks)) {
    TensorStorage& blocks = inputs.add(p, TensorId::blocks);
    const MaskFill fill(p.data.block_fill, false, blocks.shape(), p);
    fill_with(blocks, [&](auto... at) { return fill.at(at...); });
  }
}

void save_forward(const Problem& problem, CaseInputs& inputs, int threads, bool keep) {
  Call forward = problem.call;
  forward.set_pass(Pass::forward);
  const Inputs views = inputs.views();
  const auto storage = [&](TensorId id) { return keep && inputs.has(id) ? nullptr : &inputs.add(problem, id); };
  TensorStorage *const o = storage(TensorId::saved_o), *const lse = storage(TensorId::saved_lse);
  const auto heads = static_cast<std::size_t>(forward.query_heads);
  std::mutex storing;
  parallel_for(static_cast<std::size_t>(forward.batch) * heads, threads, [&](std::size_t n) {
    const auto b = static_cast<std::int64_t>(n / heads), h = static_cast<std::int64_t>(n % heads);
    const auto head = operator_of(forward).head(forward, views, b, h, {});
    ResultValues row;
    for (std::int64_t i = 0; i < forward.stored_queries(b); ++i) {
      head->attend(i, row);
      const std::lock_guard lock(storing);
      for (std::int64_t c = 0; o && c < forward.value_dim; ++c)
        o->set(b, h, i, c, row.of(TensorId::out)[static_cast<std::size_t>(c)]);
      if (lse) lse->set(b, h, i, 0, row.of(TensorId::lse)[0]);
    }
  });
}

CaseInputs make_inputs(const Problem& p, int threads) {
  CaseInputs inputs;
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::past_k, TensorId::past_v, TensorId::new_k,
                            TensorId::new_v, TensorId::q_rope, TensorId::k_rope}) {
    if (has_tensor(p, id)) inputs.add(p, id);
  }
  add_small_inputs(p, inputs);
  if (has_tensor(p, TensorId::mask)) {
    const MaskFill fill(p);
    fill_with(inputs.add(p, TensorId::mask), [&](auto... at) { return fill.at(at...); });
    refuse_overflow(inputs.at(TensorId::mask), TensorId::mask);
  }
  if (has_tensor(p, TensorId::indices)) fill_indices(p, inputs.add(p, TensorId::indices));
  if (p.call.has_parts()) fill_parts(p, p.data.poison == "empty:o", inputs);
  fill_drawn(p, inputs);
  fill_rotation(p, inputs);
  if (has_tensor(p, TensorId::q)) fill_tokens(p, inputs);
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::dout, TensorId::part_o, TensorId::part_lse,
                            TensorId::new_k, TensorId::new_v, TensorId::q_rope, TensorId::k_rope}) {
    if (inputs.has(id)) refuse_overflow(inputs.at(id), id);
  }
  if (p.call.append) {
    refuse_overflow_of_new(inputs, TensorId::new_k, TensorId::k);
    refuse_overflow_of_new(inputs, TensorId::new_v, TensorId::v);
  }
  if (has_tensor(p, TensorId::saved_o)) save_forward(p, inputs, threads);
  return inputs;
}

}  // namespace attest
