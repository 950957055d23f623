#include "harness/speed/timing/cold_caches.h"

#include <algorithm>

#include "harness/base/parallel.h"
#include "harness/speed/trust/changing_inputs.h"

namespace attest {

ColdCaches::ColdCaches(int threads)
    : threads_(threads),
      buffer_(std::max(std::size_t{64} << 20, static_cast<std::size_t>(2 * last_level_cache_bytes()))) {}

void ColdCaches::evict() {
  const std::size_t share = buffer_.size() / static_cast<std::size_t>(threads_);
  parallel_for(static_cast<std::size_t>(threads_), threads_, [&](std::size_t n) {
    constexpr std::size_t kLine = 64;
    for (std::size_t at = n * share; at < (n + 1) * share; at += kLine) ++buffer_[at];
  });
}

}  // namespace attest
