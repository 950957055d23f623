// Energy, where the machine counts it.
#pragma once

#include <filesystem>
#include <optional>

namespace attest {

/// Joules of all processor packages since some moment, by the kernel's powercap counters (RAPL); nothing where there
/// are none or they may not be read. A counter that wrapped gives less than before.
std::optional<double> energy_joules(const std::filesystem::path& counters = "/sys/class/powercap");

}  // namespace attest
