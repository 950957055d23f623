#include "harness/backends/isolation/memory_watch.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>
#include <vector>

#include "harness/backends/isolation/shared_memory.h"
#include "harness/base/machine.h"

namespace attest {
namespace {

constexpr double kShareOfFree = 0.8;
constexpr std::int64_t kBetweenLooks = 5'000'000;  ///< nanoseconds, in which little can be written

std::mutex watches_lock;
std::vector<MemoryWatch*> watches;  ///< of all workers of this process

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

double default_worker_memory() {
  static const double share = kShareOfFree * available_memory_bytes();
  return share;
}

std::string gib_text(double bytes) { return fmt::format("{:.3g} GiB", bytes / 0x1p30); }

double own_memory(pid_t process, double shared_file) {
  double size = 0, resident = 0, shared = 0;  // pages
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  if (!(file >> size >> resident >> shared)) return 0;
  const auto page = static_cast<double>(page_size());
  // Libraries are shared, too, but a start holds them already.
  return (resident - shared) * page + std::max(0.0, shared * page - shared_file);
}

std::int64_t processes_ended_for_memory() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  for (std::int64_t value = 0; file >> name >> value;) {
    if (name == "oom_kill") return value;
  }
  return 0;
}

MemoryWatch::MemoryWatch(pid_t process, double gib)
    : process_(process), limit_(gib * 0x1p30), ended_before_(processes_ended_for_memory()) {
  default_worker_memory();  // of what is free before workers take any
  const std::lock_guard lock(watches_lock);
  watches.push_back(this);
}

MemoryWatch::~MemoryWatch() {
  const std::lock_guard lock(watches_lock);
  std::erase(watches, this);
}

void MemoryWatch::begin() {
  const std::lock_guard lock(watches_lock);
  start_ = now_;
  begun_ = true;
}

void MemoryWatch::look(double shared_file, double own_in_file) {
  const double memory = own_memory(process_, shared_file) + std::max(0.0, own_in_file);
  const std::lock_guard lock(watches_lock);
  looked_ns_ = now_ns();
  now_ = memory;
  if (has_own_limit()) {
    if (taken() > limit_) end_it(limit_);
    return;
  }
  double all = 0;
  MemoryWatch* most = this;
  for (MemoryWatch* one : watches) {
    if (one->has_own_limit()) continue;
    all += std::max(0.0, one->taken());
    if (one->taken() > most->taken()) most = one;
  }
  if (all > default_worker_memory()) most->end_it(default_worker_memory());
}

bool MemoryWatch::due() const { return now_ns() - looked_ns_ > kBetweenLooks; }

std::string MemoryWatch::excess() const {
  const std::lock_guard lock(watches_lock);
  return excess_;
}

/// Its owner finds it dead and asks excess().
void MemoryWatch::end_it(double limit) {
  if (excess_.empty()) {
    excess_ = fmt::format("it took {} and might take {}, see --memory", gib_text(taken()), gib_text(limit));
  }
  kill(process_, SIGKILL);
  now_ = start_;
}

}  // namespace attest
