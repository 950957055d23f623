// What this machine can do at most: the roofs that speeds are measured against.
#pragma once

namespace attest {

struct Roof {
  double fma_gflops_f32 = 0, fma_gflops_f64 = 0;  ///< fused multiply-adds counted as two, all threads together
  double read_gbps = 0;                           ///< sequential reads far larger than the caches, all threads
};

/// Measured now, in under a second, with as many threads as the benchmark uses.
Roof measure_roof(int threads);

}  // namespace attest
