// The file of `attest bench --json`.
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/base/output_file.h"
#include "harness/speed/bench.h"
#include "harness/speed/roof.h"

namespace attest {

/// What stands beside the numbers.
struct BenchmarkContext {
  Roof roof;
  BenchSettings settings;
  std::vector<std::string> command;
  std::vector<Identity> backends;
};

/// Google Benchmark's own format, with the machine, its roof and the command as context. Throws UserError when the disk
/// refuses.
void write_benchmark(OutputFile& file, const std::vector<BenchCase>& cases, const BenchmarkContext& context);

}  // namespace attest
