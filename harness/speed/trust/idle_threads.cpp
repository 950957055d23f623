#include "harness/speed/trust/idle_threads.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "harness/base/interrupted.h"
#include "harness/base/stopwatch.h"
#include "harness/speed/trust/thread_demand.h"

namespace attest {
namespace {

constexpr std::chrono::milliseconds kBetweenGlances{1};

/// The threads but the caller's that have a processor or want one, by what the system says of each.
std::set<int> runnable() {
  std::set<int> threads;
  each_other_thread([&](int thread, const std::filesystem::path& folder) {
    std::ifstream file(folder / "stat");  // 17 (name) R ...
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end != std::string::npos && line.compare(name_end, 3, ") R") == 0) threads.insert(thread);
  });
  return threads;
}

/// Those that are it at every glance: not one that was only woken.
std::set<int> at_work() {
  constexpr int kGlances = 20;
  std::set<int> working = runnable();
  for (int n = 1; n < kGlances && !working.empty(); ++n) {
    std::this_thread::sleep_for(kBetweenGlances);
    const std::set<int> now = runnable();
    std::erase_if(working, [&](int thread) { return !now.contains(thread); });
  }
  return working;
}

}  // namespace

bool IdleThreads::wait_until_idle() const {
  const auto known = [&](int thread) { return busy_.contains(thread); };
  for (const Stopwatch watch; watch.seconds() < kLongest && !interrupted;) {
    const std::set<int> wanting = runnable();
    if (std::all_of(wanting.begin(), wanting.end(), known)) return true;
    std::this_thread::sleep_for(kBetweenGlances);
  }
  return interrupted;
}

int IdleThreads::attribute(const std::string& owner) {
  int added = 0;
  for (const int thread : at_work()) added += busy_.try_emplace(thread, owner).second ? 1 : 0;
  return added;
}

void IdleThreads::look_again() {
  if (busy_.empty()) return;
  const std::set<int> working = at_work();
  std::erase_if(busy_, [&](const auto& one) { return !working.contains(one.first); });
}

bool IdleThreads::left_by(const std::string& owner) const {
  return std::any_of(busy_.begin(), busy_.end(), [&](const auto& one) { return one.second == owner; });
}

IdleThreads& idle_threads() {
  static IdleThreads threads;
  return threads;
}

}  // namespace attest
