// How far a backend in a process of its own may go.
#pragma once

#include <chrono>

namespace attest {

struct IsolationOptions {
  std::chrono::milliseconds limit{60'000};  ///< of one request
  double memory_gib = 0;                    ///< of address space beyond what a worker starts with; 0: no limit
};

}  // namespace attest
