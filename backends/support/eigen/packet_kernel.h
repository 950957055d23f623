// The kernel of a fused attention (backends/support/fused_tiles.h) in Eigen's packets: scores and output are products
// on row-major tiles, the softmax runs along contiguous rows.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/support/eigen/packet_exp.h"
#include "backends/support/eigen/packet_gradients.h"
#include "backends/support/eigen/packets.h"
#include "backends/support/fused_tiles.h"
#include "backends/support/register_tile.h"
#include "reference/arithmetic/arithmetic.h"

namespace attest::support {

template <class Real>
class PacketKernel {
  using Product = RegisterTile<PacketSimd<Real>>;
  using Left = typename Product::Left;

 public:
  using Gradients = PacketGradients<Real>;
  static constexpr std::int64_t kKeyStep = Product::kWidth;

  PacketKernel(TileShape tile, std::int64_t key_dim, std::int64_t value_dim)
      : value_dim_(value_dim),
        queries_(tile.queries, key_dim),
        scores_(tile.block, Product::padded(tile.keys, kKeyStep)),
        out_(tile.queries, Product::padded(value_dim)),
        keys_(scores_.cols() * key_dim),
        values_(tile.keys * out_.cols()),
        max_(tile.queries),
        sum_(tile.queries, kLanes),
        product_(value_dim) {}

  void load_queries(Rows<Real> q, std::int64_t rows, Real scale, Real sink) {
    single_ = rows == 1;
    Product::pack_left(q, rows, queries_.cols(), scale, queries_.data());
    out_.topRows(rows).setZero();
    // A sink is a key without a value: it starts the maximum and the sum.
    max_.setConstant(sink);
    sum_.setZero();
    if (sink != kNothing) sum_.col(0).setOnes();
  }

  void load_keys(Rows<Real> k, std::int64_t keys) {
    single_keys_ = k;
    if (!single_) Product::pack_transposed(k, keys, queries_.cols(), keys_.data());
  }

  void load_values(Rows<Real> v, std::int64_t keys) {
    loaded_ = keys;
    single_values_ = v;
    if (!single_) Product::pack_panels(v, keys, value_dim_, values_.data());
  }

  void scores(const Block& block) {
    const std::int64_t dim = queries_.cols();
    if (single_) {
      scores_.row(0).segment(block.key, block.keys).noalias() =
          queries_.row(0) * rows_at(single_keys_, block, dim).transpose();
      return;
    }
    for (std::int64_t j = block.key; j < block.key + block.keys; j += kKeyStep) {
      Product::template multiply<Left::packed>({&queries_(block.row, 0), 0}, block.rows,
                                               {keys_.data() + j * dim, kKeyStep}, kKeyStep, dim, &scores_(0, j),
                                               scores_.cols(), false);
    }
  }

  Real* score_row(const Block& block, std::int64_t r) { return &scores_(r - block.row, block.key); }

  static void tanh_row(Real* row, std::int64_t n) { tanh_in_place(row, n); }

  void softmax(const Block& block) {
    const std::int64_t whole = Product::padded(block.keys);
    for (std::int64_t r = block.row; r < block.row + block.rows; ++r) {
      Real* row = score_row(block, r);
      std::fill(row + block.keys, row + whole, kNothing);  // up to the next whole packet
      raise_maximum(r, Eigen::internal::predux_max(max_of_row(row, whole)));
      Packet sum = Eigen::internal::pload<Packet>(&sum_(r, 0));
      // Nothing seen yet, or nothing but NaN: any finite shift gives 0 for the one and NaN for the other.
      exp_row(row, whole, max_[r] == kNothing ? Real{0} : max_[r], sum);
      Eigen::internal::pstore(&sum_(r, 0), sum);
    }
  }

  void accumulate(const Block& block) {
    if (single_) {
      // Summed by itself first: a long sum over all keys would round more than what arithmetic() states.
      product_.noalias() = scores_.row(0).segment(block.key, block.keys) * rows_at(single_values_, block, value_dim_);
      out_.row(0).head(value_dim_) += product_;
      return;
    }
    for (std::int64_t c = 0; c < out_.cols();) {
      const std::int64_t width = Product::panel_width(c, value_dim_);
      Product::template multiply<Left::rows>({&scores_(0, block.key), scores_.cols()}, block.rows,
                                             {values_.data() + c * loaded_ + block.key * width, width}, width,
                                             block.keys, &out_(block.row, c), out_.cols(), true);
      c += width;
    }
  }

  void add_product(std::int64_t r, Real weight, const Real* v) {
    for (std::int64_t c = 0; c < value_dim_; ++c) out_(r, c) += weight * v[c];
  }

  /// The products with values of a row whose weights are all 0: zeros, or NaN where a value is not finite.
  void weightless(std::int64_t r, Real* out) const { std::copy_n(&out_(r, 0), value_dim_, out); }

  Real maximum(std::int64_t r) const { return max_[r]; }
  Real sum(std::int64_t r) const { return sum_.row(r).sum(); }

  void finish(std::int64_t r, Real* out, Real* lse) const {
    Eigen::Map<Eigen::Matrix<Real, 1, Eigen::Dynamic>> to(out, value_dim_);
    const Real sum = this->sum(r);
    if (sum == 0) {
      to.setZero();
      *lse = -std::numeric_limits<Real>::infinity();
      return;
    }
    to = out_.row(r).head(value_dim_) * (Real{1} / sum);
    *lse = max_[r] + std::log(sum);
  }

 private:
  using Tile = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Packet = typename PacketSimd<Real>::Vector;
  static constexpr std::int64_t kLanes = Product::kLanes;
  static constexpr Real kNothing = -std::numeric_limits<Real>::infinity();

  /// The block's keys or values where they lie.
  static auto rows_at(Rows<Real> rows, const Block& block, std::int64_t columns) {
    return Eigen::Map<const Tile, 0, Eigen::OuterStride<>>(rows.data + block.key * rows.stride, block.keys, columns,
                                                           Eigen::OuterStride<>(rows.stride));
  }

  /// Moves a row's maximum on and shrinks what was summed under the old one.
  void raise_maximum(std::int64_t r, Real maximum) {
    if (!(maximum > max_[r])) return;
    const Real shrink = std::exp(max_[r] - maximum);  // 0 when there was nothing before
    sum_.row(r) *= shrink;
    out_.row(r) *= shrink;
    max_[r] = maximum;
  }

  std::int64_t value_dim_, loaded_ = 0;  ///< loaded_: keys of the tile
  /// One query alone, as when tokens are generated: to pack a tile of keys would cost more than to read it. Two
  /// products of a matrix with a vector, on keys and values where they lie.
  bool single_ = false;
  Rows<Real> single_keys_, single_values_;
  Tile queries_, scores_, out_;
  Eigen::Array<Real, Eigen::Dynamic, 1> keys_, values_;  ///< K^T and V of one tile, in panels
  Eigen::Array<Real, Eigen::Dynamic, 1> max_;
  Tile sum_;                                        ///< a row for each query, a part of its sum in each lane
  Eigen::Matrix<Real, 1, Eigen::Dynamic> product_;  ///< of a single query's weights and a tile's values
};

/// Tiles for which the kernel is fast.
inline constexpr TileShape kPacketTile{528, 512, 24};
static_assert(kPacketTile.block % RegisterTile<PacketSimd<float>>::kRows == 0);  // packed queries: whole panels

/// How the kernel rounds on tiles of this shape.
inline Arithmetic packet_kernel_arithmetic(DType accumulator, const TileShape& tile) {
  Arithmetic a;
  a.accumulator = a.stored_weights = accumulator;
  a.exp_ulps = kPacketExpUlps;
  a.tanh_ulps = kPacketTanhUlps;
  a.log_ulps = 1;
  a.division = Division::reciprocal;
  a.key_block = tile.keys;
  a.flush_to_zero = true;  // PacketExp gives 0 where the result would be subnormal
  return a;
}

}  // namespace attest::support
