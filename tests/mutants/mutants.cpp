#include "tests/mutants/mutants.h"

#include <stdexcept>

#include "backends/registry.h"
#include "tests/mutants/mutant.h"

namespace attest::mutants {

#define ATTEST_MUTANT(name, text)                \
  namespace name {                               \
  std::unique_ptr<Backend> make(const Context&); \
  }
#include "mutants.inc"
#undef ATTEST_MUTANT

std::span<const Mutant> all_mutants() {
  static const Mutant list[] = {
#define ATTEST_MUTANT(name, text) {#name, text},
#include "mutants.inc"
#undef ATTEST_MUTANT
  };
  return list;
}

std::span<const BackendEntry> mutant_backends() {
  static const BackendEntry list[] = {
#define ATTEST_MUTANT(name, text) {#name, name::make, ""},
#include "mutants.inc"
#undef ATTEST_MUTANT
  };
  return list;
}

const BackendEntry& example_entry() {
  for (const BackendEntry& entry : registered_backends()) {
    if (std::string_view(entry.name) == "example") return entry;
  }
  throw std::logic_error("the backend example is not built");
}

}  // namespace attest::mutants
