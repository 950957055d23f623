#include "harness/speed/bench.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "backends/refusal.h"
#include "harness/base/statistics.h"
#include "harness/base/stopwatch.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/speed/google_runs.h"
#include "harness/verdict/plan_walk.h"
#include "harness/verdict/prepared_case.h"
#include "reference/case_line.h"
#include "reference/tensor_place.h"
#include "reference/work.h"

namespace attest {
namespace {

/// A backend with the plan that is checked, timed and checked again.
struct Candidate {
  Backend* backend;
  std::unique_ptr<Plan> plan;
  BenchLine line;
};

class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration) collected.push_back(run);
    }
  }
  std::vector<Run> collected;
};

double bytes_moved(const Call& p) {
  const auto elements = [](const TensorPlace& place) {
    double count = 1;
    for (std::int64_t n : place.shape) count *= static_cast<double>(n);
    return count;
  };
  const CallPlaces places = places_of(p);
  double bytes = 0;
  for (const TensorPlace* place : {&places.q, &places.k, &places.v, &places.out}) {
    bytes += elements(*place) * static_cast<double>(size_of(p.dtype));
  }
  if (places.mask)
    bytes += elements(*places.mask) * (p.mask->additive ? static_cast<double>(size_of(p.mask_dtype())) : 1);
  return bytes;
}

/// The walk once on `prepared`; the failure's sentence, or empty.
std::string verdict_of(const PreparedCase& prepared, Candidate& candidate) {
  const Verdict verdict = prepared.check(*candidate.backend, candidate.plan.get());
  candidate.line.error_over_bound = std::max(candidate.line.error_over_bound, verdict.error_over_bound.value_or(0));
  return verdict.status == Status::pass ? "" : std::string(name_of(verdict.status)) + ": " + verdict.reason;
}

void initialise_google_benchmark(const BenchSettings& settings) {
  // Google Benchmark keeps a pointer to the program's name.
  static std::vector<std::string> words;
  words = {"attest", "--benchmark_enable_random_interleaving=true",
           fmt::format("--benchmark_repetitions={}", settings.repetitions),
           fmt::format("--benchmark_min_time={}", settings.min_seconds)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
}

void register_candidate(Candidate& c, const std::string& case_line, double flops, double bytes) {
  benchmark::RegisterBenchmark((c.line.backend + "/" + case_line).c_str(),
                               [&c, case_line, flops, bytes](benchmark::State& state) {
                                 double device = 0;
                                 for (auto _ : state) {
                                   state.SetIterationTime(timed([&] { c.plan->run(); }));
                                   if (const auto time = c.plan->device_time())
                                     device += std::chrono::duration<double>(*time).count();
                                 }
                                 const auto rate = benchmark::Counter::kIsIterationInvariantRate;
                                 state.counters["GFLOP/s"] = benchmark::Counter(flops / 1e9, rate);
                                 state.counters["GB/s"] = benchmark::Counter(bytes / 1e9, rate);
                                 state.counters["error_over_bound"] = c.line.error_over_bound;
                                 if (device > 0)
                                   state.counters["device_seconds"] = device / static_cast<double>(state.iterations());
                                 state.SetLabel(case_line);
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

double total_walk(const PreparedCase& prepared, Plan& plan) {
  std::vector<double> samples;
  for (int n = 0; n < 3; ++n) {
    GuardedOutputs outputs(prepared.problem());
    const StepSeconds seconds = walk(plan, prepared.inputs(), &outputs);
    samples.push_back(seconds.upload + seconds.run + seconds.download);
  }
  return quantile(samples, 0.5);
}

}  // namespace

double BenchLine::median() const { return quantile(seconds, 0.5); }

double BenchLine::spread() const {
  const double middle = median();
  return middle > 0 ? (quantile(seconds, 0.75) - quantile(seconds, 0.25)) / middle : 0;
}

BenchCase bench_case(const Case& source, const std::vector<Backend*>& backends, const Roof& roof,
                     const BenchSettings& settings) {
  BenchCase result;
  const auto runs = std::make_shared<GoogleRuns>();
  result.case_line = source.label;
  const PreparedCase prepared(source, backends, settings.threads);
  // Other data of the same shape: a plan that keeps an old answer is found out.
  Case changed = source;
  changed.problem.set_seed(source.problem.data.seed + 1);
  changed.label = print_case(changed.problem);
  const PreparedCase other(changed, backends, settings.threads);

  std::vector<Candidate> candidates;
  for (Backend* backend : backends) {
    Candidate c{backend, nullptr, {}};
    c.line.backend = backend->identity().name;
    try {
      if (const auto refusal = refusal_of(*backend, source.problem))
        c.line.wrong = "refused: " + refusal->reason;
      else
        c.plan = make_plan(*backend, source.problem);
      if (c.plan) c.line.wrong = verdict_of(prepared, c);
    } catch (const std::exception& error) {
      c.line.wrong = std::string("threw: ") + error.what();
    }
    candidates.push_back(std::move(c));
  }

  const double flops = useful_operations(source.problem, prepared.inputs());
  const double bytes = bytes_moved(source.problem);
  initialise_google_benchmark(settings);
  benchmark::ClearRegisteredBenchmarks();
  bool any = false;
  for (Candidate& c : candidates) {
    if (!c.line.wrong.empty()) continue;
    register_candidate(c, source.label, flops, bytes);
    any = true;
  }
  Collector collector;
  if (any) benchmark::RunSpecifiedBenchmarks(&collector);

  const double peak = source.problem.dtype == DType::f64 ? roof.fma_gflops_f64 : roof.fma_gflops_f32;
  for (Candidate& c : candidates) {
    if (c.line.wrong.empty()) {
      c.line.total_seconds = total_walk(prepared, *c.plan);
      for (const PreparedCase* again : {&other, &prepared}) {
        const std::string wrong = verdict_of(*again, c);
        if (!wrong.empty()) c.line.wrong = "after timing, " + wrong;
      }
    }
    for (auto& run : collector.collected) {
      if (run.run_name.function_name != c.line.backend + "/" + source.label) continue;
      if (c.line.wrong.empty()) {
        const double seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
        c.line.seconds.push_back(seconds);
        run.counters["roof_fraction"] = flops / seconds / 1e9 / peak;
        run.counters["total_seconds"] = c.line.total_seconds;
        runs->list.push_back(run);
      }
    }
    if (c.line.wrong.empty()) {
      c.line.gflops = flops / c.line.median() / 1e9;
      c.line.gbps = bytes / c.line.median() / 1e9;
      c.line.roof_fraction = c.line.gflops / peak;
    }
    result.lines.push_back(std::move(c.line));
  }
  benchmark::ClearRegisteredBenchmarks();
  result.runs = runs;
  return result;
}

}  // namespace attest
