// libFuzzer target: any bytes are benchmark results, verdicts of an earlier run, or get one sentence.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "harness/base/user_error.h"
#include "harness/report/earlier_run.h"
#include "harness/speed/files/benchmark_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto reads = [&](const auto& reader) {
    std::istringstream file(text);
    try {
      reader(file);
    } catch (const UserError& error) {
      if (error.what()[0] == '\0') std::abort();
    }
  };
  reads([](std::istream& file) {
    for (const auto& [name, list] : read_samples(file, "fuzz")) {
      if (list.empty()) std::abort();
      for (double sample : list) {
        if (!(sample > 0)) std::abort();
      }
    }
  });
  reads([](std::istream& file) {
    EarlierRun run;
    run.read(file, "fuzz");
    (void)run.find("smoke", "seq=4 dim=4", "", "eigen");
  });
  return 0;
}
