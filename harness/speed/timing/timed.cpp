#include "harness/speed/timing/timed.h"

#include "harness/base/interrupted.h"
#include "harness/speed/machine/cpu_clock.h"
#include "harness/speed/timing/cold_caches.h"
#include "harness/speed/trust/idle_threads.h"
#include "harness/speed/trust/processor_time.h"

namespace attest {

TakenSample TimedHere::sample(std::int64_t runs, int in_full) {
  TakenSample taken;
  watch_.begin();
  const double cpu = thread_cpu_seconds();
  plan_.begin_sample(runs, in_full);
  for (std::int64_t n = 0; n < runs && !interrupted && plan_.wrong().empty(); ++n) taken.seconds += plan_.run_once();
  plan_.end_sample();
  taken.checked_in_full = plan_.checked_in_full();
  taken.cpu = thread_cpu_seconds() - cpu;
  taken.disturbance = watch_.end();
  taken.disturbance.busy_threads = static_cast<int>(idle_threads().busy_threads().size());
  plan_.rest();
  taken.device = plan_.device_seconds();
  return taken;
}

void TimedHere::run_cold(int threads) {
  ColdCaches caches(threads);
  plan_.run_cold(caches);
}

void rest_before_timing() {
  adopt_orphans();
  idle_threads().look_again();
  if (!idle_threads().wait_until_idle()) idle_threads().attribute("");
}

}  // namespace attest
