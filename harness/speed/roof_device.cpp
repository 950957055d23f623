// Which devices the measured roof is of. Apart from roof.cpp, whose flags are those of the backends.
#include <algorithm>
#include <fstream>
#include <string>

#include "harness/base/machine.h"
#include "harness/speed/roof.h"

namespace attest {
namespace {

/// Instructions that multiply 16-bit numbers at more than the rate of floats.
bool has_fast_halves() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    return line.find("amx_bf16") != std::string::npos || line.find("avx512_bf16") != std::string::npos ||
           line.find("avx512_fp16") != std::string::npos;
  }
  return false;
}

}  // namespace

bool roof_is_of(const Identity& identity, DType dtype) {
  static const std::string processor = this_machine().cpu;
  static const bool fast_halves = has_fast_halves();
  const std::string& device = identity.device;
  // OpenCL devices: PoCL calls the processor pthread-... or cpu-..., others give its own name.
  const bool here = device.starts_with("CPU") || device.find("pthread-") != std::string::npos ||
                    device.find("cpu-") != std::string::npos || device.find(processor) != std::string::npos;
  return here && (size_of(dtype) != 2 || !fast_halves);
}

}  // namespace attest
