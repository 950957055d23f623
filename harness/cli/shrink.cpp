// attest shrink: the smallest case that still fails.
#include <fmt/format.h>

#include "harness/base/user_error.h"
#include "harness/cli/cli.h"
#include "harness/isolation/backend_set.h"
#include "harness/search/shrink_case.h"
#include "reference/case_line.h"

namespace attest {

int run_shrink(const ShrinkOptions& options, std::span<const BackendEntry> registry) {
  const std::vector<std::string> names = split_names(options.common.backends);
  if (names.size() != 1) throw UserError("shrink looks at one backend: --backend NAME");
  const Case source = case_from_argument(options.what);
  const BackendSet backends(registry, names, options.common.context());
  Backend& backend = *backends.all().front();
  const int threads = options.common.context().threads;

  const Verdict before = check_line(source, backend, threads);
  if (!is_failure(before)) {
    fmt::print("{}\n{}: there is no failure to shrink\n", source.label, name_of(before.status));
    return before.status == Status::refused ? kNothingChecked : kOk;
  }
  fmt::print("{}\n  {}\n\n", source.label, before.reason);
  const ShrunkCase shrunk = shrink_case(source, backend, threads, options.budget_seconds, options.out);
  fmt::print("{}\n  {}\n  {}\n{} smaller cases tried in {:.2f} s{}\n", print_case(shrunk.source.problem),
             shrunk.verdict.reason, shrunk.verdict.repro, shrunk.tried, shrunk.seconds,
             shrunk.finished ? "; none of the next smaller ones fails" : "; out of time, --budget gives more");
  return interrupted ? kInterrupted : kFailed;
}

}  // namespace attest
