#include "harness/speed/timing/google_samples.h"

#include <fmt/format.h>
#include <unistd.h>

#include "harness/base/crash_message.h"
#include "harness/base/interrupted.h"

namespace attest {
namespace {

class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration && !run.error_occurred) collected.push_back(run);
    }
  }
  std::vector<Run> collected;
};

/// Says every flag: what is not said comes from the environment, and could take samples away or write files.
void initialise_google_benchmark() {
  // Google Benchmark keeps a pointer to the program's name.
  static std::string words[] = {"attest",
                                "--benchmark_enable_random_interleaving=true",
                                "--benchmark_filter=.",
                                "--benchmark_list_tests=false",
                                "--benchmark_report_aggregates_only=false",
                                "--benchmark_display_aggregates_only=false",
                                "--benchmark_repetitions=1",
                                "--benchmark_min_time=0.5",
                                "--benchmark_min_warmup_time=0",
                                "--benchmark_out=",
                                "--benchmark_out_format=json",
                                "--benchmark_format=console",
                                "--benchmark_perf_counters=",
                                "--benchmark_context=",
                                "--v=0"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
}

/// One sample. Its number goes with it, since Google Benchmark reports them in another order than it takes them.
void take_one(Candidate& c, const UsefulWork& work, benchmark::State& state) {
  TakenSample taken;
  if (!interrupted && c.plan->wrong().empty()) {
    taken = c.plan->sample(static_cast<std::int64_t>(state.max_iterations), c.until_in_full);
    if (c.until_in_full > 0) c.until_in_full = taken.checked_in_full ? 0 : c.until_in_full - 1;
  }
  if (interrupted || !c.plan->wrong().empty()) {
    // Within the loop, where a skipped sample still counts as many runs as the others: Google Benchmark ends the
    // program where they differ.
    while (state.KeepRunning()) {
      state.SkipWithError("no speed");
      break;
    }
    return;
  }
  const double each = taken.seconds / static_cast<double>(state.max_iterations);
  while (state.KeepRunning()) state.SetIterationTime(each);
  state.counters["sample"] = static_cast<double>(c.taken.size());
  c.taken.push_back(taken);
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GFLOP/s"] = benchmark::Counter(work.operations / 1e9, rate);
  state.counters["GB/s"] = benchmark::Counter(work.bytes / 1e9, rate);
  if (taken.device > 0) state.counters["device_seconds"] = taken.device / static_cast<double>(state.iterations());
}

}  // namespace

void take_samples(std::vector<Candidate>& candidates, const std::string& case_line, const UsefulWork& work,
                  const BenchSettings& settings) {
  initialise_google_benchmark();
  benchmark::ClearRegisteredBenchmarks();
  const auto name_of_candidate = [&](const Candidate& c) { return c.plan->name() + "/" + case_line; };
  bool any = false;
  for (Candidate& c : candidates) {
    if (c.wanted <= 0 || !c.plan->wrong().empty()) continue;
    any = true;
    benchmark::RegisterBenchmark(
        name_of_candidate(c).c_str(),
        [&](benchmark::State& state) {
          if (settings.progress) {
            settings.progress(fmt::format("{}: {}, sample {}", case_line, c.plan->name(), c.taken.size() + 1));
          }
          const CrashContext under_way(c.plan->name(), case_line);
          take_one(c, work, state);
          state.SetLabel(case_line);
        })
        ->Iterations(static_cast<benchmark::IterationCount>(c.runs))
        ->Repetitions(c.wanted)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  Collector collector;
  if (any) benchmark::RunSpecifiedBenchmarks(&collector);
  benchmark::ClearRegisteredBenchmarks();

  const int processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  for (Candidate& c : candidates) {
    for (const auto& run : collector.collected) {
      if (run.run_name.function_name != name_of_candidate(c)) continue;
      const auto number = static_cast<std::size_t>(run.counters.at("sample").value);
      const Disturbance& disturbance = c.taken.at(number).disturbance;
      c.samples.push_back({run, disturbance, disturbed_by(disturbance, settings.threads, processors)});
      c.samples.back().run.cpu_accumulated_time = c.taken.at(number).cpu;  // it measured itself, who waited
    }
  }
}

}  // namespace attest
