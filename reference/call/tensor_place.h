// Where the elements of a tensor lie in its storage.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/base/view.h"
#include "reference/call/call.h"
#include "reference/call/tensor_table.h"

namespace attest {

struct TensorPlace {
  Index4 shape{};                    ///< as stored: extent 1 along broadcast axes
  Index4 strides{};                  ///< elements; 0 along broadcast axes
  std::int64_t offset = 0;           ///< elements before the first
  std::vector<std::int64_t> starts;  ///< packed sequences only: B + 1 row numbers; the last one is the end of all
  std::vector<std::int64_t> counts;  ///< the rows of each sequence; empty: up to the start of the next one
  /// The elements of storage up to the last one that is used, offset included; nullopt when their bytes don't fit in 63
  /// bits.
  std::optional<std::int64_t> elements;

  const std::int64_t* starts_data() const { return starts.empty() ? nullptr : starts.data(); }
  /// The rows of sequence b that have storage.
  std::int64_t rows(std::int64_t b) const {
    const auto n = static_cast<std::size_t>(b);
    if (starts.empty()) return shape[2];
    return counts.empty() ? starts[n + 1] - starts[n] : counts[n];
  }
  /// The number of element (b, h, l, d), counted from the beginning of the storage.
  std::int64_t element(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    return offset + element_at(strides, starts_data(), b, h, l, d);
  }
};

/// The place of a tensor of the call, from its layout or its strides. The shape is the stored one (tensor_table.h).
TensorPlace place_of(const Call& call, TensorId id);

/// Whether `layout` applies to the tensor. Other tensors are dense unless they have strides.
bool has_layout(TensorId id);
/// Whether packed sequences leave it no choice of strides: what has a layout, and lists of a number for each query row.
bool follows_packing(TensorId id);
/// Whether the tensor holds the rows of packed sequences, one sequence after another.
bool is_packed(const Call& call, TensorId id);

/// Whether no two elements share storage: sorted by stride, each axis steps past all before it.
bool is_injective(const Index4& shape, const Index4& strides);

/// The place of a dense tensor, in the order of the axes.
TensorPlace dense_place(const Index4& shape);

}  // namespace attest
