// attest shrink: the smallest case that still fails.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "harness/base/interrupted.h"
#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/cases/long_case.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/isolation/backend_set.h"
#include "harness/search/shrink_case.h"
#include "reference/case_line.h"

namespace attest {
namespace {

struct ShrinkOptions {
  BackendOptions backend;
  std::string what, out = "smallest.safetensors";  ///< out: where a file's smallest case goes
  double budget_seconds = 10;
};

int run(const ShrinkOptions& options, std::span<const BackendEntry> registry) {
  const Plugins plugins(options.backend.sources(), registry);
  const std::vector<std::string> names = options.backend.one("shrink looks at", plugins);
  const Case source = case_from_argument(options.what);
  announce_if_long(source.problem, source.label);
  const BackendSet backends(plugins.entries(), names, options.backend.context(), options.backend.isolation());
  Backend& backend = *backends.all().front();
  const int threads = options.backend.context().threads;

  const Verdict before = check_line(source, backend, threads);
  if (!is_failure(before)) {
    fmt::print("{}\n{}: there is no failure to shrink\n", printable_line(source.label), name_of(before.status));
    return before.status == Status::refused ? kNothingChecked : kOk;
  }
  fmt::print("{}\n  {}\n\n", printable_line(source.label), printable_line(before.reason));
  std::fflush(stdout);
  ProgressLine line;
  Progress progress;
  progress.unit = "smaller cases tried";
  const ShrunkCase shrunk = shrink_case(source, backend, threads, options.budget_seconds, options.out,
                                        [&](std::size_t tried, double seconds_left) {
                                          progress.done = tried;
                                          progress.seconds_left = seconds_left;
                                          line.draw(progress);
                                        });
  line.clear();
  fmt::print("{}\n  {}\n  {}\n{} smaller cases tried in {:.2f} s{}\n", print_case(shrunk.source.problem),
             printable_line(shrunk.verdict.reason), printable_line(shrunk.verdict.repro), shrunk.tried, shrunk.seconds,
             shrunk.finished ? "; none of the next smaller ones fails" : "; out of time, --budget gives more");
  return interrupted ? kInterrupted : kFailed;
}

}  // namespace

void add_shrink(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ShrinkOptions>();
  auto* sub = app.add_subcommand("shrink",
                                 "Example:\n  attest shrink \"heads=8 seq=65x300 dim=64 softcap=30\" --backend mine\n\n"
                                 "The smallest case that still fails, and the command that repeats it.");
  sub->add_option("case", options->what, "A case line or .safetensors file on which the backend fails")
      ->type_name("CASE")
      ->required();
  sub->add_option("--out", options->out, "Where the smallest case of a file goes, as a file")->type_name("FILE");
  add_backend_options(*sub, options->backend);
  add_plugin_options(*sub, options->backend);
  sub->add_option("--budget", options->budget_seconds, "Seconds after which to stop")->check(number_range(0.0, 3600.0));
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.registry); });
}

}  // namespace attest
