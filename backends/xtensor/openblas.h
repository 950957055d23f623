// OpenBLAS's choice of kernels.
#pragma once

namespace attest {

/// OpenBLAS picks its kernels by the processor's model number. One younger than the library gets those of 2004, with
/// SSE3: less than half the speed. Called before the first product, this picks by instruction set instead;
/// $OPENBLAS_CORETYPE, where set, and a processor that OpenBLAS knows keep what they have.
void choose_openblas_kernels();

/// Whether small products are made without packing their operands first, as OpenBLAS 0.3.21 does with AVX-512 up to
/// 10^6 multiply-adds.
bool openblas_multiplies_unpacked();

}  // namespace attest
