// The tile of a fused kernel as parameters that can be tuned: query_tile, key_tile and row_block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/backend.h"
#include "backends/support/tiles.h"

namespace attest::support {

class TunedTile {
 public:
  /// `block` false: the backend chooses its rows of a block by itself.
  explicit TunedTile(TileShape standard, bool block = true) : block_(block), standard_(standard), shape_(standard) {}

  const TileShape& shape() const { return shape_; }
  const TileShape& standard() const { return standard_; }

  std::vector<Parameter> parameters() const {
    std::vector<Parameter> list = {
        one("query_tile", shape_.queries, standard_.queries, {96, 192, 384, 768}),
        one("key_tile", shape_.keys, standard_.keys, {128, 256, 512, 1024}),
    };
    // Multiples of the rows of a register tile, which are six in all kernels.
    if (block_) list.push_back(one("row_block", shape_.block, standard_.block, {12, 24, 48}));
    return list;
  }

  /// Values of parameters(), in their order; returns the first that is none of them.
  std::vector<std::int64_t>::const_iterator set(const std::vector<std::int64_t>& values) {
    auto value = values.begin();
    shape_.queries = *value++;
    shape_.keys = *value++;
    if (block_) shape_.block = *value++;
    return value;
  }

 private:
  static Parameter one(const char* name, std::int64_t value, std::int64_t standard, std::vector<std::int64_t> choices) {
    const auto place = std::lower_bound(choices.begin(), choices.end(), standard);
    if (place == choices.end() || *place != standard) choices.insert(place, standard);
    return {name, value, standard, std::move(choices)};
  }

  bool block_;
  TileShape standard_, shape_;
};

}  // namespace attest::support
