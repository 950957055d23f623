// What a benchmark and a worker say to each other. Every field must be named here: one left out arrives as its default.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/backends/isolation/messages.h"
#include "harness/speed/timing/timed.h"

namespace attest {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Disturbance, steal, others, load, megahertz, slowdown, seconds, busy_threads)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TakenSample, seconds, cpu, device, disturbance, checked_in_full)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimedFacts, operations, sets, set_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NoSpeedReason, kind, text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Spread, median, p99, largest)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepSamples::Cost, seconds, cpu, since)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepSamples::Repeat, fresh, same)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepSamples, prepare, first_run, memory_peak, workspace, upload, run, download, cold,
                                   fetched, waited, uploaded, repeated, threads, processors, cpu_after, after)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MachineLimits, operations, peak, bytes_in, bytes_out, copied_per_second, host,
                                   threads, converted_per_second)

}  // namespace attest
