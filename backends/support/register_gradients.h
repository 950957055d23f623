// The kernel of fused gradients (backends/support/fused_gradients.h) in register tiles. Besides what these need, the
// vectors bring `weigh` and `tanh_row` as fused gradients describe them.
#pragma once

#include <cstdint>

#include "backends/support/fused_gradients.h"
#include "backends/support/register_tile.h"

namespace attest::support {

template <class Simd>
struct RegisterGradients {
  using Real = typename Simd::Real;
  using Product = RegisterTile<Simd>;
  using Left = typename Product::Left;
  static_assert(kGradientTile % Product::kWidth == 0 && kGradientStep % Product::kLanes == 0);

  static void read(const ConstTensor& from, std::int64_t b, std::int64_t h, std::int64_t l, Real factor, Real* to) {
    read_row(from, b, h, l, to);
    for (std::int64_t d = 0; d < from.shape[3]; ++d) to[d] *= factor;
  }

  static void pack_turned(Rows<Real> rows, std::int64_t keys, std::int64_t dim, Real* to) {
    Product::pack_transposed(rows, keys, dim, to);
  }

  static void pack(Rows<Real> rows, std::int64_t keys, std::int64_t dim, Real* to) {
    Product::pack_panels(rows, keys, dim, to);
  }

  static void multiply(const Real* left, std::int64_t rows, std::int64_t dim, const Real* turned, std::int64_t keys,
                       Real* out) {
    for (std::int64_t j = 0; j < keys; j += Product::kWidth) {
      Product::template multiply<Left::rows>({left, dim}, rows, {turned + j * dim, Product::kWidth},
                                             Product::panel_width(j, keys), dim, out + j, kGradientTile, false);
    }
  }

  static void add(const Real* weights, std::int64_t rows, std::int64_t keys, const Real* packed, std::int64_t dim,
                  Real* out) {
    for (std::int64_t c = 0, width = 0; c < dim; c += width) {
      width = Product::panel_width(c, dim);
      Product::template multiply<Left::rows>({weights, kGradientTile}, rows, {packed + c * keys, width}, width, keys,
                                             out + c, dim, true);
    }
  }

  static void add_turned(const Real* weights, std::int64_t rows, std::int64_t keys, const Real* right, std::int64_t dim,
                         Real* out) {
    for (std::int64_t c = 0, width = 0; c < dim; c += width) {
      width = Product::panel_width(c, dim);
      Product::template multiply<Left::turned>({weights, kGradientTile}, keys, {right + c, dim}, width, rows, out + c,
                                               dim, true);
    }
  }

  static void weigh(Real* scores, Real* products, std::int64_t n, Real lse, Real shift) {
    Simd::weigh(scores, products, n, lse, shift);
  }
  static void tanh_row(Real* row, std::int64_t n) { Simd::tanh_row(row, n); }
};

}  // namespace attest::support
