#include "harness/speed/machine/pinning.h"

#include <sched.h>

namespace attest {

bool pin_to_processors(int count) {
  cpu_set_t allowed, chosen;
  CPU_ZERO(&chosen);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < count) return false;
  for (int n = 0; n < CPU_SETSIZE && CPU_COUNT(&chosen) < count; ++n) {
    if (CPU_ISSET(n, &allowed)) CPU_SET(n, &chosen);
  }
  return sched_setaffinity(0, sizeof chosen, &chosen) == 0;
}

}  // namespace attest
