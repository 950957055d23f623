// The file of `attest bench --json`.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/speed/files/swept_curves.h"
#include "harness/speed/machine/roof.h"
#include "harness/speed/timing/bench.h"

namespace attest {

/// What stands beside the numbers.
struct BenchmarkContext {
  Roof roof;
  BenchSettings settings;
  std::vector<std::string> command;
  std::vector<Identity> backends;
  std::optional<SweptCurves> sweep{};  ///< where the cases are points of curves
};

/// Google Benchmark's own format, with the machine, its roof and the command as context. What the stream refuses is its
/// owner's to tell.
void write_benchmark(std::ostream& out, const std::vector<BenchCase>& cases, const BenchmarkContext& context);

}  // namespace attest
