// eigen: fused attention whose arithmetic is Eigen's, on tiles of queries and keys (see support/fused_host.h).
//
// Scores and output are products on row-major tiles, the softmax runs along contiguous rows, all of it in Eigen's
// packets.
#include <Eigen/Core>
#include <cmath>

#include "backends/backend.h"
#include "backends/eigen/linear.h"
#include "backends/eigen/packet_exp.h"
#include "backends/eigen/register_tile.h"
#include "backends/support/fused_host.h"

namespace attest {
namespace {

template <class Real>
class EigenKernel {
 public:
  static constexpr std::int64_t kKeyStep = std::int64_t{register_tile::kPackets} * register_tile::kLanes<Real>;

  EigenKernel(support::TileShape tile, std::int64_t key_dim, std::int64_t value_dim)
      : value_dim_(value_dim),
        queries_(tile.queries, key_dim),
        scores_(tile.block, register_tile::padded<Real>(tile.keys, register_tile::kPackets)),
        out_(tile.queries, register_tile::padded<Real>(value_dim)),
        keys_(scores_.cols() * key_dim),
        values_(tile.keys, out_.cols()),
        max_(tile.queries),
        sum_(tile.queries) {}

  void load_queries(support::Rows<Real> q, std::int64_t rows, Real scale, Real sink) {
    rows_ = rows;
    using Rows = Eigen::Map<const Tile, 0, Eigen::OuterStride<>>;
    queries_.topRows(rows) = Rows(q.data, rows, queries_.cols(), Eigen::OuterStride<>(q.stride)) * scale;
    out_.topRows(rows).setZero();
    // A sink is a key without a value: it starts the maximum and the sum.
    max_.setConstant(sink);
    sum_.setConstant(sink == -std::numeric_limits<Real>::infinity() ? Real{0} : Real{1});
  }

  void load_keys(support::Rows<Real> k, std::int64_t keys) {
    register_tile::pack_transposed(k.data, k.stride, keys, queries_.cols(), keys_.data());
  }

  void load_values(support::Rows<Real> v, std::int64_t keys) {
    if (out_.cols() != value_dim_) {  // packets must not read past a row
      register_tile::pad_rows(v.data, v.stride, keys, value_dim_, out_.cols(), values_.data());
      v = {values_.data(), out_.cols()};
    }
    v_ = v;
  }

  void scores(const support::Block& block) {
    const std::int64_t dim = queries_.cols();
    for (std::int64_t j = block.key; j < block.key + block.keys; j += kKeyStep) {
      register_tile::columns<Real, register_tile::kPackets>(&queries_(block.row, 0), dim, block.rows,
                                                            keys_.data() + j * dim, kKeyStep, dim, &scores_(0, j),
                                                            scores_.cols(), false);
    }
  }

  Real* score_row(const support::Block& block, std::int64_t r) { return &scores_(r - block.row, block.key); }

  static void tanh_row(Real* row, std::int64_t n) { tanh_in_place(row, n); }

  void softmax(const support::Block& block) {
    for (std::int64_t r = block.row; r < block.row + block.rows; ++r) {
      Eigen::Map<Eigen::Array<Real, 1, Eigen::Dynamic>> row(score_row(block, r), block.keys);
      const Real before = max_[r];
      // A maximum that loses NaN is harmless: exp(NaN - m) brings it back.
      const Real now = std::max(before, row.maxCoeff());
      if (now == -std::numeric_limits<Real>::infinity()) {
        // Nothing seen yet, or nothing but NaN.
        if (row.isNaN().any()) sum_[r] = std::numeric_limits<Real>::quiet_NaN();
        row.setZero();
        continue;
      }
      if (before != now) {
        const Real shrink = std::exp(before - now);
        sum_[r] *= shrink;
        out_.row(r) *= shrink;
        max_[r] = now;
      }
      sum_[r] += exp_row(row.data(), block.keys, now);
    }
  }

  void accumulate(const support::Block& block) {
    constexpr std::int64_t kLanes = register_tile::kLanes<Real>;
    const Real* weights = &scores_(0, block.key);
    const Real* values = v_.data + block.key * v_.stride;
    Real* out = &out_(block.row, 0);
    std::int64_t c = 0;
    for (; c + kKeyStep <= out_.cols(); c += kKeyStep) {
      register_tile::columns<Real, register_tile::kPackets>(weights, scores_.cols(), block.rows, values + c, v_.stride,
                                                            block.keys, out + c, out_.cols(), true);
    }
    for (; c < out_.cols(); c += kLanes) {
      register_tile::columns<Real, 1>(weights, scores_.cols(), block.rows, values + c, v_.stride, block.keys, out + c,
                                      out_.cols(), true);
    }
  }

  void add_product(std::int64_t r, Real weight, const Real* v) {
    for (std::int64_t c = 0; c < value_dim_; ++c) out_(r, c) += weight * v[c];
  }

  void finish(std::int64_t r, Real* out, Real* lse) const {
    Eigen::Map<Eigen::Matrix<Real, 1, Eigen::Dynamic>> to(out, value_dim_);
    if (sum_[r] == 0) {
      to.setZero();
      *lse = -std::numeric_limits<Real>::infinity();
      return;
    }
    to = out_.row(r).head(value_dim_) * (Real{1} / sum_[r]);
    *lse = max_[r] + std::log(sum_[r]);
  }

 private:
  using Tile = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  std::int64_t rows_ = 0, value_dim_;
  Tile queries_, scores_, out_;
  Eigen::Array<Real, Eigen::Dynamic, 1> keys_;  ///< K^T of one tile, in panels
  support::Rows<Real> v_;
  Tile values_;  ///< V of one tile when its rows are no whole packets
  Eigen::Array<Real, Eigen::Dynamic, 1> max_, sum_;
};

class EigenBackend : public Backend {
 public:
  explicit EigenBackend(const Context& context) : threads_(context.threads) {}

  Identity identity() const override {
    return {"eigen",
            "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
                std::to_string(EIGEN_MINOR_VERSION) + " (" + Eigen::SimdInstructionSetsInUse() + ")",
            "CPU, " + std::to_string(threads_) + " thread(s)"};
  }

  Arithmetic arithmetic(const Problem& problem) const override {
    Arithmetic a;
    a.accumulator = a.stored_weights = accumulator_of(problem.dtype);
    a.exp_ulps = kPacketExpUlps;
    a.tanh_ulps = kPacketTanhUlps;
    a.log_ulps = 1;
    a.division = Division::reciprocal;
    a.key_block = kTile.keys;
    a.flush_to_zero = true;  // PacketExp gives 0 where the result would be subnormal
    return a;
  }

  std::unique_ptr<Plan> prepare(const Problem& problem) override {
    Eigen::setNbThreads(1);  // threads are ours: one tile each
    if (problem.op != Op::attention) {
      if (problem.dtype == DType::f64) return std::make_unique<EigenLinearPlan<double>>(problem, threads_);
      return std::make_unique<EigenLinearPlan<float>>(problem, threads_);
    }
    if (problem.dtype == DType::f64) {
      return std::make_unique<support::FusedHostPlan<double, EigenKernel<double>>>(problem, threads_, kTile);
    }
    return std::make_unique<support::FusedHostPlan<float, EigenKernel<float>>>(problem, threads_, kTile);
  }

 private:
  static constexpr support::TileShape kTile{192, 128, 48};
  int threads_;
};

}  // namespace
}  // namespace attest

ATTEST_REGISTER_BACKEND(eigen, EigenBackend)
