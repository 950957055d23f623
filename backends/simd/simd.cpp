// simd: a fused attention written for vectors with Highway. One source gives kernels for AVX-512, AVX2 and SSE4 (NEON
// elsewhere), chosen when the program runs; ATTEST_SIMD_TARGET=avx2 takes another than the best. Where products of bf16
// are faster than those of f32 (avx512_bf16), calls in bf16 use them.
#include "backends/backend.h"
#include "backends/simd/kernels.h"
#include "backends/simd/linear.h"
#include "backends/simd/plan.h"

namespace attest {
namespace {

class SimdBackend : public Backend {
 public:
  explicit SimdBackend(const Context& context)
      : threads_(context.threads),
        target_(simd::chosen_target()),
        f32_(simd::kernels_of<float>(target_)),
        f64_(simd::kernels_of<double>(target_)) {}

  Identity identity() const override {
    return {"simd", "Highway " + simd::highway_version() + " (" + target_.name + ")",
            "CPU, " + std::to_string(threads_) + " thread(s)"};
  }
  int contract() const override { return 9; }

  std::optional<Refusal> refuse(const Call& call) const override {
    if (!call.has_scores()) return refuse_linear(call);
    if (call.wants(Output::max) || call.wants(Output::sum)) return Refusal{"the maximum and sum of a row aren't kept"};
    if (call.dynamic || call.append) return Refusal{"lengths are fixed, and a cache is only read"};
    if (call.latent) return Refusal{"values that lie in their keys aren't read"};
    if (call.prepares_operands() || call.scales != Scales::none)
      return Refusal{"queries and keys are taken as they are"};
    if (call.unscaled_cap) return Refusal{"the cap applies to scaled scores alone"};
    if (call.select) return Refusal{"no lists of keys"};
    return std::nullopt;
  }

  Conventions conventions() const override {
    Conventions stated;
    // How keys are cut depends on the batch.
    stated.same_bits = "repeat, threads, pages";
    return stated;
  }
  Arithmetic arithmetic(const Call& call) const override {
    Arithmetic a;
    a.accumulator = a.stored_weights = accumulator_of(call.dtype);
    a.exp_ulps = simd::kExpUlps;
    a.tanh_ulps = simd::kTanhUlps;
    a.log_ulps = 1;
    a.division = Division::reciprocal;
    a.key_block = simd::kTileKeys;
    a.lazy_threshold = simd::kLag;
    if (f32_.takes_pairs && simd::is_of_pairs(call)) a.stored_weights = DType::bf16;
    a.flush_to_zero = true;  // exp gives 0 where the result would be subnormal
    if (call.has_state() && !call.has_beta()) a.state_chunk = simd::kStateChunk;
    return a;
  }

  std::unique_ptr<Plan> prepare(const Call& call) override {
    return call.dtype == DType::f64 ? plan(call, f64_) : plan(call, f32_);
  }

 private:
  static std::optional<Refusal> refuse_linear(const Call& call) {
    if (!call.has_state()) return Refusal{"no merges of partial results"};
    if (call.wants_gradients()) return Refusal{"no gradients of linear attention"};
    if (call.lengths || call.qk_heads || call.l2norm)
      return Refusal{"linear attention over whole sequences, with own heads of q and k that aren't normalised"};
    return std::nullopt;
  }

  template <class Real>
  std::unique_ptr<Plan> plan(const Call& call, const simd::Kernels<Real>& kernels) const {
    if (call.has_scores()) return std::make_unique<simd::SimdPlan<Real>>(call, kernels, threads_);
    return std::make_unique<simd::LinearPlan<Real>>(call, kernels, threads_);
  }

  int threads_;
  simd::Target target_;
  const simd::Kernels<float>& f32_;
  const simd::Kernels<double>& f64_;
};

}  // namespace
}  // namespace attest

ATTEST_REGISTER_BACKEND(simd, SimdBackend)
