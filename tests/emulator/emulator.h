// A backend that rounds as it is told to: any declared arithmetic, every step of it, at random or as badly as allowed.
//
// Slow and plain. What it computes and for whom (which keys are seen, which are kept) is the reference's word; what it
// is for is rounding: a bound, a deviation or a probe that accuses it is wrong.
#pragma once

#include <string>

#include "backends/backend.h"
#include "tests/emulator/steps.h"

namespace attest::emulator {

struct Emulated {
  Arithmetic does;  ///< how it rounds
  Arithmetic says;  ///< what it declares: the same, unless a test has it lie
  Behaviour behaviour = Behaviour::random;
  bool clamped_exp = false;  ///< exp never goes below its smallest normal result; needs flush_to_zero
  std::uint64_t seed = 0;
};

class EmulatorBackend : public Backend {
 public:
  explicit EmulatorBackend(const Emulated& emulated) : emulated_(emulated) {}

  Identity identity() const override { return {"emulator", "rounds as declared", "CPU, 1 thread"}; }
  int contract() const override { return 9; }
  /// Other operators, and types that its accumulator can't hold.
  std::optional<Refusal> refuse(const Call& call) const override;
  Arithmetic arithmetic(const Call&) const override { return emulated_.says; }
  std::unique_ptr<Plan> prepare(const Call& call) override;

 private:
  Emulated emulated_;
};

/// What is declared, in one line.
std::string text_of(const Arithmetic& arithmetic);

}  // namespace attest::emulator
