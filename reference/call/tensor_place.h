// Where the elements of a tensor lie in its storage.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/base/view.h"
#include "reference/call/call.h"

namespace attest {

struct TensorPlace {
  Index4 shape{};                    ///< a mask has extent 1 along its broadcast axes
  Index4 strides{};                  ///< elements; 0 along a mask's broadcast axes
  std::int64_t offset = 0;           ///< elements before the first
  std::vector<std::int64_t> starts;  ///< packed sequences only: B + 1 row numbers, the last one where all end
  std::vector<std::int64_t> counts;  ///< and the rows of each; empty: up to where the next one begins
  /// Elements of storage from its first to the last one that is used, offset included; nullopt when their bytes don't
  /// fit in 63 bits.
  std::optional<std::int64_t> elements;

  const std::int64_t* starts_data() const { return starts.empty() ? nullptr : starts.data(); }
  /// Rows of sequence b that have storage.
  std::int64_t rows(std::int64_t b) const {
    const auto n = static_cast<std::size_t>(b);
    if (starts.empty()) return shape[2];
    return counts.empty() ? starts[n + 1] - starts[n] : counts[n];
  }
  /// Element number of (b, h, l, d), counted from the beginning of the storage.
  std::int64_t element(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    return offset + element_at(strides, starts_data(), b, h, l, d);
  }
};

/// Of a tensor of the call, from its layout or as given.
TensorPlace place_of(const Call& call, TensorId id);

/// Of all that a call stores.
struct CallPlaces {
  TensorPlace q, k, v, out;
  std::optional<TensorPlace> mask;
  std::optional<TensorPlace> past_k, past_v;  ///< cached keys, where they don't lie in pages
};
CallPlaces places_of(const Call& call);

/// One element after the other, in the order of the axes.
TensorPlace dense_place(const Index4& shape);

}  // namespace attest
