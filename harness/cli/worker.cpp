// attest worker: one backend in a process of its own. Started by IsolatedBackend alone.
#include "harness/backends/isolation/worker.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "harness/cli/command.h"

namespace attest {

void add_worker(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<WorkerOptions>();
  auto* sub = app.add_subcommand("worker", "One backend in a process of its own")->group("")->footer("");
  sub->add_option("backend", options->backend)->required();
  sub->add_option("--plugin", options->plugin);
  sub->add_option("--threads", options->threads);
  sub->add_option("--device", options->device);
  sub->add_option("--sandbox", options->sandbox);
  sub->add_option("--scratch", options->scratch);
  sub->callback([options, &invocation] { invocation.exit_code = run_worker(*options, invocation.registry); });
}

}  // namespace attest
