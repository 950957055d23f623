// The kernel of fused gradients (backends/support/fused_gradients.h) in the functions of one instruction set.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/simd/kernels.h"
#include "backends/simd/packed_keys.h"
#include "backends/support/fused_gradients.h"
#include "backends/support/transpose.h"

namespace attest::simd {

template <class Real>
class SimdGradients {
 public:
  explicit SimdGradients(const Kernels<Real>& kernels) : kernels_(kernels) {}

  void read(const ConstTensor& from, std::int64_t b, std::int64_t h, std::int64_t l, Real factor, Real* to) const {
    widen_row(kernels_, from, b, h, l, to, factor);
  }

  /// Panels as Tile::keys_packed has them.
  void pack_turned(support::Rows<Real> rows, std::int64_t keys, std::int64_t dim, Real* to) const {
    const std::int64_t width = kernels_.width;
    for (std::int64_t first = 0; first < keys; first += width, to += width * dim) {
      const std::int64_t present = std::min(width, keys - first);
      support::transpose(rows.data + first * rows.stride, rows.stride, present, dim, Real{1}, to, width);
      for (std::int64_t d = 0; present < width && d < dim; ++d)
        std::fill(to + d * width + present, to + (d + 1) * width, Real{0});
    }
  }

  /// Panels as Tile::values has them.
  void pack(support::Rows<Real> rows, std::int64_t keys, std::int64_t dim, Real* to) const {
    kernels_.pack_values(rows.data, rows.stride, keys, dim, to);
  }

  void multiply(const Real* left, std::int64_t rows, std::int64_t dim, const Real* turned, std::int64_t keys,
                Real* out) const {
    Tile<Real> tile = tile_of(rows, keys, out);
    tile.queries = left;
    tile.key_dim = dim;
    tile.keys_packed = turned;
    kernels_.scores(tile);
  }

  void add(Real* weights, std::int64_t rows, std::int64_t keys, const Real* packed, std::int64_t dim, Real* out) const {
    Tile<Real> tile = tile_of(rows, keys, weights);
    tile.values = packed;
    tile.values_loaded = keys;
    tile.out = out;
    tile.out_stride = dim;
    kernels_.accumulate(tile);
  }

  void add_turned(const Real* weights, std::int64_t rows, std::int64_t keys, const Real* right, std::int64_t dim,
                  Real* out) const {
    kernels_.multiply_add_turned({.rows = support::padded_columns(keys),
                                  .columns = dim,
                                  .depth = rows,
                                  .left = weights,
                                  .left_stride = kTileKeys,
                                  .right = right,
                                  .right_stride = dim,
                                  .out = out,
                                  .out_stride = dim});
  }

  void weigh(Real* scores, Real* products, std::int64_t n, Real lse, Real shift) const {
    kernels_.weigh(scores, products, n, lse, shift);
  }
  void tanh_row(Real* row, std::int64_t n) const { kernels_.tanh_row(row, n); }

 private:
  static_assert(kTileKeys == support::kGradientTile && support::kGradientStep % kLeastRows == 0);

  Tile<Real> tile_of(std::int64_t rows, std::int64_t keys, Real* weights) const {
    Tile<Real> tile;
    tile.rows = std::max(kLeastRows, PackedKeys<Real>::padded(rows, kernels_.rows_step));
    tile.keys = keys;
    tile.weights = weights;
    return tile;
  }

  const Kernels<Real>& kernels_;
};

}  // namespace attest::simd
