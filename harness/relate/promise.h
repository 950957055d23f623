// What a backend promises of its bits (same_bits in backends/conventions.h).
#pragma once

#include <string>
#include <string_view>

#include "backends/backend.h"

namespace attest {

bool promises_bits(const Conventions& stated, std::string_view relation);

/// The relations of the backend's promise that keep their bits in a few small cases, in its words; "no promise" where
/// none does. Other numbers of threads are not tried.
std::string kept_promise(Backend& backend);

}  // namespace attest
