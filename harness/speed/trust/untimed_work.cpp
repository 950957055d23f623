#include "harness/speed/trust/untimed_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace attest {
namespace {

constexpr double kAboveRoof = 1.1;
constexpr double kCopies = 4;           ///< of its bytes that upload may make
constexpr double kShortest = 50e-6;     ///< seconds that no rule looks at: one interrupt
constexpr double kConversions = 2;      ///< of its bytes, one element after the other, that moving data may make
constexpr double kConverted = 5e8;      ///< bytes a second of those where nobody measured them
constexpr double kCalled = 200e-6;      ///< seconds that moving data may take whatever it is: queues, interpreters
constexpr double kRoundTrips = 8;       ///< to another thread and back, that moving data may take: queues of drivers
constexpr double kHandedOver = 1e-3;    ///< seconds that a device's driver may take to be given a call's tensors
constexpr double kThreadsAbove = 0.75;  ///< of threads counted by their turns: a fifth of the time makes one
constexpr double kOverlap = 0.1;        ///< processors more than threads that clocks may tell
constexpr double kHandOver = 100e-6;  ///< seconds a run in which a caller hands work to a full pool, and computes, too
constexpr std::size_t kFewest = 2;    ///< measurements that a rule needs

std::string milliseconds(double seconds) { return fmt::format("{:.3f} ms", seconds * 1e3); }

/// Once may be chance; three times of four, and twice at least, is none.
struct Rule {
  Evidence wanted;

  template <class Entry, class Shows>
  bool operator()(const std::vector<Entry>& entries, const Shows& shows) const {
    const auto count = static_cast<std::size_t>(std::count_if(entries.begin(), entries.end(), shows));
    return wanted == Evidence::suspicion ? count > 0 : count >= kFewest && 4 * count >= 3 * entries.size();
  }
};

}  // namespace

NoSpeedReason untimed_work(const StepSamples& steps, const MachineLimits& y, Evidence wanted) {
  const Rule nearly_always{wanted};
  const double run = median(steps.run), upload = median(steps.upload), download = median(steps.download);
  const double shortest_run = y.peak > 0 ? y.operations / y.peak : 0;
  const double copy_out = y.copied_per_second > 0 ? kCopies * y.bytes_out / y.copied_per_second : 0;
  const double copy_in = y.copied_per_second > 0 ? kCopies * y.bytes_in / y.copied_per_second : 0;

  const double least = std::max(0.25 * run + copy_out, kShortest);
  // Threads that turn in a circle beside a download cost the process time, but they don't make the download longer.
  const auto cost_of = [&](const StepSamples::Cost& step) {
    return y.host ? std::min(step.cpu, std::max(1, y.threads) * step.seconds) : step.seconds;
  };
  // What came so late that the work of a run was done by then tells nothing.
  std::vector<StepSamples::Cost> waited = steps.waited;
  std::erase_if(waited,
                [&](const StepSamples::Cost& more) { return more.since > run + least && cost_of(more) <= least; });
  const bool waits = nearly_always(waited, [&](const StepSamples::Cost& more) { return cost_of(more) > least; });
  if (waits) {
    return {NoSpeed::first_download_works,
            fmt::format("works outside run: the first download after a run takes {} longer than a second one; run: {}",
                        milliseconds(steps.waited.back().seconds), milliseconds(run))};
  }
  const double converted = y.converted_per_second > 0 ? y.converted_per_second : kConverted;
  const double called = std::clamp(kRoundTrips * y.hand_over, kCalled, kHandedOver);
  const double storing = std::max({0.25 * run, called, kConversions * y.bytes_out / converted});
  const bool downloads =
      nearly_always(steps.fetched, [&](const StepSamples::Cost& one) { return cost_of(one) - copy_out > storing; });
  if (downloads) {
    return {
        NoSpeed::download_works,
        fmt::format("works outside run: download takes {}, {} copies of its bytes {}, run {}",
                    milliseconds(steps.fetched.back().seconds), kCopies, milliseconds(copy_out), milliseconds(run))};
  }
  const bool caches = nearly_always(steps.repeated, [&](const StepSamples::Repeat& one) {
    const double fresh = y.host ? one.fresh.cpu : one.fresh.seconds, same = y.host ? one.same.cpu : one.same.seconds;
    return fresh > 4 * same && fresh - same > kShortest;
  });
  if (caches) {
    const auto& [fresh, same] = steps.repeated.back();
    return {NoSpeed::cached, fmt::format("answers from a cache: the same inputs once more take {}, new ones {}",
                                         milliseconds(same.seconds), milliseconds(fresh.seconds))};
  }
  if (!steps.run.empty() && shortest_run > kAboveRoof * run) {
    return {NoSpeed::above_roof, fmt::format("works outside run: {:.1f} times the roof of its type and device (prepare "
                                             "{}, upload {}, run {}, download {})",
                                             shortest_run / run, milliseconds(steps.prepare), milliseconds(upload),
                                             milliseconds(run), milliseconds(download))};
  }
  // Where the roof is known, by what the run should take; and anywhere, by what it does take.
  const double moving = std::max(copy_in, kConversions * y.bytes_in / converted);
  const double allowed = moving + (y.host ? std::max(0.25 * run, called) : std::max(run, kHandedOver));
  const bool beyond_roof =
      copy_in > 0 && shortest_run > kShortest && upload - copy_in > 0.5 * shortest_run && upload > 0.5 * run;
  if (beyond_roof ||
      nearly_always(steps.uploaded, [&](const StepSamples::Cost& one) { return cost_of(one) > allowed; })) {
    return {NoSpeed::upload_works,
            fmt::format("works outside run: upload takes {}, {} copies of its bytes {}, run {}", milliseconds(upload),
                        kCopies, milliseconds(copy_in), milliseconds(run))};
  }
  const double overlap = kOverlap + std::min(kHandOver / std::max(run, 1e-9), kThreadsAbove - kOverlap);
  if (y.host && nearly_always(steps.processors, [&](double busy) { return busy > y.threads + overlap; })) {
    return {NoSpeed::more_threads, fmt::format("more threads than given: its threads and processes took {:.2f} "
                                               "processors during run, {} given",
                                               median(steps.processors), y.threads)};
  }
  if (nearly_always(steps.threads, [&](double threads) { return threads > y.threads + kThreadsAbove; })) {
    return {NoSpeed::more_threads, fmt::format("more threads than given: {:.1f} at work during run, {} given",
                                               median(steps.threads), y.threads)};
  }
  return {};
}

}  // namespace attest
