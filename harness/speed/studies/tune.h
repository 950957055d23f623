// Parameters of a backend chosen by measurement, one after another.
//
// The choices of one parameter are variants of the backend, which bench_case() times in turn on each case: a speed
// counts where every result was right. The fastest by the geometric mean over the cases stays when it gains enough, and
// the next parameter is varied from there; a second round looks again at what the first fixed early. In the end what
// came out is held against the standard parameters, in turn once more: the fastest of many looks better than it is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/speed/samples/speed_comparison.h"
#include "harness/speed/timing/bench.h"

namespace attest {

/// A choice must be faster by this part, or the one before stays.
inline constexpr double kLeastGain = 0.02;
/// Of the interval that must lie below 1 before anything but the standard parameters is chosen.
inline constexpr double kTuneConfidence = 0.99;

/// One value that was tried in place of the one in use.
struct TuneStep {
  std::string parameter;
  std::int64_t value = 0;
  double ratio = 1;     ///< of its time to that of the value in use before, geometric mean of the cases
  NoSpeedReason wrong;  ///< why it got no speed on a case; none where it got one
  bool taken = false;   ///< and is in use from here on
};

/// The choice against the standard parameters on one case.
struct TunedSpeed {
  std::string case_line;
  double standard_seconds = 0, chosen_seconds = 0;  ///< medians
  RatioInterval ratio;                              ///< chosen over standard
};

struct TuneResult {
  Tuning tuning;        ///< with the values chosen; all standard where nothing is faster by kLeastGain and for sure
  RatioInterval ratio;  ///< of times, what came out over standard, over all cases
  NoSpeedReason wrong;  ///< why there is no result: the standard parameters are wrong or refused, or it was interrupted
  std::vector<TuneStep> steps;
  std::vector<TunedSpeed> speeds;  ///< empty where nothing else than the standard parameters was faster on the way
  std::vector<std::string> cases;  ///< that the backend did not refuse
};

/// `make` gives one more backend of the same name and device each time it is called: plans of all variants take turns.
/// `told` hears of each step when it is known. Throws UserError as bench_case does.
TuneResult tune(const std::function<std::unique_ptr<Backend>()>& make, const std::vector<Case>& cases, const Roof& roof,
                const BenchSettings& settings, const std::function<void(const TuneStep&)>& told);

}  // namespace attest
