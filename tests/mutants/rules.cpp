#include "tests/mutants/rules.h"

#include <algorithm>
#include <cmath>

namespace attest::mutants {
namespace {

bool alike(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// |got - expected| <= absolute + relative * |expected|, for every element.
bool all_close(const Tensor& t, double absolute, double relative) {
  for (std::size_t n = 0; n < t.got.size(); ++n) {
    if (alike(t.got[n], t.expected[n])) continue;
    const double allowed = absolute + relative * std::fabs(t.expected[n]);
    if (!std::isfinite(t.expected[n]) || !(std::fabs(t.got[n] - t.expected[n]) <= allowed)) return false;
  }
  return true;
}

bool torch_default(const Tensor& t) {
  switch (t.dtype) {
    case DType::f64: return all_close(t, 1e-7, 1e-7);
    case DType::f32: return all_close(t, 1e-5, 1.3e-6);
    case DType::f16: return all_close(t, 1e-5, 1e-3);
    case DType::bf16: return all_close(t, 1e-5, 1.6e-2);
  }
  return false;
}

/// Squared error over squared length, of the whole tensor.
bool normalised_mean_square(const Tensor& t) {
  double error = 0, length = 0;
  for (std::size_t n = 0; n < t.got.size(); ++n) {
    if (alike(t.got[n], t.expected[n]) && !std::isfinite(t.expected[n])) continue;
    if (!std::isfinite(t.got[n]) || !std::isfinite(t.expected[n])) return false;
    error += (t.got[n] - t.expected[n]) * (t.got[n] - t.expected[n]);
    length += t.expected[n] * t.expected[n];
  }
  return error == 0 || error / length <= 5e-4;
}

/// The largest error is at most twice that of a plain implementation in the same types.
bool twice_the_baseline(const Tensor& t) {
  double most = 0, allowed = 0;
  for (std::size_t n = 0; n < t.got.size(); ++n) {
    if (!alike(t.got[n], t.expected[n])) {
      const double error = std::fabs(t.got[n] - t.expected[n]);
      if (!std::isfinite(error)) return false;
      most = std::max(most, error);
    }
    if (!alike(t.baseline[n], t.expected[n])) {
      allowed = std::max(allowed, 2 * std::fabs(t.baseline[n] - t.expected[n]));
    }
  }
  return most <= allowed;
}

constexpr Rule kRules[] = {
    {"torch", "torch.testing.assert_close's defaults for the storage type", torch_default},
    {"1e-4", "KernelBench: absolute and relative 1e-4", [](const Tensor& t) { return all_close(t, 1e-4, 1e-4); }},
    {"1e-2", "absolute and relative 1e-2", [](const Tensor& t) { return all_close(t, 1e-2, 1e-2); }},
    {"nmse", "ggml test-backend-ops: normalised mean square error of 5e-4", normalised_mean_square},
    {"twice", "FlashAttention: twice the largest error of a plain implementation", twice_the_baseline},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

}  // namespace attest::mutants
