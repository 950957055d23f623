#include "harness/speed/machine/thread_pools.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>

namespace attest {
namespace {

/// A library's own functions: how many threads it takes, and to say so.
struct Functions {
  const char *library, *getter, *setter;
};

// numpy and scipy bring OpenBLAS under names of their own; PyTorch's are those of C++.
constexpr Functions kFunctions[] = {
    {"OpenBLAS", "openblas_get_num_threads", "openblas_set_num_threads"},
    {"OpenBLAS", "openblas_get_num_threads64_", "openblas_set_num_threads64_"},
    {"OpenBLAS", "scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"},
    {"OpenBLAS", "scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"},
    {"MKL", "MKL_Get_Max_Threads", "MKL_Set_Num_Threads"},
    {"OpenMP", "omp_get_max_threads", "omp_set_num_threads"},
    {"PyTorch", "_ZN2at15get_num_threadsEv", "_ZN2at15set_num_threadsEi"},
};

using Getter = int (*)();
using Setter = void (*)(int);

struct Loaded {
  unsigned long long libraries = 0;
  std::vector<std::string> paths;
};

Loaded loaded_libraries() {
  Loaded loaded;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        auto& all = *static_cast<Loaded*>(into);
        all.libraries = info->dlpi_adds;
        all.paths.emplace_back(info->dlpi_name ? info->dlpi_name : "");
        return 0;
      },
      &loaded);
  return loaded;
}

}  // namespace

const std::vector<std::string>& limit_thread_pools(int threads) {
  static const std::vector<std::string> names = {
      "OMP_NUM_THREADS",        "OPENBLAS_NUM_THREADS",         "GOTO_NUM_THREADS",    "MKL_NUM_THREADS",
      "BLIS_NUM_THREADS",       "VECLIB_MAXIMUM_THREADS",       "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS",
      "POCL_MAX_PTHREAD_COUNT", "CL_CONFIG_CPU_TBB_NUM_WORKERS"};
  for (const std::string& name : names) {
    const char* said = std::getenv(name.c_str());
    const int number = said ? std::atoi(said) : 0;
    if (number < 1 || number > threads) setenv(name.c_str(), std::to_string(threads).c_str(), 1);
  }
  return names;
}

LoadedPools::LoadedPools(int threads) : threads_(threads) { look_again(); }

LoadedPools::~LoadedPools() {
  for (auto pool = pools_.rbegin(); pool != pools_.rend(); ++pool) reinterpret_cast<Setter>(pool->setter)(pool->before);
}

void LoadedPools::look_again() {
  const Loaded loaded = loaded_libraries();
  if (loaded.libraries == libraries_) return;
  libraries_ = loaded.libraries;
  for (const std::string& path : loaded.paths) {
    void* library = dlopen(path.empty() ? nullptr : path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!library) continue;
    for (const Functions& names : kFunctions) {
      void* getter = dlsym(library, names.getter);
      void* setter = dlsym(library, names.setter);
      if (!getter || !setter) continue;
      const int before = reinterpret_cast<Getter>(getter)();
      if (before <= threads_) continue;
      reinterpret_cast<Setter>(setter)(threads_);
      pools_.push_back({setter, before});
      lowered_.push_back(fmt::format("{} had {} threads", names.library, before));
    }
    dlclose(library);
  }
}

}  // namespace attest
