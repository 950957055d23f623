#include "tests/mutants/rules.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "reference/arithmetic/arithmetic.h"
#include "reference/call/tensors.h"

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
    default: return false;
  }
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

/// The largest error is at largest twice that of a plain implementation in the same types.
bool twice_the_baseline(const Tensor& t) {
  double largest = 0, allowed = 0;
  for (std::size_t n = 0; n < t.got.size(); ++n) {
    if (!alike(t.got[n], t.expected[n])) {
      const double error = std::fabs(t.got[n] - t.expected[n]);
      if (!std::isfinite(error)) return false;
      largest = std::max(largest, error);
    }
    if (!alike(t.baseline[n], t.expected[n])) {
      allowed = std::max(allowed, 2 * std::fabs(t.baseline[n] - t.expected[n]));
    }
  }
  return largest <= allowed;
}

/// What benchdnn 3.9 does with a partition that holds a softmax on a GPU, read from its sources `compare.cpp` and
/// `ref_primitive.cpp`: each element against the expectation rounded to the type, by absolute or relative error; when
/// no more than one in 1,024 is off, the distance of the whole tensor decides. (On a CPU it wants equality before
/// that.)
bool benchdnn_sdpa(const Tensor& t) {
  const double epsilon = 2 * unit_roundoff(t.dtype);
  std::size_t off = 0;
  double error = 0, length = 0;
  for (std::size_t n = 0; n < t.got.size(); ++n) {
    std::uint64_t rounded = 0;
    store(&rounded, t.dtype, 0, t.expected[n]);
    const double expected = load(&rounded, t.dtype, 0), got = t.got[n], difference = std::fabs(got - expected);
    if (std::isfinite(expected)) {
      error += difference * difference;
      length += expected * expected;
    }
    if (alike(got, expected)) continue;
    const double relative = difference / (std::fabs(expected) > FLT_MIN ? std::fabs(expected) : 1);
    const bool close = difference <= std::max(epsilon, 2e-5) || relative <= std::max(epsilon, 8e-6);
    if (!std::isfinite(expected) || !close) ++off;
  }
  if (off == 0) return true;
  return off <= t.got.size() / 1024 && std::sqrt(error / length) <= 2.5e-3;
}

constexpr Rule kRules[] = {
    {"torch", "torch.testing.assert_close's defaults for the storage type", torch_default},
    {"1e-4", "KernelBench: absolute and relative 1e-4", [](const Tensor& t) { return all_close(t, 1e-4, 1e-4); }},
    {"1e-2", "absolute and relative 1e-2", [](const Tensor& t) { return all_close(t, 1e-2, 1e-2); }},
    {"nmse", "ggml test-backend-ops: normalised mean square error of 5e-4", normalised_mean_square},
    {"benchdnn", "oneDNN benchdnn 3.9, graph with a softmax: 2e-5 absolute or 8e-6 relative, then L2 2.5e-3",
     benchdnn_sdpa},
    {"twice", "FlashAttention: twice the largest error of a plain implementation", twice_the_baseline},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

}  // namespace attest::mutants
