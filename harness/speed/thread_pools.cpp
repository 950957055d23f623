#include "harness/speed/thread_pools.h"

#include <cstdlib>
#include <string>

namespace attest {

void limit_thread_pools(int threads) {
  for (const char* name : {"POCL_MAX_PTHREAD_COUNT", "CL_CONFIG_CPU_TBB_NUM_WORKERS"}) {
    setenv(name, std::to_string(threads).c_str(), 0);
  }
}

}  // namespace attest
