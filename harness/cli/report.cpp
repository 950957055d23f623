// attest report: a page of results.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/output_file.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "harness/page/page.h"

namespace attest {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  std::string out;
};

int run(const ReportOptions& options, const std::vector<std::string>& words) {
  if (options.files.empty()) throw UserError("report: name files of results; see `attest report --help`");
  const std::vector<std::filesystem::path> paths(options.files.begin(), options.files.end());
  for (const std::filesystem::path& path : paths) {
    if (is_same_output(path, options.out))
      throw UserError(options.out + ": the page would take the place of its results");
  }
  const ResultFiles results = read_results(paths);
  OutputFile page(options.out);
  page.write(results_page(results, words));
  page.finish();
  return kOk;
}

}  // namespace

void add_report(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ReportOptions>();
  auto* sub =
      app.add_subcommand("report",
                         "Example:\n  attest report matrix.jsonl bench.json --out page.html\n\n"
                         "One page of results to look at: any mix of files of `check --json`, `bench --json` and\n"
                         "`compare --json`. It loads nothing from anywhere.");
  sub->add_option("files", options->files, "Files of results");
  sub->add_option("--out", options->out, "The page, HTML")->required();
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.words); });
}

}  // namespace attest
