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

std::vector<int> own_processors() {
  std::vector<int> own;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return own;
  for (int n = 0; n < CPU_SETSIZE; ++n) {
    if (CPU_ISSET(n, &allowed)) own.push_back(n);
  }
  return own;
}

bool pin_to(const std::vector<int>& processors) {
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (const int n : processors) CPU_SET(n, &chosen);
  return sched_setaffinity(0, sizeof chosen, &chosen) == 0;
}

std::vector<std::vector<int>> parts_of(const std::vector<int>& processors, int parts) {
  const std::size_t each = processors.size() / static_cast<std::size_t>(parts);
  std::vector<std::vector<int>> list;
  for (auto first = processors.begin(); static_cast<int>(list.size()) < parts;
       first += static_cast<std::ptrdiff_t>(each))
    list.emplace_back(first, first + static_cast<std::ptrdiff_t>(each));
  return list;
}

}  // namespace attest
