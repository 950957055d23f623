// attest bench
#include "harness/speed/bench.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <optional>

#include "harness/base/machine.h"
#include "harness/base/output_file.h"
#include "harness/base/user_error.h"
#include "harness/cases/memory.h"
#include "harness/cases/suites.h"
#include "harness/cli/cli.h"
#include "harness/cli/selection.h"
#include "harness/isolation/backend_set.h"

namespace attest {
namespace {

std::vector<Case> load(const BenchOptions& options) {
  std::vector<Case> cases;
  for (const std::string& name : options.suites) {
    for (Case& one : load_suite(find_suite(name))) cases.push_back(std::move(one));
  }
  for (const std::string& line : options.cases) cases.push_back(case_from_argument(line));
  if (cases.empty()) throw UserError("nothing to time: name a case line or --suite");
  for (const Case& one : cases) {
    if (one.from_file) throw UserError(one.label + ": bench takes case lines; files are for check");
    check_memory(one.problem, one.label);
  }
  return cases;
}

/// Google Benchmark's own format, with the machine, its roof and the command as context.
void write_json(OutputFile& file, const std::vector<benchmark::BenchmarkReporter::Run>& runs, const Roof& roof,
                const BenchOptions& options, const std::vector<Backend*>& backends) {
  const Machine machine = this_machine();
  std::string command;
  for (const std::string& word : options.command) command += (command.empty() ? "" : " ") + word;
  benchmark::AddCustomContext("attest", ATTEST_VERSION);
  benchmark::AddCustomContext("commit", build_commit());
  benchmark::AddCustomContext("cpu", machine.cpu);
  benchmark::AddCustomContext("build", machine.build);
  benchmark::AddCustomContext("command", command);
  benchmark::AddCustomContext("threads", std::to_string(options.common.context().threads));
  benchmark::AddCustomContext("roof_fma_gflops_f32", fmt::format("{:.1f}", roof.fma_gflops_f32));
  benchmark::AddCustomContext("roof_fma_gflops_f64", fmt::format("{:.1f}", roof.fma_gflops_f64));
  benchmark::AddCustomContext("roof_read_gbps", fmt::format("{:.1f}", roof.read_gbps));
  for (const Backend* backend : backends) {
    const Identity id = backend->identity();
    benchmark::AddCustomContext("backend_" + id.name, id.library + " on " + id.device);
  }
  benchmark::JSONReporter json;
  json.SetOutputStream(&file.stream());
  json.SetErrorStream(&file.stream());
  json.ReportContext(benchmark::BenchmarkReporter::Context());
  if (!runs.empty()) json.ReportRuns(runs);
  json.Finalize();
  file.finish();
}

}  // namespace

int run_bench(const BenchOptions& options, std::span<const BackendEntry> registry) {
  const std::vector<Case> cases = load(options);
  const Filter filter(options.filter);
  const BackendSet backends(registry, split_names(options.common.backends), options.common.context());
  std::optional<OutputFile> file;
  if (!options.json.empty()) file.emplace(options.json);

  const BenchSettings settings{options.common.context().threads, options.repetitions, options.min_seconds};
  const Roof roof = measure_roof(settings.threads);
  const Machine machine = this_machine();
  fmt::print("{}, {} thread(s), {}\n", machine.cpu, settings.threads, machine.build);
  fmt::print("roof, measured now: {:.0f} GFLOP/s FMA in f32, {:.0f} in f64, {:.1f} GB/s reading\n", roof.fma_gflops_f32,
             roof.fma_gflops_f64, roof.read_gbps);
  for (const Unavailable& u : backends.unavailable()) fmt::print("{:<10} not available: {}\n", u.name, u.reason);

  std::vector<benchmark::BenchmarkReporter::Run> runs;
  std::size_t timed_lines = 0, wrong_lines = 0;
  for (const Case& one : cases) {
    std::vector<Backend*> chosen;
    for (Backend* backend : backends.all()) {
      if (filter.keeps(backend->identity().name + " " + one.label)) chosen.push_back(backend);
    }
    if (chosen.empty() || interrupted) continue;
    BenchCase result = bench_case(one, chosen, roof, settings);
    print_bench_table(result);
    for (const BenchLine& line : result.lines) {
      if (line.wrong.empty())
        ++timed_lines;
      else if (!line.wrong.starts_with("refused"))
        ++wrong_lines;
    }
    runs.insert(runs.end(), result.runs.begin(), result.runs.end());
  }
  if (file) write_json(*file, runs, roof, options, backends.all());
  if (interrupted) return kInterrupted;
  if (wrong_lines > 0) return kFailed;
  if (timed_lines == 0) {
    fmt::print(stderr, "attest: nothing was timed: the filter left no case, or every backend refused\n");
    return kNothingChecked;
  }
  return kOk;
}

}  // namespace attest
