// Which of CLBlast's kernels multiplies matrices, and with what tile: parameters of CLBlast's own, in place of those
// that its database has for the device.
//
// CLBlast has a "direct" kernel for small products and tiled ones for larger, behind copies that pad and transpose. The
// one with tiles in registers (its GEMMK = 1) needs neither local memory nor barriers.
#pragma once

#include <clblast.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/backend.h"

namespace attest {

/// Sizes of a k dimension, and of the rows of what enters a product, are multiples of this: CLBlast 1.5.3 fills no k up
/// to what its vectors read at once.
inline constexpr std::int64_t kGemmDepth = 16;

struct GemmKernel {
  std::int64_t tile = 0;  ///< rows and columns of a work-group's part of the product; 0: CLBlast's own choice
  std::int64_t rows = 4;  ///< of a work-item's tile, which is two vectors wide

  bool operator==(const GemmKernel&) const = default;

  /// In this order: gemm_tile, gemm_rows.
  std::vector<Parameter> parameters() const;
  void set(const std::vector<std::int64_t>& values);

  /// Under CLBlast's names ("MWG", "VWM", ...), for a device whose vectors hold so many elements. `tile` is not 0.
  std::unordered_map<std::string, std::size_t> xgemm_parameters(std::size_t lanes) const;
};

/// Every product of this type on this device is computed so from now on, in this process. Throws BackendError.
void use_gemm_kernel(cl_device_id device, clblast::Precision precision, const GemmKernel& kernel);

void check_clblast(clblast::StatusCode status, const std::string& what);

}  // namespace attest
