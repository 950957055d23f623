// The mutants of the example kernel: each comparison, operator, constant, index and condition changed in turn.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"

namespace attest::mutants {

struct Mutant {
  std::string_view name;  ///< m0, m1, ...
  std::string_view text;  ///< "file.member: the line with {was -> now}"
};

std::span<const Mutant> all_mutants();
/// The same mutants as backends, in the same order.
std::span<const BackendEntry> mutant_backends();

}  // namespace attest::mutants
