#include "harness/speed/memory_peak.h"

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
    if (line.starts_with(key)) return std::atof(line.c_str() + line.find(':') + 1) * 1024;
  }
  return 0;
}

}  // namespace

MemoryPeak::MemoryPeak() {
  malloc_trim(0);
  // "5" makes the peak start anew (proc(5)).
  std::ofstream("/proc/self/clear_refs") << "5";
  before_ = status_bytes("VmRSS");
}

double MemoryPeak::bytes() const { return std::max(0.0, status_bytes("VmHWM") - before_); }

}  // namespace attest
