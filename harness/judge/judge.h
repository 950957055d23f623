// One verdict on a stranger's implementation: right or not on cases that it can't know, and how fast.
//
// Nothing is decided here: cases go through a run of `check`, in a sandbox (harness/run/check_run.h), and what is right
// is timed by `bench` from outside of the sandbox (harness/speed/timing/timed_apart.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/backends/isolation/isolation_options.h"
#include "harness/judge/task.h"
#include "harness/report/counts.h"
#include "harness/speed/samples/sample_interval.h"
#include "harness/speed/trust/no_speed.h"

namespace attest {

enum class Judged : std::uint8_t { pass, fail, unproven, invalid };
template <>
inline constexpr auto kNames<Judged> = name_table("pass", "fail", "unproven", "invalid");

struct JudgeSettings {
  double budget_seconds = 60;     ///< of all of it: compiling, checking, timing
  std::uint64_t secret_seed = 0;  ///< draws cases and data
  int threads = 1;
  std::string baseline;  ///< the backend whose speed is the measure; empty: eigen, or else example
  IsolationOptions limits;
  std::string interpreter;  ///< for submissions in Python, as need_interpreter() takes it
  std::function<void(const std::string&)> progress{};
};

/// One timed case.
struct JudgedSpeed {
  std::string case_line;
  double weight = 1;
  NoSpeedReason wrong;          ///< the submission has no speed then
  double seconds = 0;           ///< median of a call: upload, run and download
  SampleInterval interval;      ///< of that
  double roof_fraction = 0;     ///< 0 where the roof was not measured
  double baseline_seconds = 0;  ///< of the same; 0 where the baseline has none
  double threads = 0;           ///< processor time of all its threads over that of the clock; 0 without a speed
};

struct JudgedSubmission {
  Judged verdict = Judged::invalid;
  std::string reason;               ///< empty for a pass
  std::string submission, content;  ///< its file or folder, and the fingerprint of what was judged
  std::string name, sandbox;        ///< of its backend, and around it
  Counts counts;
  std::size_t drawn = 0;  ///< cases; what the budget left no time for is in no count
  double worst_error_over_bound = 0;
  std::string failing_line;  ///< of the first failure, as small as it could be made
  std::string baseline;
  std::vector<JudgedSpeed> speeds;
  double seconds = 0;  ///< that judging took

  /// How many times as fast as the baseline: the weighted geometric mean; nothing where a timed case has no speed.
  std::optional<double> speedup() const;
};

/// `path`: as take_submission() takes it. Throws UserError for what isn't the submission's fault.
JudgedSubmission judge(const std::string& path, const Task& task, std::span<const BackendEntry> registry,
                       const JudgeSettings& settings);

/// What cases were drawn from, as a file of results may tell it: the same text for the same seed, and too short to find
/// the seed by.
std::string mark_of_seed(std::uint64_t seed);

/// As one JSON object, of the version that it states, on one line or several.
std::string json_of(const JudgedSubmission& judged, const Task& task, std::uint64_t seed, bool one_line);

}  // namespace attest
