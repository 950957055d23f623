// Pools of threads that take their size from the environment or from a setting of their library, and not from an
// argument.
#pragma once

#include <string>
#include <vector>

namespace attest {

/// Tells the pools that are known (OpenMP, the BLAS libraries, numexpr, PyTorch by these, OpenCL runtimes for CPUs) by
/// their environment variables how many threads a backend is given, where the environment doesn't say so or says more.
/// They look once, when they are loaded or their first device is asked for: call it before backends are made and
/// before processes for them are started, which inherit it. Returns the variables.
const std::vector<std::string>& limit_thread_pools(int threads);

/// Lowers pools of libraries that are loaded already, or were by a backend meanwhile, to so many threads; puts them
/// back at its end, since the process may be somebody else's.
class LoadedPools {
 public:
  explicit LoadedPools(int threads);
  LoadedPools(const LoadedPools&) = delete;
  LoadedPools& operator=(const LoadedPools&) = delete;
  ~LoadedPools();

  /// At libraries that were loaded since.
  void look_again();
  /// "OpenBLAS had 8 threads": what was lowered.
  const std::vector<std::string>& lowered() const { return lowered_; }

 private:
  struct Pool {
    void* setter;
    int before;
  };

  int threads_;
  unsigned long long libraries_ = 0;  ///< loaded when it looked last
  std::vector<Pool> pools_;
  std::vector<std::string> lowered_;
};

}  // namespace attest
