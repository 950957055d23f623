#include "harness/cases/inputs.h"

#include <fmt/format.h>

#include "harness/base/user_error.h"
#include "harness/cases/fill.h"
#include "reference/call/tensor_place.h"
#include "reference/operators/operator_tensors.h"
#include "reference/softmax/attention.h"
#include "reference/softmax/key_place.h"

namespace attest {
namespace {

/// For each key of one key head: whether any query of any head of the group sees it.
std::vector<char> keys_seen(const Problem& p, const Inputs& inputs, std::int64_t b, std::int64_t group) {
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

void fill_queries(const Problem& p, TensorStorage& storage) {
  const TensorFill fill(p, TensorId::q);
  const Index4 n = storage.shape();
  for (std::int64_t b = 0; b < n[0]; ++b) {
    const std::int64_t rows = p.stored_queries(b);
    for (std::int64_t h = 0; h < n[1]; ++h) {
      for (std::int64_t l = 0; l < rows; ++l) {
        for (std::int64_t d = 0; d < n[3]; ++d) storage.set(b, h, l, d, fill.at(b, h, l, d));
      }
    }
  }
}

/// Keys or values, wherever they lie. With `seen`, hidden rows become NaN first, so that a row that shares storage with
/// a visible one (stride 0) ends as the visible one's.
void fill_keys(const Problem& p, TensorId id, CaseInputs& inputs, const SeenKeys* seen) {
  const TensorFill fill(p, id);
  const bool values = id == TensorId::v;
  TensorStorage& fresh = values ? inputs.v : inputs.k;
  TensorStorage& past = values ? inputs.past_v : inputs.past_k;
  const std::int64_t dim = values ? p.value_dim : p.key_dim;
  const double divisor = values ? 1 : key_divisor(p);
  const Inputs views = inputs.views();
  for (int pass = seen ? 0 : 1; pass < 2; ++pass) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.key_heads; ++h) {
        for (std::int64_t l = 0; l < p.stored_keys(b); ++l) {
          const bool hidden =
              seen && !(*seen)[static_cast<std::size_t>(b * p.key_heads + h)][static_cast<std::size_t>(l)];
          if (hidden != (pass == 0)) continue;
          const KeyPlace place = place_of_key(views, b, l);
          TensorStorage& to = place.past ? past : fresh;
          for (std::int64_t d = 0; d < dim; ++d) {
            to.set(place.batch, h, place.row, d, hidden ? kNaN : fill.at(b, h, l, d) / divisor);
          }
        }
      }
    }
  }
}

/// One NaN per key head, at a key that some query sees.
void poison_visible(const Problem& p, std::uint64_t stream, const SeenKeys& seen, CaseInputs& inputs) {
  const Inputs views = inputs.views();
  const std::int64_t dim = stream == 0 ? p.key_dim : p.value_dim;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.key_heads; ++h) {
      const auto head = static_cast<std::uint64_t>(b * p.key_heads + h);
      const std::uint64_t bits = hash_words(p.data.seed, 4000 + stream, head);
      for (std::int64_t step = 0; step < p.key_length; ++step) {
        const std::int64_t l = static_cast<std::int64_t>((bits + static_cast<std::uint64_t>(step)) %
                                                         static_cast<std::uint64_t>(p.key_length));
        if (!seen[head][static_cast<std::size_t>(l)]) continue;
        const KeyPlace place = place_of_key(views, b, l);
        TensorStorage& to =
            stream == 0 ? (place.past ? inputs.past_k : inputs.k) : (place.past ? inputs.past_v : inputs.v);
        to.set(place.batch, h, place.row, static_cast<std::int64_t>((bits >> 32) % static_cast<std::uint64_t>(dim)),
               kNaN);
        break;
      }
    }
  }
}

void fill_mask(const Problem& p, const TensorPlace& place, CaseInputs& inputs) {
  inputs.mask = p.mask->additive ? TensorStorage(place, p.mask_dtype()) : TensorStorage::boolean(place);
  const MaskFill fill(p);
  const Index4 n = inputs.mask.shape();
  for (std::int64_t b = 0; b < n[0]; ++b) {
    for (std::int64_t h = 0; h < n[1]; ++h) {
      for (std::int64_t i = 0; i < n[2]; ++i) {
        for (std::int64_t j = 0; j < n[3]; ++j) {
          if (p.mask->additive)
            inputs.mask.set(b, h, i, j, fill.at(b, h, i, j));
          else
            inputs.mask.set_byte(b, h, i, j, fill.at(b, h, i, j) != 0);
        }
      }
    }
  }
}

void refuse_overflow(const TensorStorage& storage, const char* name, DType dtype) {
  if (storage.overflowed() == 0) return;
  throw UserError(
      fmt::format("dtype={}: {} would hold {:g}, beyond its largest number {:g}; choose another fill or type",
                  name_of(dtype), name, storage.overflowed(), largest_of(dtype)));
}

}  // namespace

Inputs CaseInputs::views() const {
  Inputs inputs{q.view(), k.view(), v.view(), std::nullopt};
  if (has_mask) {
    const ConstTensor view = mask.view();
    Index4 strides = view.strides;
    for (int axis = 0; axis < 4; ++axis) {
      if (view.shape[axis] == 1) strides[axis] = 0;
    }
    inputs.mask = MaskTensor{additive, view.data, view.dtype, mask_shape, strides};
  }
  if (past_k.bytes() > 0) {
    inputs.past_k = past_k.view();
    inputs.past_v = past_v.view();
  }
  if (page_size > 0) inputs.pages = PageTable{pages.data(), page_size, page_stride};
  if (block_extents.rows > 0) {
    inputs.blocks = block_extents;
    inputs.blocks->data = blocks.data();
  }
  inputs.slopes = slopes;
  inputs.sinks = sinks;
  if (!keep.empty()) inputs.keep = keep.data();
  for (std::size_t n = 0; n < extra.size(); ++n) {
    ConstTensor view = extra[n].view();
    for (int axis = 0; axis < 4; ++axis) {
      if (view.shape[axis] == 1 && extra_specs[n].full[axis] != 1) view.strides[axis] = 0;
    }
    view.shape = extra_specs[n].full;
    inputs.*extra_specs[n].place = view;
  }
  return inputs;
}

void make_small_inputs(const Problem& p, CaseInputs& inputs) {
  inputs.mask_shape = {p.batch, p.query_heads, p.query_length, p.key_length};
  inputs.slopes = make_slopes(p);
  inputs.sinks = make_sinks(p);
  inputs.extra_specs = extra_inputs(p);
  if (p.page_size) {
    inputs.page_size = *p.page_size;
    inputs.pages = make_page_table(p, inputs.page_stride);
  }
  if (p.blocks) {
    BlockMask& extents = inputs.block_extents;
    extents = {nullptr, p.query_heads, block_rows(p), block_columns(p), p.blocks->rows, p.blocks->columns};
    const MaskFill fill(p.data.block_fill, false, {p.batch, extents.heads, extents.rows, extents.columns}, p);
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < extents.heads; ++h) {
        for (std::int64_t i = 0; i < extents.rows; ++i) {
          for (std::int64_t j = 0; j < extents.columns; ++j) inputs.blocks.push_back(fill.at(b, h, i, j) != 0);
        }
      }
    }
  }
}

CaseInputs make_inputs(const Problem& p) {
  const CallPlaces places = places_of(p);
  CaseInputs inputs;
  inputs.q = TensorStorage(places.q, p.dtype);
  inputs.k = TensorStorage(places.k, p.dtype);
  inputs.v = TensorStorage(places.v, p.dtype);
  if (places.past_k) {
    inputs.past_k = TensorStorage(*places.past_k, p.dtype);
    inputs.past_v = TensorStorage(*places.past_v, p.dtype);
  }
  make_small_inputs(p, inputs);
  if (places.mask) {
    inputs.has_mask = true;
    inputs.additive = p.mask->additive;
    fill_mask(p, *places.mask, inputs);
    refuse_overflow(inputs.mask, "the mask", p.mask_dtype());
  }
  SeenKeys seen;
  if (!p.data.poison.empty()) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t g = 0; g < p.key_heads; ++g) seen.push_back(keys_seen(p, inputs.views(), b, g));
    }
  }
  for (std::size_t n = 0; n < inputs.extra_specs.size(); ++n) {
    const ExtraInput& spec = inputs.extra_specs[n];
    TensorStorage storage(dense_place(spec.shape), p.dtype);
    std::uint64_t index = 0;
    each_index(spec.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      storage.set(b, h, l, d, input_value(p, spec, 6000 + n, index++));
    });
    inputs.extra.push_back(std::move(storage));
  }
  const auto poisons = [&](const char* kind, const char* letter) {
    const std::size_t colon = p.data.poison.find(':');
    return p.data.poison.starts_with(kind) && p.data.poison.find(letter, colon) != std::string::npos;
  };
  fill_queries(p, inputs.q);
  fill_keys(p, TensorId::k, inputs, poisons("hidden", "k") ? &seen : nullptr);
  fill_keys(p, TensorId::v, inputs, poisons("hidden", "v") ? &seen : nullptr);
  if (poisons("visible", "k")) poison_visible(p, 0, seen, inputs);
  if (poisons("visible", "v")) poison_visible(p, 1, seen, inputs);
  refuse_overflow(inputs.q, "q", p.dtype);
  refuse_overflow(inputs.k, "k", p.dtype);
  refuse_overflow(inputs.v, "v", p.dtype);
  return inputs;
}

}  // namespace attest
