// Suites without a file of lines: their cases are a function of the table of options (reference/options/options.h) and
// of a seed, so that an option of tomorrow is in them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reference/call/problem.h"

namespace attest {

struct GeneratedSuite {
  std::string_view name, about;
  /// Canonical problems, each once. The same seed gives the same ones on every machine.
  std::vector<Problem> (*problems)(std::uint64_t seed);
};

std::span<const GeneratedSuite> generated_suites();

}  // namespace attest
