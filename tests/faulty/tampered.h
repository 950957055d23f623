// Deliberately wrong backends of the second kind: `example`, given another problem or other inputs than were asked for,
// or with its results changed on the way out. That is how an accepted option gets lost between an interface and a
// kernel.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "backends/backend.h"

namespace attest::faulty {

std::span<const BackendEntry> tampered_backends();

/// `example` with the last row never written where the call is such a one: a kernel that is wrong at one odd number.
std::unique_ptr<Backend> wrong_where(std::function<bool(const Call&)> such);

/// What the mistake is, in a few words; empty for a name that is none of these.
std::string_view tampered_description(std::string_view name);

}  // namespace attest::faulty
