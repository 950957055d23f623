// How far a backend in a process of its own may go.
#pragma once

#include <chrono>

#include "reference/call/call.h"

namespace attest {

struct IsolationOptions {
  std::chrono::milliseconds limit{60'000};  ///< of one request about a small call: request_limit adds for large ones
  double memory_gib = 0;                    ///< beyond what a worker starts with; 0: a share of what is free
};

/// How long one request about this call may take. A limit that is generous to a small call is false alarm on millions
/// of heads or rows: 0.1 ms are added for each row of the output and 1 us for each pair of a row and a key, in whole
/// seconds, so that nothing is added to what is small.
std::chrono::milliseconds request_limit(const IsolationOptions& options, const Call& call);

}  // namespace attest
