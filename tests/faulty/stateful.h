// Deliberately wrong backends of the third kind: `example`, right for any case by itself, with something kept where it
// mustn't be: of an earlier upload, run, download, plan or thread.
#pragma once

#include <span>

#include "backends/backend.h"

namespace attest::faulty {

/// Each is caught by the walk of a plan alone.
std::span<const BackendEntry> stateful_backends();

/// Right with as many threads as there are cores, wrong with more: caught where a run makes its backends twice.
const BackendEntry& oversubscribed_backend();

/// What the mistake is, in a few words; empty for a name that is none of these.
std::string_view stateful_description(std::string_view name);

}  // namespace attest::faulty
