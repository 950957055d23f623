// attest's command line under mpirun, all ranks as one group: for the distributed backends, and for faulty variants of
// them. mpirun -n 2 grouped check --suite smoke --backend ring
#include <mpi.h>

#include <vector>

#include "backends/group.h"
#include "backends/registry.h"
#include "harness/cli/cli.h"

namespace attest {
namespace {

/// The backends of the build, each made with the group.
std::vector<BackendEntry> grouped_backends(const Group& group) {
  std::vector<BackendEntry> entries(registered_backends().begin(), registered_backends().end());
  for (BackendEntry& entry : entries) {
    if (!entry.make) continue;
    entry.make = [make = entry.make, &group](Context context) {
      context.group = &group;
      return make(context);
    };
  }
  return entries;
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm communicator = MPI_COMM_WORLD;
  attest::Group group{0, 1, &communicator};
  MPI_Comm_rank(communicator, &group.rank);
  MPI_Comm_size(communicator, &group.size);
  const std::vector<attest::BackendEntry> entries = attest::grouped_backends(group);
  int status = 0;
  if (group.rank == 0) {
    status = attest::run_command_line(argc, argv, entries);
    attest::release(group);
  } else {
    attest::take_part({1, "", &group}, entries);
  }
  MPI_Finalize();
  return status;
}
