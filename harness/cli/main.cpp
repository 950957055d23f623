#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "backends/registry.h"
#include "harness/base/resting_threads.h"
#include "harness/cli/cli.h"
#include "harness/mpi/mpi_ranks.h"

namespace {

/// Threads of pools that wait for their next work spin for milliseconds, which is longer than most cases take: between
/// the runs of a backend they would keep the cores from the harness. Their policy is read when a program is loaded, so
/// this one starts anew. Benchmarks don't: a kernel's threads wait there as its users' do.
void start_with_idle_threads(int argc, char** argv) {
  constexpr std::array<std::string_view, 3> kCommands = {"check", "fuzz", "shrink"};
  if (argc < 2 || std::find(kCommands.begin(), kCommands.end(), argv[1]) == kCommands.end()) return;
  if (std::getenv("OPENBLAS_THREAD_TIMEOUT")) return;
  attest::have_waiting_threads_rest();
  // By its own path: under valgrind the link itself is valgrind's.
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) execv(program.c_str(), argv);
}

}  // namespace

int main(int argc, char** argv) {
  start_with_idle_threads(argc, argv);
#ifdef ATTEST_HAS_MPI
  const attest::JoinRanks join_ranks = attest::make_mpi_ranks;
#else
  const attest::JoinRanks join_ranks;
#endif
  return attest::run_command_line(argc, argv, attest::registered_backends(), join_ranks);
}
