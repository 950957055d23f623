// What the harness holds against an emulated backend: by its bounds, by the second tier, by its probes.
#pragma once

#include <string>
#include <vector>

#include "reference/base/names.h"
#include "tests/emulator/emulator.h"

namespace attest {

template <>
inline constexpr auto kNames<emulator::Behaviour> = name_table("random", "adversary", "limit");

}  // namespace attest

namespace attest::emulator {

inline constexpr double kLineCost = 1e5;  ///< multiply-adds of a random line, at most

struct Accusations {
  std::string status;             ///< of the line's verdict
  std::vector<std::string> list;  ///< one sentence each, with line and declaration
};

/// Checks the line. Of an adversary `suspect` is no accusation: the second tier speaks of independent roundings, which
/// his are not. Nor is he probed at the limit, where numbers are of no type.
Accusations accuse(const Emulated& emulated, const std::string& line, bool probe);

/// The declaration that an accusation names, from its last line: "adversary {...} clamped seed 7". Throws
/// std::invalid_argument.
Emulated emulated_from(const std::string& text);

/// Probes alone.
std::vector<std::string> accused_by_probes(const Emulated& emulated);

}  // namespace attest::emulator
