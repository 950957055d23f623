#include "harness/speed/files/write_benchmark.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "harness/base/interrupted.h"
#include "harness/base/machine.h"
#include "harness/base/text.h"
#include "harness/speed/files/benchmark_file.h"
#include "harness/speed/timing/google_runs.h"

namespace attest {

namespace {

using Text = std::pair<std::string, std::string>;

/// The samples of one case, each with what is known of all.
std::vector<benchmark::BenchmarkReporter::Run> runs_of(const BenchCase& one) {
  std::vector<benchmark::BenchmarkReporter::Run> runs = one.runs->list;
  for (benchmark::BenchmarkReporter::Run& run : runs) {
    run.counters["roof_after_gflops"] = one.roof_after;
    run.counters["calibration_spread"] = one.calibration_spread;
    for (const BenchLine& line : one.lines) {
      if (run.run_name.function_name != line.backend + "/" + one.case_line) continue;
      run.counters["run_low_seconds"] = line.interval.low;
      run.counters["run_high_seconds"] = line.interval.high;
      run.counters["run_confidence"] = line.interval.confidence;
    }
  }
  return runs;
}

std::string dumped(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Who has no speed on which case, and why. No sample tells of them.
nlohmann::ordered_json without_speed(const std::vector<BenchCase>& cases) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BenchCase& one : cases) {
    for (const BenchLine& line : one.lines) {
      if (line.wrong.empty()) continue;
      list.push_back({{"case", one.case_line},
                      {"backend", line.backend},
                      {"cause", name_of(line.wrong.kind)},
                      {"reason", line.wrong.text}});
    }
  }
  return list;
}

/// Whose process was not the one with the clock, and what was around it.
std::vector<Text> about_processes(const std::vector<BenchCase>& cases) {
  std::set<std::string> apart, sandboxes;
  for (const BenchCase& one : cases) {
    for (const BenchLine& line : one.lines) {
      if (line.apart) apart.insert(line.backend);
      if (!line.sandbox.empty()) sandboxes.insert(line.sandbox);
    }
  }
  const auto joined = [](const std::set<std::string>& texts, const char* between) {
    return join_texts({texts.begin(), texts.end()}, between);
  };
  return {{kTimedApartKey, joined(apart, ",")}, {kSandboxKey, joined(sandboxes, "; ")}};
}

/// Google Benchmark's context with ours at its end. Its own way to add to it, AddCustomContext, keeps the first value
/// of a key for as long as the process lives.
std::string with_context(const std::string& head, const std::vector<Text>& ours, const std::vector<BenchCase>& cases,
                         const std::optional<SweptCurves>& sweep) {
  std::string text;
  for (const auto& [key, value] : ours) text += ",\n    " + dumped(key) + ": " + dumped(value);
  text += ",\n    " + dumped(kNoSpeedKey) + ": " + dumped(without_speed(cases));
  if (sweep) text += ",\n    " + dumped(kSweepKey) + ": " + dumped(to_json(*sweep));
  std::string whole = head;
  return whole.insert(head.rfind("\n  },"), text);
}

}  // namespace

void write_benchmark(std::ostream& out, const std::vector<BenchCase>& cases, const BenchmarkContext& context) {
  const Machine machine = this_machine();
  const Roof& roof = context.roof;
  std::vector<benchmark::BenchmarkReporter::Run> runs;
  for (const BenchCase& one : cases) {
    for (benchmark::BenchmarkReporter::Run& run : runs_of(one)) runs.push_back(std::move(run));
  }
  std::vector<Text> ours = {{"schema", std::to_string(kBenchmarkSchema)},
                            {"attest", ATTEST_VERSION},
                            {"commit", build_commit()},
                            {"cpu", machine.cpu},
                            {"build", machine.build},
                            {"command", shell_line(context.command)},
                            {"threads", std::to_string(context.settings.threads)},
                            {"repetitions", std::to_string(context.settings.repetitions)},
                            {"seed", std::to_string(context.settings.seed)},
                            {"roof_fma_gflops_f32", fmt::format("{:.1f}", roof.fma_gflops_f32)},
                            {"roof_fma_gflops_f64", fmt::format("{:.1f}", roof.fma_gflops_f64)},
                            {"roof_copy_gbps", fmt::format("{:.1f}", roof.copy_gbps)},
                            {"roof_read_gbps", fmt::format("{:.1f}", roof.read_gbps)}};
  for (const Identity& id : context.backends) ours.emplace_back("backend_" + id.name, description(id));
  for (Text& text : about_processes(cases)) ours.push_back(std::move(text));
  if (interrupted) ours.emplace_back("interrupted", "true");
  benchmark::JSONReporter json;
  std::ostringstream head;
  json.SetOutputStream(&head);
  json.SetErrorStream(&head);
  json.ReportContext(benchmark::BenchmarkReporter::Context());
  out << with_context(head.str(), ours, cases, context.sweep);
  json.SetOutputStream(&out);
  json.SetErrorStream(&out);
  if (!runs.empty()) json.ReportRuns(runs);
  json.Finalize();
}

}  // namespace attest
