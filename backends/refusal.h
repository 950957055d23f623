// Whether a backend supports a call. Everyone but the backend itself asks here.
#pragma once

#include <optional>
#include <string>

#include "backends/backend.h"
#include "reference/call/launch.h"
#include "reference/options/options.h"

namespace attest {

/// Refuses options that are newer than the backend's contract, on its behalf; then asks the backend.
inline std::optional<Refusal> refusal_of(const Backend& backend, const Call& launched) {
  const Call call = planned(launched);
  for (const Option* option : set_options(call)) {
    const int version = option->version_for(call);
    if (version <= backend.contract()) continue;
    return Refusal{option->key + ": came with version " + std::to_string(version) +
                       " of the contract, and the backend was written for version " +
                       std::to_string(backend.contract()),
                   RefusalCause::younger_than_contract};
  }
  return backend.refuse(call);
}

}  // namespace attest
