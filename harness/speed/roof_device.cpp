// Which devices the measured roof is of. Apart from roof.cpp, whose flags are those of the backends.
#include <algorithm>
#include <fstream>
#include <string>

#include "harness/base/machine.h"
#include "harness/speed/roof.h"

namespace attest {
namespace {

/// Instructions that multiply numbers of this type at more than the rate of floats.
bool has_fast_halves(DType dtype) {
  const std::string type = dtype == DType::bf16 ? "bf16" : "fp16";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    return line.find("amx_" + type) != std::string::npos || line.find("avx512_" + type) != std::string::npos;
  }
  return false;
}

}  // namespace

bool roof_is_of(const Identity& identity, DType dtype) {
  static const std::string processor = this_machine().cpu;
  static const bool fast_bf16 = has_fast_halves(DType::bf16), fast_f16 = has_fast_halves(DType::f16);
  const std::string& device = identity.device;
  // OpenCL devices: PoCL calls the processor pthread-... or cpu-..., others give its own name.
  const bool here = device.starts_with("CPU") || device.find("pthread-") != std::string::npos ||
                    device.find("cpu-") != std::string::npos || device.find(processor) != std::string::npos;
  return here && !(dtype == DType::bf16 && fast_bf16) && !(dtype == DType::f16 && fast_f16);
}

}  // namespace attest
