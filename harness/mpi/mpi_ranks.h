// The ranks of an MPI job. The only part of the harness that needs MPI, and a library of its own.
#pragma once

#include <memory>

#include "harness/mpi/ranks.h"

namespace attest {

/// Starts MPI, and ends it with the object: then all ranks must come to that. To be called once, in the main thread, by
/// a process that a launcher started (harness/base/launcher.h). Throws UserError where MPI can't be had as it is
/// needed.
std::unique_ptr<Ranks> make_mpi_ranks();

}  // namespace attest
