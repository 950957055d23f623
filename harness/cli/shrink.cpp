// attest shrink: the smallest case that still fails.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "harness/backends/set/backend_set.h"
#include "harness/base/interrupted.h"
#include "harness/base/stopwatch.h"
#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/case_arguments.h"
#include "harness/cases/long_case.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/search/neighbours.h"
#include "harness/search/shrink_case.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

constexpr double kNeighbourSeconds = 2;

struct ShrinkRequest {
  BackendOptions backend;
  IsolationFlags isolation;
  std::vector<std::string> words;            ///< one case, or two the second of which fails after the first
  std::string out = "smallest.safetensors";  ///< where a file's smallest case goes
  std::string steps;                         ///< of three plans, as `check` prints them
  double budget_seconds = 10;
};

int run(const ShrinkRequest& options, std::span<const BackendEntry> registry) {
  const Plugins plugins(options.backend.sources(), registry, options.backend.limits());
  const std::vector<std::string> names = options.backend.one("shrink looks at", plugins);
  const std::vector<std::string> cases = joined_arguments(options.words);
  if (cases.size() > 2) throw UserError("one case is wanted, or two: \"" + cases[2] + "\" is another");
  const Case source = case_from_argument(cases.back());
  std::optional<Case> earlier;
  if (cases.size() > 1) earlier = case_from_argument(cases.front());
  if (earlier && (earlier->from_file || source.from_file))
    throw UserError("shrink takes two cases as lines; of files it takes one");
  announce_if_long(source.problem, source.label);
  const std::optional<IsolationOptions> isolation = options.isolation.options(options.backend);
  BackendSet backends(plugins.entries(), names, options.backend.context(), isolation);
  if (!isolation) backends.isolate_fresh({});
  Backend& backend = *backends.all().front();
  const int threads = options.backend.context().threads;
  const MakeFresh fresh = [&] { return backends.fresh(names.front()); };

  if (earlier) meet(backend, *earlier);
  const Verdict before = diagnose_line(source, backend, threads, steps_from_text(options.steps));
  if (!is_failure(before)) {
    fmt::print("{}\n{}: there is no failure to shrink\n", printable_line(source.label), name_of(before.status));
    return before.status == Status::refused ? kNothingChecked : kOk;
  }
  fmt::print("{}\n  {}\n\n", printable_line(source.label), printable_line(before.reason));
  std::fflush(stdout);
  ProgressLine line;
  Progress progress;
  progress.unit = "smaller cases tried";
  const auto tell = [&](std::size_t tried, double seconds_left) {
    progress.done = tried;
    progress.seconds_left = seconds_left;
    line.draw(progress);
  };
  ShrunkCase shrunk;
  if (earlier) shrunk = shrink_pair(*earlier, source, threads, options.budget_seconds, fresh, tell);
  if (!earlier || !is_failure(shrunk.verdict))  // wrong by itself, too
    shrunk = shrink_case(source, backend, threads, options.budget_seconds,
                         {options.out, tell, fresh, steps_from_text(before.steps)});
  line.clear();
  if (!is_failure(shrunk.verdict)) {
    fmt::print("right when it is run again by itself: there is no failure to shrink\n");
    return kFailed;
  }
  fmt::print("{}\n  {}\n  {}\n{} smaller cases tried in {:.2f} s{}\n", print_case(shrunk.source.problem),
             printable_line(shrunk.verdict.reason), printable_line(shrunk.verdict.repro), shrunk.tried, shrunk.seconds,
             shrunk.finished ? "; none of the next smaller ones fails" : "; out of time, --budget gives more");
  if (!shrunk.verdict.not_needed.empty()) fmt::print("not needed: {}\n", join_texts(shrunk.verdict.not_needed, ", "));
  if (!shrunk.verdict.after.empty() || shrunk.source.from_file) return interrupted ? kInterrupted : kFailed;
  const Stopwatch spent;
  const Neighbours around = neighbours_of(
      shrunk.source.problem,
      [&](const Problem& problem) { return check_line(case_from_line(print_case(problem)), backend, threads); },
      [&] { return !interrupted && spent.seconds() < kNeighbourSeconds; });
  fmt::print("{}", text_of(around));
  return interrupted ? kInterrupted : kFailed;
}

}  // namespace

void add_shrink(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ShrinkRequest>();
  auto* sub = add_command(app, "shrink", "The smallest case that still fails, and the command that repeats it.",
                          "attest shrink \"heads=8 seq=65x300 dim=64 softcap=30\" --backend mine");
  sub->add_option("case", options->words,
                  "A case line or .safetensors file on which the backend fails, or two lines the second of which fails "
                  "after the first")
      ->type_name("CASE")
      ->required();
  sub->add_option("--out", options->out, "Where the smallest case of a file goes, as a file")->type_name("FILE");
  add_steps_option(*sub, options->steps);
  add_backend_options(*sub, options->backend, BackendCount::one);
  add_plugin_options(*sub, options->backend);
  add_isolation_options(*sub, options->backend, options->isolation);
  sub->add_option("--budget", options->budget_seconds, "Seconds after which to stop")->check(number_range(0.0, 3600.0));
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.registry); });
}

}  // namespace attest
