// Commands that the ranks of an MPI job do together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "harness/base/fingerprint.h"
#include "harness/base/launcher.h"
#include "harness/base/machine.h"
#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/mpi/agreement.h"
#include "harness/mpi/processors.h"
#include "harness/mpi/ranks.h"

namespace attest {
namespace {

/// What has to hold before there are backends.
void begin_job(Ranks& ranks, BackendOptions& options, Oversubscription policy) {
  require_same(ranks, {{"a build of attest", build_commit() + ", " + fingerprint_of("/proc/self/exe")}},
               {{"a build of attest", "install the same on every machine"}});
  if (ranks.size() % options.ranks_per_case != 0) {
    throw CommonError(fmt::format("--ranks-per-case {}: {} rank(s) make no whole groups; start a multiple of {}",
                                  options.ranks_per_case, ranks.size(), options.ranks_per_case));
  }
  if (options.threads == 0) options.threads = fair_threads(places_of_ranks(ranks, 1), ranks.rank());
  const std::optional<std::string> oversubscribed = oversubscription(places_of_ranks(ranks, options.threads));
  if (oversubscribed && policy == Oversubscription::is_refused)
    throw CommonError(*oversubscribed + ": times would be of their waiting; --threads says how many each has");
  if (oversubscribed && ranks.rank() == 0)
    fmt::print(stderr, "attest: {}: they wait for one another; --threads says how many each has\n", *oversubscribed);
  // Of several devices each rank takes its own. Workers inherit it.
  setenv("ATTEST_OPENCL_NUMBER", std::to_string(ranks.local_rank()).c_str(), 0);
}

/// The others of a group wait for its first rank until this is gone.
class Release {
 public:
  explicit Release(Ranks& ranks) : ranks_(ranks) {}
  ~Release() { ranks_.release(); }
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;

 private:
  Ranks& ranks_;
};

int run_in_group(Ranks& ranks, const Invocation& invocation, BackendOptions& options,
                 const std::function<int(Ranks*)>& command) {
  options.group = &ranks.split(options.ranks_per_case);
  if (options.group->rank > 0) {
    ranks.take_part(options.context(), invocation.registry);
    return kOk;
  }
  const Release release(ranks);
  return command(&ranks);
}

}  // namespace

void add_ranks_option(CLI::App& app, BackendOptions& options) {
  app.add_option("--ranks-per-case", options.ranks_per_case,
                 "Under mpirun: so many ranks run each case together, for backends that span processes; default: 1")
      ->check(CLI::Range(1, 65536));
}

int run_on_ranks(const Invocation& invocation, BackendOptions& options, Oversubscription policy,
                 const std::function<int(Ranks*)>& command) {
  const std::optional<LaunchedRank> launched = launched_rank();
  if (!launched && options.ranks_per_case > 1) {
    throw UserError(
        fmt::format("--ranks-per-case {0}: there is one process; start it with mpirun -n {0}", options.ranks_per_case));
  }
  if (!launched) return command(nullptr);
  if (!*invocation.join_ranks) {
    if (launched->size == 1 && options.ranks_per_case == 1) return command(nullptr);
    throw UserError(
        "a launcher of MPI started this program as one of several, and it was built without MPI: build it where "
        "libopenmpi-dev is installed, or split the run with --shard");
  }
  const std::unique_ptr<Ranks> ranks = (*invocation.join_ranks)();
  try {
    begin_job(*ranks, options, policy);
    return options.ranks_per_case > 1 ? run_in_group(*ranks, invocation, options, command) : command(ranks.get());
  } catch (const CommonError&) {
    throw;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attest: rank %d: %s; all ranks end\n", ranks->rank(), printable_line(error.what()).c_str());
    ranks->abort(dynamic_cast<const OutputError*>(&error) ? kFailed : kBadRequest);
  }
  return kBadRequest;
}

}  // namespace attest
