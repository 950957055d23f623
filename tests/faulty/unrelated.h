// Deliberately wrong backends: `example` with one mistake that breaks one relation between calls. Some results have
// other bits only, so that no reference can tell; `example` promises the bits.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backends/backend.h"

namespace attest::faulty {

struct UnrelatedBackend {
  std::string_view name;
  std::string_view relation;   ///< that it breaks; empty: the honest twin
  std::string_view case_line;  ///< on which it does
  bool within_bounds = false;  ///< by bits alone
};

std::span<const UnrelatedBackend> unrelated_backends();
std::unique_ptr<Backend> make_unrelated(std::string_view name, int threads = 1);

}  // namespace attest::faulty
