// Roofs: the measured peak rates of this machine, with which speeds are compared.
#pragma once

#include "backends/identity.h"
#include "reference/base/types.h"

namespace attest {

struct Roof {
  double fma_gflops_f32 = 0, fma_gflops_f64 = 0;  ///< fused multiply-adds counted as two, all threads together
  double read_gbps = 0;                           ///< sequential reads far larger than the caches, all threads
  double copy_gbps = 0;                           ///< copies into new memory, one thread
  double convert_gbps = 0;                        ///< bytes read that become another type, one element after the other
};

/// Measures the roofs in under a second, with the benchmark's threads, but no more than there are processors. Ends
/// early when `interrupted`.
Roof measure_roof(int threads);

/// Measures briefly again: GFLOP/s of fused multiply-adds, in f64 or f32. Ends as soon as it comes within 1% of `known`
/// (0: nothing is known), so that a case costs no more than it must where nothing has slowed the machine down.
double measure_fma_again(int threads, bool doubles, double known);

/// Whether the measured roof is that of this device and storage type: of the processor that this program runs on, and
/// not of one that multiplies numbers of this type faster than floats.
bool roof_is_of(const Identity& identity, DType dtype);

/// The limit of this processor for numbers of this type, as a multiple of the roof in f32.
double roof_factor(DType dtype);

}  // namespace attest
