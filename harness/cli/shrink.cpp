// attest shrink: the smallest case that still fails.
#include <fmt/format.h>

#include <chrono>

#include "harness/backend_set.h"
#include "harness/cli/cli.h"
#include "harness/shrink_case.h"
#include "harness/shrink_file.h"
#include "harness/user_error.h"
#include "reference/case_line.h"

namespace attest {

namespace {

/// A file's case: written as a file again.
int shrink_to_file(const Case& source, Backend& backend, int threads, const ShrinkOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const auto plain = plain_file(source);
  if (!plain)
    throw UserError(options.what + ": files with pages, packed sequences, caches, dropout or states are not shrunk");
  const auto verdict_of = [&](const Case& one) { return check_line(one, backend, threads); };
  if (!is_failure(verdict_of(case_from_tensors(*plain, options.out)))) {
    throw UserError(options.what +
                    ": the failure is one against the file's own results, or of its layout, and goes "
                    "away without them");
  }
  const ShrunkFile shrunk = shrink_file(
      *plain, [&](const Case& one) { return is_failure(verdict_of(one)); },
      [&] { return !interrupted && seconds() < options.budget_seconds; });
  write_safetensors(options.out, shrunk.file);
  const Case small = case_from_file(options.out);
  const Verdict verdict = verdict_of(small);
  fmt::print("{}\n  {}\n  {}\n{} smaller cases tried in {:.2f} s{}\n", print_case(small.problem), verdict.reason,
             verdict.repro, shrunk.tried, seconds(),
             shrunk.finished ? "; none of the next smaller ones fails" : "; out of time, --budget gives more");
  return interrupted ? kInterrupted : kFailed;
}

}  // namespace

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
  if (source.from_file) return shrink_to_file(source, backend, threads, options);
  const ShrunkCase shrunk = shrink_case(source, backend, threads, options.budget_seconds);
  fmt::print("{}\n  {}\n  {}\n{} smaller cases tried in {:.2f} s{}\n", shrunk.source.label, shrunk.verdict.reason,
             shrunk.verdict.repro, shrunk.tried, shrunk.seconds,
             shrunk.finished ? "; none of the next smaller ones fails" : "; out of time, --budget gives more");
  return interrupted ? kInterrupted : kFailed;
}

}  // namespace attest
