// Google Benchmark repeats and interleaves the samples, and writes them down.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/speed/machine/machine_watch.h"
#include "harness/speed/timing/bench.h"
#include "harness/speed/timing/google_runs.h"
#include "harness/speed/timing/timed.h"

namespace attest {

/// One sample as Google Benchmark reports it, and what disturbed it.
struct Sample {
  benchmark::BenchmarkReporter::Run run;
  Disturbance disturbance;
  std::string disturbed;  ///< empty where nothing did

  double seconds() const { return run.real_accumulated_time / static_cast<double>(run.iterations); }
};

/// A backend under time, how it is repeated, and what came of it.
struct Candidate {
  std::unique_ptr<Timed> plan;
  std::int64_t runs = 1;  ///< of a sample
  int wanted = 0;         ///< samples to take next
  int until_in_full = 0;  ///< samples among which the one whose last run is checked whole is drawn; 0 after it
  std::vector<Sample> samples;
  std::vector<TakenSample> taken;  ///< in the order in which they were taken
};

/// What one run is good for.
struct UsefulWork {
  double operations = 0, bytes = 0;
};

/// Takes the samples that each candidate wants, in random order; one that turns out wrong stops taking any.
///
/// How many runs a sample has is not left to Google Benchmark: its estimate would run the plan some more times, and
/// would not count what changing, uploading and checking data take.
void take_samples(std::vector<Candidate>& candidates, const std::string& case_line, const UsefulWork& work,
                  const BenchSettings& settings);

}  // namespace attest
