// Why a plan with this verdict, or a worker that came to this end, has no speed.
#pragma once

#include "harness/speed/trust/no_speed.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/verdict.h"

namespace attest {

NoSpeed no_speed_of(Status status, const FailureCause& cause);
/// Empty where it is right.
NoSpeedReason no_speed_of(const Verdict& verdict);
/// Of a worker process.
NoSpeedReason no_speed_of(const CaseFault& fault);

}  // namespace attest
