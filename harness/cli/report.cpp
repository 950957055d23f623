// attest report: a page of results.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/output_file.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "harness/page/kill_table.h"
#include "harness/page/page.h"
#include "harness/page/speed_charts.h"
#include "harness/speed/files/benchmark_file.h"

namespace attest {
namespace {

constexpr const char* kKillPicture = "kills";

struct ReportOptions {
  std::vector<std::string> files;
  std::string out, picture, svg;
};

void write_page(const std::string& path, const std::string& text) {
  OutputFile page(path);
  page.write(text);
  page.finish();
}

int run(const ReportOptions& options, const std::vector<std::string>& words) {
  if (options.picture.empty() != options.svg.empty()) throw UserError("report: --picture and --svg go together");
  if (options.out.empty() == options.svg.empty())
    throw UserError("report: name the page with --out, or a picture with --svg");
  if (!options.svg.empty()) {
    if (options.files.size() != 1) throw UserError("report: --picture draws one file of results");
    if (is_same_output(options.files.front(), options.svg))
      throw UserError(options.svg + ": the picture would take the place of its results");
    const std::filesystem::path file = options.files.front();
    write_page(options.svg, options.picture == kKillPicture ? kill_table_svg(read_kill_table(file))
                                                            : picture_of(read_benchmark(file), options.picture));
    return kOk;
  }
  if (options.files.empty()) throw UserError("report: name files of results; see `attest report --help`");
  const std::vector<std::filesystem::path> paths(options.files.begin(), options.files.end());
  for (const std::filesystem::path& path : paths) {
    if (is_same_output(path, options.out))
      throw UserError(options.out + ": the page would take the place of its results");
  }
  write_page(options.out, results_page(read_results(paths), words));
  return kOk;
}

}  // namespace

void add_report(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ReportOptions>();
  auto* sub =
      add_command(app, "report",
                  "One page of results to look at: any mix of files of `check --json`, `bench --json`, `compare "
                  "--json` and `judge DIR --json`. It loads nothing from anywhere.",
                  "attest report matrix.jsonl bench.json --out page.html");
  sub->add_option("files", options->files, "Files of results");
  sub->add_option("--out", options->out, "The page, HTML");
  sub->add_option(
      "--picture", options->picture,
      "Instead of a page: roofline, peers or errors of a file of `bench --json`, kills of one of `mutants --json`");
  sub->add_option("--svg", options->svg, "The picture");
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.words); });
}

}  // namespace attest
