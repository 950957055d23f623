// What launchers of MPI, mpirun or srun, tell the processes that they start, by their environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// This process among those of its job.
struct LaunchedRank {
  int rank = 0;
  int size = 0;  ///< 0: the launcher does not say
};

/// nullopt where no launcher of MPI started this process: under Slurm alone, without its PMI, it is none.
std::optional<LaunchedRank> launched_rank();

/// Whether what is written to this descriptor is shown on a terminal. A rank's goes through its launcher, on this
/// machine the process that started it; only what rank 0 writes is for people.
bool is_shown_on_terminal(int descriptor);

/// Whether "NAME=value" is what makes a process a rank of the job: what a rank starts must not take itself for one.
bool is_of_launcher(std::string_view variable);

/// The environment of this process, without what is the launcher's.
std::vector<std::string> environment_without_launcher();

}  // namespace attest
