#include "harness/speed/timing/bench.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "harness/backends/isolation/isolated_backend.h"
#include "harness/base/crash_message.h"
#include "harness/base/interrupted.h"
#include "harness/base/statistics.h"
#include "harness/base/stopwatch.h"
#include "harness/speed/machine/hand_over.h"
#include "harness/speed/machine/thread_pools.h"
#include "harness/speed/samples/sample_interval.h"
#include "harness/speed/timing/cold_caches.h"
#include "harness/speed/timing/google_samples.h"
#include "harness/speed/timing/timed_apart.h"
#include "reference/call/tensor_table.h"
#include "reference/operators/operator.h"

namespace attest {
namespace {

struct BytesMoved {
  double in = 0, out = 0;
};

BytesMoved bytes_moved(const Call& p) {
  const auto bytes_of = [&](TensorId id) {
    double count = 1;
    for (std::int64_t n : stored_shape(p, id)) count *= static_cast<double>(n);
    return count * static_cast<double>(format_of(type_of(p, id)).bits) / 8;
  };
  BytesMoved bytes;
  for (const TensorId id :
       {TensorId::q, TensorId::k, TensorId::v, TensorId::mask, TensorId::saved_o, TensorId::saved_lse, TensorId::dout,
        TensorId::dlse, TensorId::part_o, TensorId::part_lse, TensorId::q_rope, TensorId::k_rope, TensorId::q_scales,
        TensorId::k_scales, TensorId::v_scales}) {
    if (has_tensor(p, id)) bytes.in += bytes_of(id);
  }
  for (const TensorId id :
       {TensorId::out, TensorId::dq, TensorId::dk, TensorId::dv, TensorId::dmask, TensorId::dsinks}) {
    if (has_tensor(p, id)) bytes.out += bytes_of(id);
  }
  return bytes;
}

/// Disturbed samples are taken again, of each candidate at most a third as many as were asked for.
void repeat_disturbed(std::vector<Candidate>& candidates, const Case& source, const UsefulWork& work,
                      const BenchSettings& settings) {
  bool any = false;
  for (Candidate& c : candidates) {
    const auto disturbed = std::count_if(c.samples.begin(), c.samples.end(),
                                         [](const Sample& sample) { return !sample.disturbed.empty(); });
    c.wanted = std::min(static_cast<int>(disturbed), (settings.repetitions + 2) / 3);
    any = any || c.wanted > 0;
  }
  if (any && !interrupted) take_samples(candidates, source.label, work, settings);
}

/// Where a case may take no longer there are still so many samples.
constexpr int kFewestRepetitions = 3;

/// Fewer repetitions where the samples of all candidates together would take too long. `round`: what one of each takes.
void shorten(BenchSettings& settings, double round, std::vector<Candidate>& candidates) {
  if (settings.most_seconds <= 0 || round <= 0) return;
  const double affordable = std::clamp(settings.most_seconds / round, static_cast<double>(kFewestRepetitions), 1e6);
  settings.repetitions = std::min(settings.repetitions, static_cast<int>(affordable));
  for (Candidate& c : candidates) {
    c.wanted = std::min(c.wanted, settings.repetitions);
    c.until_in_full = std::min(c.until_in_full, settings.repetitions);
  }
}

constexpr int kColdRuns = 5;

void run_cold(std::vector<Candidate>& candidates, int threads, BenchCase& result) {
  result.evicted_bytes = static_cast<double>(ColdCaches(threads).bytes());
  for (int round = 0; round < kColdRuns; ++round) {
    for (Candidate& c : candidates) {
      if (c.plan->wrong().empty() && !interrupted) c.plan->run_cold(threads);
    }
  }
}

/// The samples that count. Disturbed ones do only where fewer than half of those asked for are undisturbed; then the
/// line says what disturbed most of them.
std::vector<const Sample*> kept_samples(const Candidate& c, const BenchSettings& settings, BenchLine& line) {
  std::vector<const Sample*> kept, all;
  std::string disturbed;
  for (const Sample& sample : c.samples) {
    all.push_back(&sample);
    if (sample.disturbed.empty()) kept.push_back(&sample);
    if (!sample.disturbed.empty()) disturbed = sample.disturbed;
  }
  line.samples_disturbed = static_cast<int>(all.size() - kept.size());
  if (2 * static_cast<int>(kept.size()) >= settings.repetitions) return kept;
  line.disturbed = disturbed;
  return all;
}

void describe(Sample sample, const BenchLine& line, const UsefulWork& work, double peak, GoogleRuns& runs) {
  auto& counters = sample.run.counters;
  const StepSamples& steps = line.steps;
  const double seconds = sample.seconds();
  counters.erase("sample");
  if (peak > 0) counters["roof_fraction"] = work.operations / seconds / peak;
  counters["error_over_bound"] = line.error_over_bound;
  if (line.ulps) {
    counters["median_ulps"] = line.ulps->median;
    counters["largest_ulps"] = line.ulps->largest;
  }
  counters["total_seconds"] = line.total_seconds;
  counters["prepare_seconds"] = steps.prepare;
  counters["first_run_seconds"] = steps.first_run;
  counters["upload_seconds"] = median(steps.upload);
  counters["download_seconds"] = median(steps.download);
  if (!steps.cold.empty()) counters["cold_seconds"] = median(steps.cold);
  counters["memory_peak_bytes"] = steps.memory_peak;
  counters["workspace_bytes"] = steps.workspace;
  if (!steps.threads.empty()) counters["threads_used"] = median(steps.threads);
  counters["cpu_after_seconds"] = std::max(0.0, median(steps.cpu_after));  // of two clocks
  counters["after_seconds"] = median(steps.after);
  const Disturbance& d = sample.disturbance;
  counters["disturbed"] = sample.disturbed.empty() ? 0 : 1;
  // The system counts in ticks of a hundredth of a second: over less than a few of them the quotient means nothing.
  constexpr double kSeveralTicks = 0.05;
  if (d.seconds >= kSeveralTicks) {
    counters["steal_processors"] = d.steal;
    counters["other_processors"] = d.others;
  }
  counters["load"] = d.load;
  counters["slowdown"] = d.slowdown;
  if (d.megahertz > 0) counters["megahertz"] = d.megahertz;
  runs.list.push_back(std::move(sample.run));
}

}  // namespace

double BenchLine::median() const { return quantile(seconds, 0.5); }

double BenchLine::spread() const {
  const double middle = median();
  return middle > 0 ? (quantile(seconds, 0.75) - quantile(seconds, 0.25)) / middle : 0;
}

BenchCase bench_case(const Case& source, const std::vector<Backend*>& backends, const Roof& roof,
                     const BenchSettings& asked) {
  BenchSettings settings = asked;
  BenchCase result;
  const auto tell = [&](const std::string& what) {
    if (settings.progress) settings.progress(source.label + ": " + what);
  };
  tell("reference and bounds");
  const auto runs = std::make_shared<GoogleRuns>();
  result.case_line = source.label;
  TimedCase shared(source, backends, settings.threads, settings.seed);
  MachineWatch watch;
  LoadedPools pools(settings.threads);
  rest_before_timing();
  std::vector<Candidate> candidates(backends.size());
  double round = 0;  // seconds that a sample of each takes
  for (std::size_t n = 0; n < backends.size(); ++n) {
    Candidate& c = candidates[n];
    tell("checking " + backends[n]->identity().name);
    const CrashContext crash_context(backends[n]->identity().name, source.label);
    if (is_isolated(*backends[n]))
      c.plan = std::make_unique<TimedApart>(*backends[n], shared, watch, one_request_of(*backends[n]));
    else
      c.plan = std::make_unique<TimedHere>(*backends[n], shared, watch, pools);
    if (!c.plan->wrong().empty()) continue;
    const Stopwatch warming;
    c.runs = c.plan->warm_up(settings.min_seconds);
    round += std::max(settings.min_seconds, warming.seconds() / 2);  // with long runs it takes two
    c.wanted = settings.repetitions;
    c.until_in_full = settings.repetitions;
  }
  const BytesMoved bytes = bytes_moved(source.problem);
  const double operations =
      operator_of(shared.problem()).useful_operations(shared.problem(), shared.as_written().inputs());
  const UsefulWork work{operations, bytes.in + bytes.out};
  result.sets = shared.changing().sets();
  result.set_bytes = shared.changing().set_bytes();
  shorten(settings, round, candidates);
  take_samples(candidates, source.label, work, settings);
  repeat_disturbed(candidates, source, work, settings);
  if (settings.cold) run_cold(candidates, settings.threads, result);

  // A neighbour may have been there when the roof was measured: the higher of before and after counts.
  const bool doubles = source.problem.call.dtype == DType::f64;
  const double roof_before = doubles ? roof.fma_gflops_f64 : roof.fma_gflops_f32;
  result.roof_after = measure_fma_again(settings.threads, doubles, roof_before);
  const double peak = 1e9 * std::max(result.roof_after, roof_before);
  const double hand_over = measure_hand_over();
  for (std::size_t n = 0; n < candidates.size(); ++n) {
    Candidate& c = candidates[n];
    BenchLine line;
    line.backend = c.plan->name();
    const Identity identity = backends[n]->identity();
    line.stated = identity.device;
    line.device = stated_device(identity);
    // A device that nobody knows is judged as the processor.
    const bool host = line.device != StatedDevice::accelerator;
    const double factor = roof_factor(source.problem.call.dtype);
    line.roof_measured = host && factor == 1;
    const double own_peak = line.roof_measured ? peak : 0, limit = host ? factor * peak : 0;
    c.plan->judge({work.operations, limit, bytes.in, bytes.out, roof.copy_gbps * 1e9, host, settings.threads,
                   roof.convert_gbps * 1e9, hand_over});
    line.wrong = c.plan->wrong();
    result.calibration_spread = std::max(result.calibration_spread, c.plan->calibration_spread());
    result.change_seconds = std::max(result.change_seconds, c.plan->change_seconds());
    for (const std::string& pool : c.plan->lowered_pools()) {
      if (std::find(result.lowered_pools.begin(), result.lowered_pools.end(), pool) == result.lowered_pools.end())
        result.lowered_pools.push_back(pool);
    }
    line.error_over_bound = c.plan->error_over_bound();
    line.ulps = c.plan->ulps();
    line.steps = c.plan->steps();
    line.apart = is_isolated(*backends[n]);
    line.sandbox = sandbox_of(*backends[n]);
    if (line.wrong.empty() && c.samples.empty()) {
      if (interrupted)
        line.wrong = {NoSpeed::ended_by_user, "interrupted before its first sample"};
      else
        line.wrong = {NoSpeed::unreported, "Google Benchmark reported none of its samples"};
    }
    if (line.wrong.empty()) {
      for (const Sample* sample : kept_samples(c, settings, line)) line.seconds.push_back(sample->seconds());
      // Of medians, as the columns are: the median of whole walks, each timed alone, may lie below that of run().
      line.total_seconds = line.median() + median(line.steps.upload) + median(line.steps.download);
      for (const Sample& sample : c.samples) describe(sample, line, work, own_peak, *runs);
      line.interval = interval_of_median(line.seconds, kConfidence);
      line.gflops = work.operations / line.median() / 1e9;
      line.gbps = work.bytes / line.median() / 1e9;
      line.roof_fraction = own_peak > 0 ? line.gflops * 1e9 / own_peak : 0;
    }
    result.lines.push_back(std::move(line));
  }
  result.runs = runs;
  return result;
}

}  // namespace attest
