// eigen: fused attention whose arithmetic is Eigen's, on tiles of queries and keys (backends/support/fused_host.h), by
// the kernel of backends/support/eigen/packet_kernel.h. Its products of many rows are register tiles
// (backends/support/eigen/packets.h says why and what it gains); a single row takes Eigen's own product of a matrix
// with a vector, on keys and values where they lie.
#include <Eigen/Core>

#include "backends/backend.h"
#include "backends/eigen/linear.h"
#include "backends/eigen/merge.h"
#include "backends/support/eigen/packet_kernel.h"
#include "backends/support/fused_host.h"
#include "backends/support/tuned_tile.h"

namespace attest {
namespace {

class EigenBackend : public Backend {
 public:
  explicit EigenBackend(const Context& context) : threads_(context.threads) {}

  Identity identity() const override {
    return {"eigen",
            "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
                std::to_string(EIGEN_MINOR_VERSION) + " (" + Eigen::SimdInstructionSetsInUse() + ")",
            "CPU, " + std::to_string(threads_) + " thread(s)"};
  }
  int contract() const override { return 9; }

  Conventions conventions() const override {
    Conventions stated;
    // How many queries a tile has depends on threads, batch and heads, and where its keys begin on its queries.
    stated.same_bits = "repeat, pages";
    return stated;
  }
  Arithmetic arithmetic(const Call& problem) const override {
    if (problem.has_parts()) {
      Arithmetic a;
      a.accumulator = a.stored_weights = accumulator_of(problem.dtype);
      a.exp_ulps = a.log_ulps = 1;  // glibc's exp, exp2, log and log2 are below 1 ulp
      a.base2 = problem.base2;
      return a;
    }
    return support::packet_kernel_arithmetic(accumulator_of(problem.dtype), tile_.shape());
  }

  Tuning tuning() const override { return {1, tile_.parameters()}; }
  void tune(const std::vector<std::int64_t>& values) override { tile_.set(values); }

  std::unique_ptr<Plan> prepare(const Call& problem) override {
    Eigen::setNbThreads(1);  // threads are ours: one tile each
    if (problem.has_parts()) {
      if (problem.dtype == DType::f64) return std::make_unique<EigenMergePlan<double>>(problem, threads_);
      return std::make_unique<EigenMergePlan<float>>(problem, threads_);
    }
    if (problem.has_state()) {
      if (problem.dtype == DType::f64) return std::make_unique<EigenLinearPlan<double>>(problem, threads_);
      return std::make_unique<EigenLinearPlan<float>>(problem, threads_);
    }
    if (problem.dtype == DType::f64) {
      return std::make_unique<support::FusedHostPlan<double, support::PacketKernel<double>>>(problem, threads_,
                                                                                             tile_.shape());
    }
    return std::make_unique<support::FusedHostPlan<float, support::PacketKernel<float>>>(problem, threads_,
                                                                                         tile_.shape());
  }

 private:
  support::TunedTile tile_{support::kPacketTile};
  int threads_;
};

}  // namespace
}  // namespace attest

ATTEST_REGISTER_BACKEND(eigen, EigenBackend)
