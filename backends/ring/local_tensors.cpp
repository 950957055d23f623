#include "backends/ring/local_tensors.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "backends/support/key_place.h"

namespace attest::ring {
namespace {

std::int64_t extent(const PositionSpan& span) { return span.last - span.first; }

std::size_t size(std::int64_t number) { return static_cast<std::size_t>(number); }

/// `count` elements of `width` bytes, `stride` elements apart, side by side to `to`; returns what follows there.
std::byte* copy_row(const void* data, std::size_t width, std::int64_t at, std::int64_t stride, std::int64_t count,
                    std::byte* to) {
  const auto* from = static_cast<const std::byte*>(data) + at * static_cast<std::int64_t>(width);
  if (count == 0) return to;
  if (stride == 1) {
    std::memcpy(to, from, size(count) * width);
    return to + size(count) * width;
  }
  for (std::int64_t d = 0; d < count; ++d, to += width)
    std::memcpy(to, from + d * stride * static_cast<std::int64_t>(width), width);
  return to;
}

/// The rows of q that a rank holds. Rows that are not stored are zeros.
std::vector<std::byte> pack_queries(const Call& call, const ConstTensor& q, const Shard& shard) {
  const std::size_t row = size(call.key_dim) * size_of(call.dtype);
  std::vector<std::byte> packed(size(call.batch * extent(shard.query_heads) * length_of(shard.queries)) * row);
  std::byte* to = packed.data();
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t h = shard.query_heads.first; h < shard.query_heads.last; ++h) {
      for (const PositionSpan& span : shard.queries) {
        for (std::int64_t i = span.first; i < span.last; ++i, to += row) {
          if (i < call.stored_queries(b))
            copy_row(q.data, size_of(q.dtype), q.offset(b, h, i, 0), q.strides[3], q.shape[3], to);
        }
      }
    }
  }
  return packed;
}

/// Keys or values, from pages, a past or one tensor.
std::vector<std::byte> pack_keys(const Call& call, const Inputs& inputs, bool values, const Shard& shard) {
  const std::size_t row = size(values ? call.value_dim : call.key_dim) * size_of(call.dtype);
  std::vector<std::byte> packed(size(call.batch * extent(shard.key_heads) * length_of(shard.keys)) * row);
  std::byte* to = packed.data();
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t h = shard.key_heads.first; h < shard.key_heads.last; ++h) {
      for (const PositionSpan& span : shard.keys) {
        for (std::int64_t j = span.first; j < span.last; ++j, to += row) {
          if (j >= call.stored_keys(b)) continue;
          const support::KeyPlace at = support::find_key(inputs, b, j);
          const ConstTensor& from = support::tensor_of(inputs, at, values ? Cache::values : Cache::keys);
          copy_row(from.data, size_of(from.dtype), from.offset(at.batch, h, at.row, 0), from.strides[3], from.shape[3],
                   to);
        }
      }
    }
  }
  return packed;
}

/// Indices along an axis of a mask: those wanted, or the one that stands for all.
PositionSpan along(bool kept, const PositionSpan& wanted) { return kept ? wanted : PositionSpan{0, 1}; }

std::vector<std::byte> pack_box(const ConstTensor& mask, const std::array<PositionSpan, 4>& box) {
  const std::size_t width = size_of(mask.dtype);
  std::vector<std::byte> packed(size(extent(box[0]) * extent(box[1]) * extent(box[2]) * extent(box[3])) * width);
  std::byte* to = packed.data();
  for (std::int64_t b = box[0].first; b < box[0].last; ++b) {
    for (std::int64_t h = box[1].first; h < box[1].last; ++h) {
      for (std::int64_t i = box[2].first; i < box[2].last; ++i) {
        to = copy_row(mask.data, width, mask.offset(b, h, i, box[3].first), mask.strides[3], extent(box[3]), to);
      }
    }
  }
  return packed;
}

/// Rank 0 packs what every rank gets, itself last, so that it holds two parts at a time at most.
void deal(Transport& transport, std::vector<std::byte>& own, const std::function<std::vector<std::byte>(int)>& pack) {
  if (transport.rank() > 0) {
    transport.receive(0, own);
    transport.wait();
    return;
  }
  for (int rank = 1; rank < transport.size(); ++rank) {
    const std::vector<std::byte> packed = pack(rank);
    transport.send(rank, packed);
    transport.wait();
  }
  own = pack(0);
}

PositionSpan block_rows_of(const PositionSpan& queries, std::int64_t rows_per_block) {
  return {queries.first / rows_per_block, (queries.last + rows_per_block - 1) / rows_per_block};
}

}  // namespace

std::int64_t length_of(const Spans& spans) {
  std::int64_t length = 0;
  for (const PositionSpan& span : spans) length += extent(span);
  return length;
}

Spans whole(std::int64_t length) { return length > 0 ? Spans{{0, length}} : Spans{}; }

LocalTensors::LocalTensors(const Call& call, std::vector<Shard> shards, int rank)
    : call_(call), shards_(std::move(shards)), rank_(rank) {
  const Shard& own = shard();
  const std::size_t width = size_of(call.dtype);
  q.resize(size(call.batch * extent(own.query_heads) * length_of(own.queries) * call.key_dim) * width);
  const std::int64_t keys = call.batch * extent(own.key_heads) * length_of(own.keys);
  k.resize(size(keys * call.key_dim) * width);
  v.resize(size(keys * call.value_dim) * width);
}

LocalTensors::Extras LocalTensors::extras_of(const Inputs& inputs) {
  Extras extras;
  if (inputs.mask()) {
    extras.mask = 1;
    extras.mask_type = static_cast<std::int64_t>(inputs.mask()->dtype);
    for (std::size_t axis = 0; axis < 4; ++axis) extras.mask_kept[axis] = inputs.mask()->strides[axis] != 0;
  }
  extras.blocks = inputs.blocks() != nullptr;
  extras.keep = inputs.keep() != nullptr;
  if (const ConstTensor* slopes = inputs.slopes())
    extras.slopes = (slopes->strides[0] != 0 ? slopes->shape[0] : 1) * slopes->shape[1];
  if (const ConstTensor* sinks = inputs.sinks()) extras.sinks = sinks->shape[1];
  return extras;
}

void LocalTensors::scatter(const Inputs* inputs, Transport& transport) {
  Extras extras;
  if (inputs) extras = extras_of(*inputs);
  const auto tell = [&](std::span<std::byte> what) {
    if (transport.rank() > 0) transport.receive(0, what);
    for (int rank = 1; transport.rank() == 0 && rank < transport.size(); ++rank) transport.send(rank, what);
    transport.wait();
  };
  tell(std::as_writable_bytes(std::span(&extras, 1)));
  if (inputs) {
    slopes.clear();
    sinks.clear();
    for (std::int64_t n = 0; n < extras.slopes; ++n) {
      slopes.push_back(inputs->slope(n / call_.query_heads, n % call_.query_heads));
    }
    for (std::int64_t h = 0; h < extras.sinks; ++h) sinks.push_back(inputs->sink(h));
  }
  slopes.resize(size(extras.slopes));
  sinks.resize(size(extras.sinks));
  tell(writable_bytes_of(slopes));
  tell(writable_bytes_of(sinks));
  scatter_rows(inputs, transport);
  scatter_masks(inputs, extras, transport);
  scatter_row_slices(inputs, extras, transport);
}

void LocalTensors::scatter_rows(const Inputs* inputs, Transport& transport) {
  deal(transport, q, [&](int rank) { return pack_queries(call_, inputs->q(), shard(rank)); });
  deal(transport, k, [&](int rank) { return pack_keys(call_, *inputs, false, shard(rank)); });
  deal(transport, v, [&](int rank) { return pack_keys(call_, *inputs, true, shard(rank)); });
}

void LocalTensors::scatter_masks(const Inputs* inputs, const Extras& extras, Transport& transport) {
  masks.clear();
  if (!extras.mask) return;
  const auto type = static_cast<DType>(extras.mask_type);
  const std::size_t width = size_of(type);
  const auto box_of = [&](const Shard& shard, const PositionSpan& queries, const PositionSpan& keys) {
    return std::array{along(extras.mask_kept[0], {0, call_.batch}), along(extras.mask_kept[1], shard.mask_heads),
                      along(extras.mask_kept[2], queries), along(extras.mask_kept[3], keys)};
  };
  // Slices in the order of the holder's spans; rank 0 sends each rank all of its own before the next rank's.
  for (const PositionSpan& queries : shard().mask_queries) {
    for (const PositionSpan& keys : shard().mask_keys) {
      MaskSlice& slice = masks.emplace_back(MaskSlice{queries, keys, {}, {}});
      const std::array<PositionSpan, 4> box = box_of(shard(), queries, keys);
      slice.bytes.resize(size(extent(box[0]) * extent(box[1]) * extent(box[2]) * extent(box[3])) * width);
      if (inputs) slice.bytes = pack_box(*inputs->mask(), box);
      ConstTensor& tensor = slice.tensor;
      tensor.dtype = type;
      std::int64_t stride = 1;
      for (std::size_t axis = 4; axis-- > 0;) {
        tensor.shape[axis] = extent(box[axis]);
        tensor.strides[axis] = extras.mask_kept[axis] ? stride : 0;
        stride *= extent(box[axis]);
      }
    }
  }
  for (MaskSlice& slice : masks) {
    slice.tensor.data = slice.bytes.data();
    if (transport.rank() > 0) transport.receive(0, slice.bytes);
  }
  for (int rank = 1; inputs && rank < transport.size(); ++rank) {
    for (const PositionSpan& queries : shard(rank).mask_queries) {
      for (const PositionSpan& keys : shard(rank).mask_keys) {
        const std::vector<std::byte> packed = pack_box(*inputs->mask(), box_of(shard(rank), queries, keys));
        transport.send(rank, packed);
        transport.wait();
      }
    }
  }
  transport.wait();
}

void LocalTensors::scatter_row_slices(const Inputs* inputs, const Extras& extras, Transport& transport) {
  rows.clear();
  if (!extras.blocks && !extras.keep) return;
  const auto pack = [&](const ConstTensor* from, const std::array<PositionSpan, 4>& box,
                        std::vector<std::uint8_t>& to) {
    to.resize(size(extent(box[0]) * extent(box[1]) * extent(box[2]) * extent(box[3])));
    if (!from) return;
    const std::vector<std::byte> packed = pack_box(*from, box);
    std::memcpy(to.data(), packed.data(), packed.size());
  };
  const auto pack_blocks = [&](const Shard& shard, const PositionSpan& queries, std::vector<std::uint8_t>& to) {
    if (!extras.blocks) return;
    pack(inputs ? inputs->blocks() : nullptr,
         {PositionSpan{0, call_.batch}, shard.mask_heads, block_rows_of(queries, call_.blocks->rows),
          PositionSpan{0, block_columns(call_)}},
         to);
  };
  const auto pack_keep = [&](const Shard& shard, const PositionSpan& queries, std::vector<std::uint8_t>& to) {
    if (!extras.keep) return;
    pack(inputs ? inputs->keep() : nullptr,
         {PositionSpan{0, call_.batch}, shard.mask_heads, queries, PositionSpan{0, call_.key_length}}, to);
  };
  for (const PositionSpan& queries : shard().mask_queries) {
    RowSlice& slice = rows.emplace_back();
    slice.queries = queries;
    pack_blocks(shard(), queries, slice.blocks);
    pack_keep(shard(), queries, slice.keep);
    if (!inputs) {
      transport.receive(0, writable_bytes_of(slice.blocks));
      transport.receive(0, writable_bytes_of(slice.keep));
    }
  }
  for (RowSlice& slice : rows) {
    const auto view = [&](const std::vector<std::uint8_t>& bytes, std::int64_t rows_of_slice, std::int64_t columns) {
      const std::int64_t heads = extent(shard().mask_heads);
      return ConstTensor{bytes.data(),
                         DType::boolean,
                         {call_.batch, heads, rows_of_slice, columns},
                         {heads * rows_of_slice * columns, rows_of_slice * columns, columns, 1}};
    };
    if (extras.blocks) {
      slice.block_view =
          view(slice.blocks, extent(block_rows_of(slice.queries, call_.blocks->rows)), block_columns(call_));
    }
    if (extras.keep) slice.keep_view = view(slice.keep, extent(slice.queries), call_.key_length);
  }
  for (int rank = 1; inputs && rank < transport.size(); ++rank) {
    for (const PositionSpan& queries : shard(rank).mask_queries) {
      std::vector<std::uint8_t> blocks, keep;
      pack_blocks(shard(rank), queries, blocks);
      pack_keep(shard(rank), queries, keep);
      transport.send(rank, bytes_of(blocks));
      transport.send(rank, bytes_of(keep));
      transport.wait();
    }
  }
  transport.wait();
}

std::size_t LocalTensors::bytes() const {
  std::size_t all = q.size() + k.size() + v.size();
  for (const MaskSlice& slice : masks) all += slice.bytes.size();
  for (const RowSlice& slice : rows) all += slice.blocks.size() + slice.keep.size();
  return all;
}

}  // namespace attest::ring
