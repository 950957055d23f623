#include "harness/backends/isolation/stranger.h"

#include <stdlib.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "harness/backends/isolation/scratch_space.h"

namespace attest {
namespace {

/// Names, and with an underscore at the end what names begin with.
constexpr std::string_view kKept[] = {"PATH",
                                      "LD_LIBRARY_PATH",
                                      "LANG",
                                      "LC_",
                                      "TZ",
                                      "OMP_",
                                      "GOMP_",
                                      "KMP_",
                                      "MKL_",
                                      "OPENBLAS_",
                                      "GOTO_NUM_THREADS",
                                      "BLIS_",
                                      "GLIBC_TUNABLES",
                                      "OCL_",
                                      "POCL_",
                                      "CUDA_VISIBLE_DEVICES",
                                      "HIP_",
                                      "ROCR_",
                                      "CLBLAST_",
                                      "PYTHONPATH",
                                      "PYTHONHOME",
                                      "PYTHONHASHSEED",
                                      "VIRTUAL_ENV",
                                      "ATTEST_PYTHON_PATH",
                                      "ATTEST_OPENCL_",
                                      "ATTEST_SIMD_TARGET"};
constexpr std::string_view kInScratch[] = {"HOME", "TMPDIR", "XDG_CACHE_HOME", "POCL_CACHE_DIR"};

bool is_kept(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  if (std::find(std::begin(kInScratch), std::end(kInScratch), name) != std::end(kInScratch)) return false;
  return std::any_of(std::begin(kKept), std::end(kKept), [&](std::string_view kept) {
    return kept.ends_with('_') ? name.starts_with(kept) : name == kept;
  });
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string name = std::filesystem::temp_directory_path() / "attest.XXXXXX";
  if (!mkdtemp(name.data())) {
    throw std::filesystem::filesystem_error("no folder for a worker's files", name,
                                            std::error_code(errno, std::generic_category()));
  }
  path_ = std::filesystem::canonical(name);
}

ScratchFolder::~ScratchFolder() { remove_strangers_folder(path_); }

std::vector<std::string> environment_of_stranger(const std::vector<std::string>& environment,
                                                 const std::filesystem::path& scratch) {
  std::vector<std::string> kept;
  std::copy_if(environment.begin(), environment.end(), std::back_inserter(kept), is_kept);
  for (const std::string_view name : kInScratch) kept.push_back(std::string(name) + "=" + scratch.string());
  kept.emplace_back("PYTHONDONTWRITEBYTECODE=1");  // the folders of modules are for reading
  return kept;
}

void hide_memory() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

}  // namespace attest
