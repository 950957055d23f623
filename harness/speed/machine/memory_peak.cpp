#include "harness/speed/machine/memory_peak.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace attest {
namespace {

/// A line of /proc/self/status in bytes; 0 where it isn't there.
double status_bytes(const char* key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::strtod(line.c_str() + line.find(':') + 1, nullptr) * 1024;
  }
  return 0;
}

}  // namespace

MemoryPeak::MemoryPeak(const char* clear_refs) {
  malloc_trim(0);
  // "5" makes the peak start anew (proc(5)).
  std::ofstream file(clear_refs);
  anew_ = static_cast<bool>(file << "5" << std::flush);
  before_ = status_bytes("VmRSS");
}

double MemoryPeak::bytes() const { return anew_ ? std::max(0.0, status_bytes("VmHWM") - before_) : 0; }

}  // namespace attest
