// Which devices the measured roof is of. Apart from roof.cpp, whose flags are those of the backends.
#include <algorithm>
#include <fstream>
#include <string>

#include "harness/base/machine.h"
#include "harness/speed/machine/roof.h"

namespace attest {
namespace {

/// Instructions that multiply numbers of this type at more than the rate of floats.
bool has_instructions(const char* set, DType dtype) {
  const std::string name = std::string(set) + (dtype == DType::bf16 ? "bf16" : "fp16");
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    return line.find(name) != std::string::npos;
  }
  return false;
}

bool has_fast_halves(DType dtype) { return has_instructions("amx_", dtype) || has_instructions("avx512_", dtype); }

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

double roof_factor(DType dtype) {
  if (dtype != DType::bf16 && dtype != DType::f16) return 1;
  // Tiles make 32 times as many products as AVX-512, which may do twice as many as what the roof was built with;
  // products in pairs twice, and the same again.
  if (has_instructions("amx_", dtype)) return 64;
  return has_instructions("avx512_", dtype) ? 4 : 1;
}

}  // namespace attest
