#include "harness/speed/trust/thread_demand.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace attest {

void each_other_thread(const std::function<void(int, const std::filesystem::path&)>& look) {
  std::error_code error;
  const int own = static_cast<int>(gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const int thread = std::atoi(task.path().filename().c_str());
    if (thread != own) look(thread, task.path());
  }
}

std::map<int, ThreadTime> times_of_other_threads() {
  std::map<int, ThreadTime> times;
  each_other_thread([&](int thread, const std::filesystem::path& folder) {
    double running = 0, waiting = 0;  // nanoseconds
    std::ifstream file(folder / "schedstat");
    if (file >> running >> waiting) times[thread] = {running * 1e-9, waiting * 1e-9};
  });
  return times;
}

std::set<int> which_work(const std::map<int, ThreadTime>& before, const std::map<int, ThreadTime>& now,
                         double seconds) {
  constexpr double kWanted = 0.2, kRan = 0.03;
  std::set<int> working;
  for (const auto& [thread, time] : now) {
    const auto found = before.find(thread);
    const ThreadTime earlier = found == before.end() ? ThreadTime{} : found->second;
    const double ran = time.running - earlier.running, waited = time.waiting - earlier.waiting;
    if (ran + waited >= kWanted * seconds && ran >= kRan * seconds) working.insert(thread);
  }
  return working;
}

}  // namespace attest
