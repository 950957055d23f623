#include "harness/speed/timing/no_speed_of.h"

namespace attest {

NoSpeed no_speed_of(Status status, const FailureCause& cause) {
  switch (status) {
    case Status::pass:
    case Status::weak:
    case Status::convention: return NoSpeed::none;
    case Status::refused: return NoSpeed::refused;
    case Status::inconclusive: return NoSpeed::unproven;
    case Status::suspect: return NoSpeed::suspect;
    case Status::crashed: return NoSpeed::crashed;
    case Status::timeout: return NoSpeed::timeout;
    case Status::flaky:
    case Status::fail: break;
  }
  switch (cause.kind) {
    case Cause::threw: return NoSpeed::threw;
    case Cause::out_of_memory: return NoSpeed::out_of_memory;
    case Cause::rounding_mode_changed:
    case Cause::flush_to_zero_changed: return NoSpeed::float_mode_changed;
    default: return NoSpeed::wrong_result;
  }
}

NoSpeedReason no_speed_of(const Verdict& verdict) {
  if (is_right(verdict) || !verdict.waiver.empty()) return {};
  return {no_speed_of(verdict.status, verdict.cause), std::string(name_of(verdict.status)) + ": " + verdict.reason};
}

NoSpeedReason no_speed_of(const CaseFault& fault) {
  // "killed: out of memory" says how it ended by itself.
  if (fault.cause().kind == Cause::out_of_memory) return {NoSpeed::out_of_memory, fault.what()};
  const std::string text = std::string(name_of(fault.status())) + ": " + fault.what();
  switch (fault.status()) {
    case Status::timeout: return {NoSpeed::timeout, text};
    case Status::crashed: return {NoSpeed::crashed, text};
    default: return {NoSpeed::threw, text};
  }
}

}  // namespace attest
