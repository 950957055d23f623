#include "backends/xtensor/openblas.h"

#include <cstdlib>
#include <string_view>

extern "C" {
char* openblas_get_corename(void);
// Builds that hold kernels for several processors export these; they read $OPENBLAS_CORETYPE.
[[gnu::weak]] void gotoblas_dynamic_init(void);
[[gnu::weak]] void gotoblas_dynamic_quit(void);
}

namespace attest {
namespace {

const char* wanted_core() {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return "SkylakeX";
  }
  if (avx2) return "Haswell";
#endif
  return nullptr;
}

}  // namespace

void choose_openblas_kernels() {
  constexpr std::string_view kFallback = "Prescott";
  const char* core = wanted_core();
  if (!core || openblas_get_corename() != kFallback || std::getenv("OPENBLAS_CORETYPE")) return;
  if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit) return;
  setenv("OPENBLAS_CORETYPE", core, 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
}

bool openblas_multiplies_unpacked() {
  const std::string_view core = openblas_get_corename();
  return core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids";
}

}  // namespace attest
