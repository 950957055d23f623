#include "harness/base/launcher.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace attest {
namespace {

std::optional<int> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text) return std::nullopt;
  int number = 0;
  const std::string_view all(text);
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), number);
  if (error != std::errc() || end != all.data() + all.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::optional<LaunchedRank> launched_rank() {
  constexpr struct {
    const char *rank, *size;
  } kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},  // Open MPI's mpirun
                    {"PMI_RANK", "PMI_SIZE"},                          // MPICH's, and srun --mpi=pmi2
                    {"PMIX_RANK", "SLURM_NTASKS"}};                    // srun --mpi=pmix
  for (const auto& names : kLaunchers) {
    if (const std::optional<int> rank = number_in(names.rank))
      return LaunchedRank{*rank, number_in(names.size).value_or(0)};
  }
  return std::nullopt;
}

bool is_shown_on_terminal(int descriptor) {
  const std::optional<LaunchedRank> launched = launched_rank();
  if (!launched) return isatty(descriptor) != 0;
  if (launched->rank > 0) return false;
  // A launcher gives its ranks pipes, or terminals of its own, whatever it writes to itself. What this rank was told to
  // write to a file stays no terminal.
  struct stat own {};
  if (fstat(descriptor, &own) != 0 || !(S_ISFIFO(own.st_mode) || S_ISSOCK(own.st_mode) || isatty(descriptor) != 0))
    return false;
  const std::string place = "/proc/" + std::to_string(getppid()) + "/fd/" + std::to_string(descriptor);
  const int launchers = open(place.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (launchers < 0) return false;
  // The same stream is that of a script around this program, which the launcher started instead.
  struct stat theirs {};
  const bool shown = isatty(launchers) != 0 && fstat(launchers, &theirs) == 0 &&
                     (theirs.st_dev != own.st_dev || theirs.st_ino != own.st_ino);
  close(launchers);
  return shown;
}

bool is_of_launcher(std::string_view variable) {
  for (const std::string_view prefix : {"OMPI_", "OPAL_", "ORTE_", "PMIX_", "PMI_", "PMI2_", "PRTE_", "HYDRA_"}) {
    if (variable.starts_with(prefix)) return true;
  }
  return false;
}

std::vector<std::string> environment_without_launcher() {
  std::vector<std::string> kept;
  for (char** variable = environ; *variable; ++variable) {
    if (!is_of_launcher(*variable)) kept.emplace_back(*variable);
  }
  return kept;
}

}  // namespace attest
