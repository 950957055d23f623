#include "harness/speed/files/bench_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "harness/base/statistics.h"
#include "harness/base/text.h"
#include "harness/speed/samples/speed_comparison.h"

namespace attest {
namespace {

double ranked_of(const BenchLine& line) { return line.ranked_seconds(); }
double total_of(const BenchLine& line) { return line.total_seconds; }

/// The fastest of those that nothing disturbed, or of all where something disturbed each.
const BenchLine* fastest_by(double (*seconds)(const BenchLine&), const std::vector<const BenchLine*>& lines) {
  const BenchLine* fastest = nullptr;
  for (const BenchLine* line : lines) {
    const bool better = !fastest || line->disturbed.empty() > fastest->disturbed.empty() ||
                        (line->disturbed.empty() == fastest->disturbed.empty() && seconds(*line) < seconds(*fastest));
    if (better) fastest = line;
  }
  return fastest;
}

/// In MB; 0 bytes are what nobody could tell.
std::string memory_text(double bytes) { return bytes > 0 ? fmt::format("{:.1f}", bytes / 1e6) : "-"; }

const char* mark_of(const BenchLine& line) { return line.disturbed.empty() ? "" : "?"; }

/// ", 75%": what an interval covers; nothing where that is what the table's head says.
std::string covers_text(double confidence) {
  return confidence < kConfidence ? fmt::format(", {:.0f}%", confidence * 100) : "";
}

/// "0.021 to 0.024", in milliseconds; with too few samples for the interval, what it covers; nothing for a single one.
std::string interval_text(const SampleInterval& interval) {
  if (interval.confidence <= 0) return "-";
  return fmt::format("{:.3f} to {:.3f}{}", interval.low * 1e3, interval.high * 1e3, covers_text(interval.confidence));
}

/// Samples are of run() alone: what the line is ranked by besides is added to each as its median.
std::vector<double> ranked_samples(const BenchLine& line) {
  std::vector<double> samples = line.seconds;
  for (double& seconds : samples) seconds += line.ranked_seconds() - line.median();
  return samples;
}

/// "1.06x (1.02 to 1.07)"; with too few samples for the interval, what it covers.
std::string ratio_text(const BenchLine& line, const BenchLine* fastest) {
  std::string ratio = fmt::format("{:>5.2f}x{}", ranked_of(line) / ranked_of(*fastest), mark_of(line));
  if (&line == fastest) return ratio;
  const RatioInterval interval = compare_samples(ranked_samples(*fastest), ranked_samples(line), kConfidence);
  return fmt::format("{} ({:.2f} to {:.2f}{})", ratio, interval.low, interval.high, covers_text(interval.confidence));
}

/// "0.42 (3.1)": the median and the largest error in units in the last place.
std::string ulps_text(const std::optional<Spread>& ulps) { return ulps ? text_of(*ulps) : "-"; }

void print_speeds(const std::vector<const BenchLine*>& lines, std::FILE* out) {
  fmt::print(out, "  {:<10} {:>10} {:>8} {:>10} {:>7} {:>8} {:>6} {:>11} {:>15}  {:>6} {}\n", "backend", "run ms",
             "spread", "total ms", "GFLOP/s", "of FMA", "GB/s", "error/bound", "ulps (largest)", "ratio",
             "to the fastest (95% interval)");
  const BenchLine* fastest = fastest_by(ranked_of, lines);
  for (const BenchLine* line : lines) {
    const std::string roof = line->roof_measured ? fmt::format("{:.2f}", line->roof_fraction) : "-";
    fmt::print(out, "  {:<10} {:>10.3f} {:>7.0f}% {:>10.3f} {:>7.1f} {:>8} {:>6.1f} {:>11.2g} {:>15}  {}\n",
               line->backend, line->median() * 1e3, line->spread() * 100, line->total_seconds * 1e3, line->gflops, roof,
               line->gbps, line->error_over_bound, ulps_text(line->ulps), ratio_text(*line, fastest));
  }
}

/// What happened beside run(), and the ranking by all of it.
void print_steps(std::vector<const BenchLine*> lines, std::FILE* out) {
  std::stable_sort(lines.begin(), lines.end(),
                   [](const BenchLine* a, const BenchLine* b) { return total_of(*a) < total_of(*b); });
  const bool cold = std::any_of(lines.begin(), lines.end(), [](const BenchLine* l) { return !l->steps.cold.empty(); });
  fmt::print(out, "  {:<10} {:>10} {:>10} {:>9} {:>23} {:>9} {:>8} {:>8} {:>9} {:>7}{}\n", "steps, ms", "prepare",
             "first run", "upload", "run (95% interval)", "download", "threads", "spinning", "memory MB", "total",
             cold ? "   cold run" : "");
  const BenchLine* fastest = fastest_by(total_of, lines);
  for (const BenchLine* line : lines) {
    const StepSamples& s = line->steps;
    const double after = median(s.after);
    fmt::print(out, "  {:<10} {:>10.3f} {:>10.3f} {:>9.3f} {:>23} {:>9.3f} {:>8} {:>7.0f}% {:>9} {:>7}{}\n",
               line->backend, s.prepare * 1e3, s.first_run * 1e3, median(s.upload) * 1e3, interval_text(line->interval),
               median(s.download) * 1e3, s.threads.empty() ? "-" : fmt::format("{:.1f}", median(s.threads)),
               after > 0 ? std::max(0.0, 100 * median(s.cpu_after) / after) : 0,
               memory_text(std::max(s.memory_peak, s.workspace)),
               fmt::format("{:.2f}x{}", total_of(*line) / total_of(*fastest), mark_of(*line)),
               cold ? fmt::format(" {:>10.3f}", median(s.cold) * 1e3) : "");
  }
}

/// Whose run is more than run().
void print_apart(const std::vector<const BenchLine*>& lines, std::FILE* out) {
  for (const BenchLine* line : lines) {
    if (!line->apart) continue;
    fmt::print(out, "  {}: timed from outside of its process{}{}\n", line->backend,
               line->sandbox.empty() ? "" : ", a sandbox",
               line->steps.upload.empty() ? "; run has upload and download in it" : "");
  }
}

}  // namespace

void print_bench_table(const BenchCase& result, std::FILE* out) {
  fmt::print(out, "\n{}\n", result.case_line);
  std::vector<const BenchLine*> lines;
  for (const BenchLine& line : result.lines) {
    if (line.wrong.empty()) lines.push_back(&line);
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const BenchLine* a, const BenchLine* b) { return ranked_of(*a) < ranked_of(*b); });
  if (!lines.empty()) {
    print_speeds(lines, out);
    print_steps(lines, out);
  }
  for (const BenchLine& line : result.lines) {
    if (!line.wrong.empty()) fmt::print(out, "  {:<10} no speed: {}\n", line.backend, printable(line.wrong.text));
  }
  if (!lines.empty()) {
    fmt::print(
        out, "  caches: warm, {} set(s) of {:.1f} MB in turn, changed before each run in {:.3f} ms{}\n", result.sets,
        result.set_bytes / 1e6, result.change_seconds * 1e3,
        result.evicted_bytes > 0 ? fmt::format("; cold, {:.0f} MB written before", result.evicted_bytes / 1e6) : "");
  }
  if (!lines.empty() && result.roof_after > 0) {
    fmt::print(out, "  machine: {:.0f} GFLOP/s FMA once more; quartiles of a fixed loop {:.0f}% apart\n",
               result.roof_after, result.calibration_spread * 100);
  }
  print_apart(lines, out);
  for (const std::string& pool : result.lowered_pools)
    fmt::print(out, "  threads: {}, and was told the number given\n", pool);
  for (const BenchLine& line : result.lines) {
    if (line.device == StatedDevice::unknown) {
      fmt::print(out, "  {}: this machine is not known to have its device, {}: judged and ranked as its processor\n",
                 line.backend, printable(line.stated));
    }
  }
  for (const BenchLine* line : lines) {
    if (!line->disturbed.empty()) {
      fmt::print(out, "  ? {} was disturbed in {} samples, and its rank is not to be trusted: {}\n", line->backend,
                 line->samples_disturbed, line->disturbed);
    }
    if (!line->roof_measured)
      fmt::print(out, "  {}: the roof of its device and type was not measured\n", line->backend);
  }
  std::fflush(out);
}

}  // namespace attest
