// Whether the work of a run was done somewhere else: in other steps, in more threads, after it returned.
#pragma once

#include <cstdint>

#include "harness/speed/samples/step_samples.h"
#include "harness/speed/trust/no_speed.h"

namespace attest {

enum class Evidence : std::uint8_t { suspicion, proof };

/// The reason why the plan gets no speed; empty when there is none. Rules, each with room for what honest plans do:
///
/// - run() beats the device's roof by more than a tenth;
/// - first downloads after a run take longer than those after them by a quarter of a run, and by more than copying the
///   output explains;
/// - downloads take longer than four copies of their bytes by a quarter of a run, by more than converting one element
///   after the other explains, twice as slowly as was measured, and by more than eight hand-overs to another thread;
/// - new data take four times as long as the same data again;
/// - upload takes longer than four copies of its bytes by half of what the run should take;
/// - upload takes longer than copying or converting explains in the same way, by a quarter of a run; on a known
///   device by a run, or a millisecond for its driver;
/// - threads and processes take more of the processors during run() than threads were given, by more than a tenth and
///   100 microseconds a run;
/// - more threads work during run(), or wait for their turn, than were given.
///
/// What may be chance on a busy machine must show in three measurements of four, and twice at least. A suspicion shows
/// once, and is a reason to measure more. Where the device is the processor, the process's own time on it is compared
/// and not the time on the wall, which neighbours share; of a first download the shorter of the two, for threads that
/// turn in a circle beside it cost time, too.
NoSpeedReason untimed_work(const StepSamples& steps, const MachineLimits& limits, Evidence wanted = Evidence::proof);

}  // namespace attest
