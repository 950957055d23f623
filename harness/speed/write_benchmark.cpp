#include "harness/speed/write_benchmark.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "harness/base/interrupted.h"
#include "harness/base/machine.h"
#include "harness/speed/benchmark_file.h"
#include "harness/speed/google_runs.h"

namespace attest {

void write_benchmark(OutputFile& file, const std::vector<BenchCase>& cases, const BenchmarkContext& context) {
  const Machine machine = this_machine();
  const Roof& roof = context.roof;
  std::string command;
  for (const std::string& word : context.command) command += (command.empty() ? "" : " ") + word;
  std::vector<benchmark::BenchmarkReporter::Run> runs;
  for (const BenchCase& one : cases) runs.insert(runs.end(), one.runs->list.begin(), one.runs->list.end());
  benchmark::AddCustomContext("schema", std::to_string(kBenchmarkSchema));
  benchmark::AddCustomContext("attest", ATTEST_VERSION);
  benchmark::AddCustomContext("commit", build_commit());
  benchmark::AddCustomContext("cpu", machine.cpu);
  benchmark::AddCustomContext("build", machine.build);
  benchmark::AddCustomContext("command", command);
  benchmark::AddCustomContext("threads", std::to_string(context.settings.threads));
  benchmark::AddCustomContext("repetitions", std::to_string(context.settings.repetitions));
  benchmark::AddCustomContext("seed", std::to_string(context.settings.seed));
  benchmark::AddCustomContext("roof_fma_gflops_f32", fmt::format("{:.1f}", roof.fma_gflops_f32));
  benchmark::AddCustomContext("roof_fma_gflops_f64", fmt::format("{:.1f}", roof.fma_gflops_f64));
  benchmark::AddCustomContext("roof_copy_gbps", fmt::format("{:.1f}", roof.copy_gbps));
  benchmark::AddCustomContext("roof_read_gbps", fmt::format("{:.1f}", roof.read_gbps));
  for (const Identity& id : context.backends) {
    benchmark::AddCustomContext("backend_" + id.name, id.library + " on " + id.device);
  }
  if (interrupted) benchmark::AddCustomContext("interrupted", "true");
  benchmark::JSONReporter json;
  json.SetOutputStream(&file.stream());
  json.SetErrorStream(&file.stream());
  json.ReportContext(benchmark::BenchmarkReporter::Context());
  if (!runs.empty()) json.ReportRuns(runs);
  json.Finalize();
  file.finish();
}

}  // namespace attest
