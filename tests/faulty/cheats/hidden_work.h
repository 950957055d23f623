// Cheats that do all of the work, where nobody looks: on a device that isn't there, in short steps, in threads of a
// moment, in other processes. Each has an honest twin that looks much like it.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"

namespace attest::faulty {

/// One entry for each cheat and each twin. All compute with the correct loops of tests/faulty/faulty.cpp.
std::span<const BackendEntry> hidden_work_backends();

/// Whether the benchmark has to give it a speed.
bool is_honest_twin(std::string_view name);

/// The shortest time, in seconds by the kernel's clock, that one computation has taken in a backend of these since the
/// last call: what no speed may be far below.
double shortest_computation();

/// How many processors runs have really had since the last call: what they and their helpers computed, by each one's
/// own account, over the time that they took. 0 without a run.
double processors_taken();

}  // namespace attest::faulty
