// The part of a call's tensors that a rank holds, dense and in the storage type; and how it gets there from rank 0,
// which has the whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/ring/transport.h"
#include "backends/support/parts/partition.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest::ring {

using support::PositionSpan;
using Spans = std::vector<PositionSpan>;

/// Positions in all spans.
std::int64_t length_of(const Spans& spans);

/// Spans [0, length), none where it is 0.
Spans whole(std::int64_t length);

/// What a rank holds of a call, all batches of it.
struct Shard {
  PositionSpan query_heads, key_heads;  ///< of q, and of k and v
  Spans queries, keys;                  ///< rows of q; rows of k and v
  PositionSpan mask_heads;              ///< of mask, blocks and keep
  Spans mask_queries, mask_keys;        ///< of mask, a slice for each pair of them; blocks and keep have every key
};

/// A slice of the mask for some queries and keys.
struct MaskSlice {
  PositionSpan queries, keys;
  std::vector<std::byte> bytes;
  ConstTensor tensor;  ///< refers to bytes
};

/// What hides or drops keys from a span of queries besides the mask.
struct RowSlice {
  PositionSpan queries;
  std::vector<std::uint8_t> blocks, keep;
  ConstTensor block_view, keep_view;  ///< of them
};

/// The tensors of a shard. Every rank of the group makes one for each plan, and calls scatter() together.
class LocalTensors {
 public:
  /// `shards`: of every rank.
  LocalTensors(const Call& call, std::vector<Shard> shards, int rank);

  /// Brings every rank what it holds; `inputs` are given on rank 0 alone, in any layout.
  void scatter(const Inputs* inputs, Transport& transport);

  int rank() const { return rank_; }
  const Shard& shard() const { return shards_[static_cast<std::size_t>(rank_)]; }
  const Shard& shard(int rank) const { return shards_[static_cast<std::size_t>(rank)]; }

  std::vector<std::byte> q, k, v;  ///< B, heads, rows, D
  std::vector<MaskSlice> masks;
  std::vector<RowSlice> rows;
  std::vector<double> slopes, sinks;  ///< of all query heads; slopes of each batch where they differ

  std::size_t bytes() const;

  /// What belongs to heads alone: slopes and sinks.
  Inputs head_inputs() const {
    Inputs inputs{};
    if (!slopes.empty()) {
      const bool by_batch = slopes.size() > static_cast<std::size_t>(call_.query_heads);
      inputs.set(TensorId::slopes, numbers_of_heads(slopes.data(), call_.batch, call_.query_heads, by_batch));
    }
    if (!sinks.empty()) inputs.set(TensorId::sinks, numbers_of_heads(sinks.data(), 1, call_.query_heads, false));
    return inputs;
  }

 private:
  /// What an upload has besides q, k and v, as rank 0 tells it.
  struct Extras {
    std::int64_t mask = 0, mask_type = 0;
    std::array<std::int64_t, 4> mask_kept{};
    std::int64_t blocks = 0, keep = 0, slopes = 0, sinks = 0;
  };
  static Extras extras_of(const Inputs& inputs);
  void scatter_rows(const Inputs* inputs, Transport& transport);
  void scatter_masks(const Inputs* inputs, const Extras& extras, Transport& transport);
  void scatter_row_slices(const Inputs* inputs, const Extras& extras, Transport& transport);

  const Call& call_;
  std::vector<Shard> shards_;
  int rank_;
};

}  // namespace attest::ring
