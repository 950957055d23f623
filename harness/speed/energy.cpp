#include "harness/speed/energy.h"

#include <fstream>
#include <string>

namespace attest {

std::optional<double> energy_joules(const std::filesystem::path& counters) {
  std::optional<double> joules;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(counters, error)) {
    // Packages are intel-rapl:0, :1, ...; their parts intel-rapl:0:0 are counted in them.
    const std::string name = entry.path().filename();
    const std::size_t first = name.find(':');
    if (!name.starts_with("intel-rapl:") || name.find(':', first + 1) != std::string::npos) continue;
    double microjoules = 0;
    if (std::ifstream(entry.path() / "energy_uj") >> microjoules) joules = joules.value_or(0) + microjoules * 1e-6;
  }
  return joules;
}

}  // namespace attest
