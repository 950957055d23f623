// xtensor: fused attention on tiles (backends/support/fused_host.h) in xtensor's way: tiles are xtensor containers,
// rows are walked with xsimd batches, P * V goes to BLAS through xtensor-blas, and Q * K^T, which is as shallow as a
// head and so the wrong shape for a general product, to a register tile of xsimd batches.
//
// BLAS runs on one thread; the threads are ours, one tile each.
#include <cmath>
#include <xsimd/xsimd.hpp>
#include <xtensor-blas/xblas.hpp>
#include <xtensor/xadapt.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>

#include "backends/backend.h"
#include "backends/support/fused_host.h"
#include "backends/support/register_gradients.h"
#include "backends/support/register_tile.h"
#include "backends/support/tuned_tile.h"
#include "backends/xtensor/linear.h"
#include "backends/xtensor/openblas.h"
#include "backends/xtensor/xsimd_rows.h"

extern "C" {
void openblas_set_num_threads(int threads);
char* openblas_get_config(void);
}

namespace attest {
namespace {

/// Whether P * V is made of small products that read V where it lies. Rows longer than these leave no room for a
/// product's values in the nearest cache, and packing them pays.
bool multiplies_unpacked(std::int64_t value_dim) { return value_dim <= 128 && openblas_multiplies_unpacked(); }

template <class Real>
class XtensorKernel {
  using Product = support::RegisterTile<XsimdSimd<Real>>;

 public:
  using Gradients = support::RegisterGradients<XsimdSimd<Real>>;
  static constexpr std::int64_t kKeyStep = Product::kWidth;

  XtensorKernel(support::TileShape tile, std::int64_t key_dim, std::int64_t value_dim)
      : queries_(shape(tile.queries, key_dim)),
        keys_(shape(key_dim, Product::padded(tile.keys, kKeyStep))),
        values_(shape(tile.keys, value_dim)),
        scores_(shape(tile.block, Product::padded(tile.keys, kKeyStep))),
        out_(shape(tile.queries, value_dim)),
        max_(std::array{static_cast<std::size_t>(tile.queries)}),
        sum_(std::array{static_cast<std::size_t>(tile.queries)}),
        product_(std::array{static_cast<std::size_t>(value_dim)}),
        depth_(multiplies_unpacked(value_dim) ? kUnpackedDepth : tile.keys) {}

  void load_queries(support::Rows<Real> q, std::int64_t rows, Real scale, Real sink) {
    single_ = rows == 1;
    Product::pack_left(q, rows, key_dim(), scale, queries_.data());
    out_.fill(Real{0});
    // A sink is a key without a value: it starts the maximum and the sum.
    max_.fill(sink);
    sum_.fill(sink == -std::numeric_limits<Real>::infinity() ? Real{0} : Real{1});
  }

  void load_keys(support::Rows<Real> k, std::int64_t keys) {
    if (single_)
      k_ = dense(k, keys, key_dim(), keys_);
    else
      Product::pack_transposed(k, keys, key_dim(), keys_.data());
  }

  void load_values(support::Rows<Real> v, std::int64_t keys) { v_ = dense(v, keys, value_dim(), values_); }

  void scores(const support::Block& block) {
    if (single_) {
      auto to = row(scores_.data(), block.keys);
      xt::blas::gemv(matrix(k_ + block.key * key_dim(), block.keys, key_dim()), row(queries_.data(), key_dim()), to);
      return;
    }
    const auto stride = static_cast<std::int64_t>(scores_.shape(1));
    for (std::int64_t j = 0; j < block.keys; j += kKeyStep) {
      Product::template multiply<Product::Left::packed>({queries_.data() + block.row * key_dim(), 0}, block.rows,
                                                        {keys_.data() + (block.key + j) * key_dim(), kKeyStep},
                                                        kKeyStep, key_dim(), scores_.data() + j, stride, false);
    }
  }

  Real* score_row(const support::Block& block, std::int64_t r) {
    return scores_.data() + (r - block.row) * static_cast<std::int64_t>(scores_.shape(1));
  }

  static void tanh_row(Real* row, std::int64_t n) { tanh_in_place(row, static_cast<std::size_t>(n)); }

  void softmax(const support::Block& block) {
    for (std::int64_t r = block.row; r < block.row + block.rows; ++r) {
      const auto at = static_cast<std::size_t>(r), keys = static_cast<std::size_t>(block.keys);
      Real* scores = score_row(block, r);
      const Real before = max_[at], now = std::max(before, row_max(scores, keys));
      if (now == -std::numeric_limits<Real>::infinity()) {
        // Nothing seen yet, or nothing but NaN.
        if (xt::any(xt::isnan(row(scores, block.keys)))) sum_[at] = std::numeric_limits<Real>::quiet_NaN();
        row(scores, block.keys).fill(Real{0});
        continue;
      }
      if (before != now) {
        const Real shrink = std::exp(before - now);
        sum_[at] *= shrink;
        row(out_.data() + r * value_dim(), value_dim()) *= shrink;
        max_[at] = now;
      }
      sum_[at] += exp_row(scores, keys, now);
    }
  }

  void accumulate(const support::Block& block) {
    if (single_) {
      // Summed by itself first: a long sum over all keys would round more than what arithmetic() states.
      xt::blas::gemv(matrix(v_ + block.key * value_dim(), block.keys, value_dim()), row(scores_.data(), block.keys),
                     product_, true);
      row(out_.data(), value_dim()) += product_;
      return;
    }
    auto out = matrix(out_.data() + block.row * value_dim(), block.rows, value_dim());
    for (std::int64_t j = 0; j < block.keys; j += depth_) {
      // The block's scores start at column 0; its rows lie a whole tile apart. gemm takes the inner extent from V: the
      // rest of a score row is not read.
      const auto weights = matrix(scores_.data() + j, block.rows, static_cast<std::int64_t>(scores_.shape(1)));
      const std::int64_t keys = std::min(depth_, block.keys - j);
      xt::blas::gemm(weights, matrix(v_ + (block.key + j) * value_dim(), keys, value_dim()), out, false, false, Real{1},
                     Real{1});
    }
  }

  void add_product(std::int64_t r, Real weight, const Real* v) {
    for (std::int64_t c = 0; c < value_dim(); ++c) out_.data()[r * value_dim() + c] += weight * v[c];
  }

  Real maximum(std::int64_t r) const { return max_[static_cast<std::size_t>(r)]; }
  Real sum(std::int64_t r) const { return sum_[static_cast<std::size_t>(r)]; }

  void finish(std::int64_t r, Real* out, Real* lse) const {
    const auto at = static_cast<std::size_t>(r);
    auto to = row(out, value_dim());
    if (sum_[at] == 0) {
      to.fill(Real{0});
      *lse = -std::numeric_limits<Real>::infinity();
      return;
    }
    xt::noalias(to) = row(out_.data() + r * value_dim(), value_dim()) * (Real{1} / sum_[at]);
    *lse = max_[at] + std::log(sum_[at]);
  }

 private:
  using Tile = xt::xtensor<Real, 2, xt::layout_type::row_major>;

  static std::array<std::size_t, 2> shape(std::int64_t rows, std::int64_t columns) {
    return {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
  }

  template <class Pointer>
  static auto matrix(Pointer data, std::int64_t rows, std::int64_t columns) {
    return xt::adapt<xt::layout_type::row_major>(data, static_cast<std::size_t>(rows * columns), xt::no_ownership(),
                                                 shape(rows, columns));
  }

  template <class Pointer>
  static auto row(Pointer data, std::int64_t columns) {
    return xt::adapt<xt::layout_type::row_major>(data, static_cast<std::size_t>(columns), xt::no_ownership(),
                                                 std::array{static_cast<std::size_t>(columns)});
  }

  /// Rows without gaps: where they lie, or copied into `buffer`.
  static const Real* dense(support::Rows<Real> rows, std::int64_t count, std::int64_t columns, Tile& buffer) {
    if (rows.stride == columns) return rows.data;
    for (std::int64_t r = 0; r < count; ++r)
      std::copy_n(rows.data + r * rows.stride, columns, buffer.data() + r * columns);
    return buffer.data();
  }

  std::int64_t key_dim() const { return static_cast<std::int64_t>(queries_.shape(1)); }
  std::int64_t value_dim() const { return static_cast<std::int64_t>(out_.shape(1)); }

  Tile queries_, keys_, values_, scores_, out_;
  xt::xtensor<Real, 1> max_, sum_, product_;
  const Real* v_ = nullptr;
  /// One query alone, as when tokens are generated: to pack a tile of keys would cost more than to read it. Two
  /// products of a matrix with a vector, on keys and values where they lie.
  bool single_ = false;
  const Real* k_ = nullptr;
  /// Keys of one product P * V: unpacked, few enough that their values stay in the nearest cache for all rows of the
  /// block; else all.
  static constexpr std::int64_t kUnpackedDepth = 64;
  std::int64_t depth_;
};

class XtensorBackend : public Backend {
 public:
  explicit XtensorBackend(const Context& context) : threads_(context.threads) { choose_openblas_kernels(); }

  Identity identity() const override {
    const auto version = [](int a, int b, int c) {
      return std::to_string(a) + "." + std::to_string(b) + "." + std::to_string(c);
    };
    return {
        "xtensor",
        "xtensor " + version(XTENSOR_VERSION_MAJOR, XTENSOR_VERSION_MINOR, XTENSOR_VERSION_PATCH) + ", xtensor-blas " +
            version(XTENSOR_BLAS_VERSION_MAJOR, XTENSOR_BLAS_VERSION_MINOR, XTENSOR_BLAS_VERSION_PATCH) + ", xsimd " +
            version(XSIMD_VERSION_MAJOR, XSIMD_VERSION_MINOR, XSIMD_VERSION_PATCH) + ", " + openblas_get_config(),
        "CPU, " + std::to_string(threads_) + " thread(s)"};
  }
  int contract() const override { return 5; }

  std::optional<Refusal> refuse(const Call&) const override { return std::nullopt; }

  Conventions conventions() const override {
    Conventions stated;
    // How many rows a product of BLAS has depends on the threads.
    stated.same_bits = "repeat";
    return stated;
  }
  Arithmetic arithmetic(const Call& problem) const override {
    Arithmetic a;
    a.accumulator = a.stored_weights = accumulator_of(problem.dtype);
    a.exp_ulps = 2;
    a.log_ulps = 1;
    a.division = Division::reciprocal;
    a.key_block = tile_.shape().keys;
    a.flush_to_zero = true;  // xsimd's exp gives 0 where the result would be subnormal
    return a;
  }

  Tuning tuning() const override { return {1, tile_.parameters()}; }
  void tune(const std::vector<std::int64_t>& values) override { tile_.set(values); }

  std::unique_ptr<Plan> prepare(const Call& problem) override {
    openblas_set_num_threads(1);
    if (problem.has_state()) {
      if (problem.dtype == DType::f64) return std::make_unique<XtensorLinearPlan<double>>(problem, threads_);
      return std::make_unique<XtensorLinearPlan<float>>(problem, threads_);
    }
    // A BLAS that packs likes large blocks; where keys are hidden, what a block computes in vain grows with it.
    support::TileShape tile = tile_.shape();
    if (multiplies_unpacked(problem.value_dim)) {
      tile.block = kUnpackedBlock;
    } else if (problem.window_left != Call::kUnbounded || problem.window_right != Call::kUnbounded) {
      tile.block = kTile.block / 2;
    }
    if (problem.dtype == DType::f64) {
      return std::make_unique<support::FusedHostPlan<double, XtensorKernel<double>>>(problem, threads_, tile);
    }
    return std::make_unique<support::FusedHostPlan<float, XtensorKernel<float>>>(problem, threads_, tile);
  }

 private:
  static constexpr support::TileShape kTile{528, 512, 132};
  static constexpr std::int64_t kUnpackedBlock = 24;
  // Packed queries: whole panels in a block, and in half of one.
  static_assert(kTile.block % (2 * support::RegisterTile<XsimdSimd<float>>::kRows) == 0);
  static_assert(kUnpackedBlock % support::RegisterTile<XsimdSimd<float>>::kRows == 0);
  support::TunedTile tile_{kTile, /*block=*/false};
  int threads_;
};

}  // namespace
}  // namespace attest

ATTEST_REGISTER_BACKEND(xtensor, XtensorBackend)
