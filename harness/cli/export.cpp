// attest export: cases with their expected values and bounds, for implementations that attest can't run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <memory>

#include "harness/backends/set/backend_set.h"
#include "harness/base/interrupted.h"
#include "harness/base/machine.h"
#include "harness/base/output_file.h"
#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/memory.h"
#include "harness/cli/command.h"
#include "harness/cli/number_range.h"
#include "harness/run/bundle.h"
#include "harness/run/case_lists.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

struct ExportRequest {
  BackendOptions backend;
  CaseNames cases;
  std::string filter, shard, out;
  double limit_gib = 1;
};

/// A case of the bundle, and what is stated of it.
struct Exported {
  const Case* source;
  BundleCase described;
  Answers stated;
};

std::string size_text(double bytes) {
  return bytes < 1e6 ? fmt::format("{:.0f} KB", bytes / 1e3 + 0.5) : fmt::format("{:.1f} MB", bytes / 1e6);
}

/// What the backend takes of the cases that the filter keeps; numbered as they come.
std::vector<Exported> cases_of(const std::vector<CaseList>& lists, const ExportRequest& request,
                               const Backend& backend) {
  const Filter filter(request.filter);
  std::vector<Exported> taken;
  std::size_t refused = 0;
  for (const CaseList& list : lists) {
    for (const Case& one : list.cases) {
      if (!filter.keeps(backend.identity().name + " " + one.label)) continue;
      if (one.from_file) throw UserError(one.label + ": a file holds its data already; export takes case lines");
      Answers stated = ask(backend, one.problem);
      if (stated.refusal) {
        ++refused;
        continue;
      }
      check_memory(one.problem, one.label, 2);
      taken.push_back({&one, describe(one, taken.size() + 1, list.suite), std::move(stated)});
    }
  }
  if (refused > 0)
    fmt::print("{} case{} left out, which {} refuses\n", refused, refused == 1 ? "" : "s", backend.identity().name);
  if (taken.empty()) throw UserError("the filter or the backend leaves no case to export");
  return taken;
}

/// Makes the folder, or goes on with one that holds this bundle's list. Throws UserError for any other one.
void begin_folder(const fs::path& folder, const std::string& list) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw UserError("--out " + folder.string() + ": " + error.message() + "; name another folder");
  const fs::path path = folder / kBundleList;
  if (fs::exists(path)) {
    std::ifstream file(path, std::ios::binary);
    if (std::string(std::istreambuf_iterator<char>(file), {}) == list) return;
    throw UserError(folder.string() + ": it holds another bundle; name another folder, or remove this one");
  }
  if (!fs::is_empty(folder)) throw UserError(folder.string() + ": the folder is not empty; name another one");
  OutputFile file(path);
  file.write(list);
  file.finish();
}

int run(const ExportRequest& request, std::span<const BackendEntry> registry) {
  const Plugins plugins(request.backend.sources(), registry, request.backend.limits());
  const std::vector<std::string> name = request.backend.one("export takes the statements of", plugins);
  const BackendSet backends(plugins.entries(), name, request.backend.context(), request.backend.isolation());
  const Backend& backend = *backends.all().front();
  const std::vector<CaseList> lists = load_cases(request.cases);
  if (lists.empty()) throw UserError("nothing to export: name a case line, --suite or --suite-file");
  const std::vector<Exported> cases = cases_of(lists, request, backend);

  Bundle bundle{ATTEST_VERSION, build_commit(), backend.identity().name, {}};
  CaseList described;
  for (const Exported& one : cases) {
    bundle.cases.push_back(one.described);
    described.cases.push_back(*one.source);
  }
  fmt::print("{} case{}, {}, bounds for what {} states: {}\n", cases.size(), cases.size() == 1 ? "" : "s",
             size_text(bundle.bytes()), bundle.stated_by, printable_line(request.out));
  if (bundle.bytes() > request.limit_gib * 0x1p30) {
    throw UserError(fmt::format("that is more than {} GiB; --limit {:.0f} allows it", request.limit_gib,
                                bundle.bytes() / 0x1p30 + 1));
  }
  const std::vector<bool> own = own_cases(Shard(request.shard), {described});
  begin_folder(request.out, bundle.text());

  ProgressLine line;
  Progress progress;
  progress.unit = "cases written";
  for (std::size_t n = 0; n < cases.size() && !interrupted; ++n) {
    const fs::path path = fs::path(request.out) / cases[n].described.file;
    // A file gets its name when it is complete: the same command goes on where it was ended.
    if (!own[n] || fs::exists(path)) continue;
    write_safetensors(path, bundle_file(*cases[n].source, cases[n].stated, request.backend.context().threads));
    ++progress.done;
    line.draw(progress);
  }
  line.clear();
  if (!interrupted) return kOk;
  fmt::print(stderr, "attest: interrupted; the same command goes on\n");
  return kInterrupted;
}

}  // namespace

void add_export(CLI::App& app, Invocation& invocation) {
  const auto request = std::make_shared<ExportRequest>();
  auto* sub =
      add_command(app, "export",
                  "Write cases with inputs, expected values and a bound for each element to a folder, for "
                  "implementations that run elsewhere: simulators, devices. `attest verify` judges their answers.",
                  "attest export --suite smoke --backend example --out bundle");
  sub->add_option("case", request->cases.arguments, "Case lines; - reads them from standard input")->type_name("CASE");
  sub->add_option("--suite", request->cases.suites, "A committed suite by name; may be repeated")->type_name("SUITE");
  sub->add_option("--suite-file", request->cases.suite_files, "Anyone's file of case lines; may be repeated")
      ->type_name("FILE");
  sub->add_option("--out", request->out, "The folder")->type_name("FOLDER")->required();
  add_backend_options(*sub, request->backend, BackendCount::one);
  add_plugin_options(*sub, request->backend);
  sub->add_option("--filter", request->filter, "ECMAScript expression searched in \"backend case-line\"");
  sub->add_option("--share", request->cases.share, "n/m: so much of each suite, drawn by --seed: 1/8 of matrix");
  sub->add_option("--seed", request->cases.seed, "Of --share and of generated suites: the same seed draws the same");
  sub->add_option("--shard", request->shard,
                  "i/n: write the files of the i-th of n parts alone; all parts may share the folder");
  sub->add_option("--limit", request->limit_gib, "GiB that the bundle may have; default: 1")
      ->check(number_range(0.0, 1e6));
  sub->callback([request, &invocation] { invocation.exit_code = run(*request, invocation.registry); });
}

}  // namespace attest
