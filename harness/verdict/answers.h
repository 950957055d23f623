// What a backend says about one call: it is asked once for a case, and its answers travel with the case.
#pragma once

#include <exception>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"

namespace attest {

struct Answers {
  std::optional<Refusal> refusal;  ///< by the backend or on its behalf (backends/refusal.h)
  Arithmetic arithmetic;           ///< where it does not refuse
  Conventions conventions;         ///< where it does not refuse
};

/// Throws what the backend throws.
Answers ask(const Backend& backend, const Call& call);

/// A backend of a case with its answers, or with what it threw instead.
struct AskedBackend {
  const Backend* backend;
  Answers answers;
  std::exception_ptr thrown;
};

/// In the same order. Throws nothing that a backend throws.
std::vector<AskedBackend> ask_all(const Case& source, const std::vector<Backend*>& backends);

}  // namespace attest
