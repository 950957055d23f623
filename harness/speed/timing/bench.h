// Timing of one case on several backends, interleaved. Every sample is a result that was checked (timed_plan.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/comparison/accuracy.h"
#include "harness/speed/machine/known_devices.h"
#include "harness/speed/machine/roof.h"
#include "harness/speed/samples/sample_interval.h"
#include "harness/speed/samples/step_samples.h"
#include "harness/speed/trust/no_speed.h"

namespace attest {

struct BenchSettings {
  int threads = 1;
  int repetitions = 9;
  double min_seconds = 0.1;
  std::uint64_t seed = 0;  ///< draws the data of the samples, and which of them are checked
  bool cold = false;       ///< a few runs with evicted caches as well
  double most_seconds =
      0;  ///< what the samples of a case may take altogether, about: there are fewer then; 0: no limit
  /// Called with the current step in a few words; may be empty.
  std::function<void(const std::string&)> progress{};
};

struct GoogleRuns;  // google_runs.h

/// The confidence of the intervals in tables.
inline constexpr double kConfidence = 0.95;

/// The timing of one backend on one case, as the tables show it.
struct BenchLine {
  std::string backend;
  NoSpeedReason wrong;          ///< none where every checked run was right and no work was done anywhere but in run()
  std::vector<double> seconds;  ///< one of each sample that counts, of run() alone
  SampleInterval interval;      ///< of their median
  std::string disturbed;        ///< what disturbed so many samples that the line can't be ranked; empty where few
  int samples_disturbed = 0;    ///< and how many there were, which were taken again
  StepSamples steps;            ///< the other steps, and what the process did beside them
  double total_seconds = 0;     ///< medians of upload, run and download, added
  double gflops = 0, gbps = 0, roof_fraction = 0, error_over_bound = 0;
  std::optional<Spread> ulps;  ///< of o, in the check before the timing; nothing where no element can tell
  bool roof_measured = true;   ///< whether the measured roof is the one of its device and type
  StatedDevice device = StatedDevice::host;
  std::string stated{};  ///< the device, as the backend names it
  /// It was timed from outside of its process: `run` is the whole call, but for accelerators (timed_apart.h).
  bool apart = false;
  std::string sandbox{};  ///< around that process, as sandbox_text() says it; empty without

  double median() const;
  /// What it is ranked by: all three steps; on a device that this machine is known to have, where moving data is no
  /// matter of the kernel, run() alone.
  double ranked_seconds() const { return device == StatedDevice::accelerator ? median() : total_seconds; }
  /// Distance between the quartiles as a fraction of the median.
  double spread() const;
};

struct BenchCase {
  std::string case_line;
  std::vector<BenchLine> lines;
  std::size_t sets = 0;                    ///< of inputs that runs rotate among, all changed before each
  double set_bytes = 0;                    ///< of one
  double evicted_bytes = 0;                ///< written before each cold run; 0 without
  double roof_after = 0;                   ///< GFLOP/s of the case's type, measured once more when all was done
  std::vector<std::string> lowered_pools;  ///< of libraries that had more threads than were given
  double change_seconds = 0;               ///< that changing one set took, outside of what is timed
  double calibration_spread = 0;           ///< of a fixed loop beside the samples
  std::shared_ptr<const GoogleRuns> runs;  ///< for its file (harness/speed/files/write_benchmark.h)
};

/// Times the case; Google Benchmark repeats and interleaves the samples. Only visible pairs count as work.
BenchCase bench_case(const Case& source, const std::vector<Backend*>& backends, const Roof& roof,
                     const BenchSettings& settings);

}  // namespace attest
