#include "harness/speed/trust/processor_time.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "harness/speed/machine/cpu_clock.h"
#include "harness/speed/trust/thread_demand.h"

namespace attest {
namespace {

/// Of children that have ended and were waited for, with theirs.
double ended_children() {
  rusage usage{};
  if (system_call(SYS_getrusage, RUSAGE_CHILDREN, reinterpret_cast<long>(&usage)) != 0) return 0;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The same of another process.
double ended_children_of(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field <= 15; ++field) rest >> skipped;
  double user = 0, system = 0;  // fields 16 and 17, in ticks
  rest >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Those of one process, by each of its threads.
std::vector<int> children_of(const std::string& process) {
  std::vector<int> children;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + process + "/task", error)) {
    std::ifstream file(task.path() / "children");
    for (int child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

std::map<int, ProcessorTime::Process> ProcessorTime::living() {
  std::map<int, Process> processes;
  std::vector<int> next = children_of("self");
  while (!next.empty()) {
    const int process = next.back();
    next.pop_back();
    if (processes.contains(process)) continue;
    const double own = seconds_of_clock(process_clock(process));
    if (own < 0) continue;  // it has ended meanwhile
    processes[process] = {own, ended_children_of(process)};
    const std::vector<int> children = children_of(std::to_string(process));
    next.insert(next.end(), children.begin(), children.end());
  }
  return processes;
}

ProcessorTime::ProcessorTime() : waited_for_(ended_children()) {
  each_other_thread([&](int thread, const std::filesystem::path&) { threads_.push_back(thread); });
  for (const auto& [number, process] : living()) known_[number].before = process;
}

/// The clock of a process is behind by up to a tick of the system for each thread that runs at the moment; asking the
/// clock of such a thread brings it up to date.
double ProcessorTime::process_seconds() const {
  for (const int thread : threads_) seconds_of_clock(thread_clock(thread));
  return process_cpu_seconds();
}

void ProcessorTime::begin_run() {
  for (auto& [number, descendant] : known_) descendant.at_begin = seconds_of_clock(process_clock(number));
  at_begin_ = process_seconds();
}

void ProcessorTime::end_run() {
  own_ += process_seconds() - at_begin_;
  for (auto& [number, descendant] : known_) {
    const double now = seconds_of_clock(process_clock(number));
    if (now > descendant.at_begin && descendant.at_begin >= 0) descendant.in_runs += now - descendant.at_begin;
  }
}

double ProcessorTime::descendants() const {
  double seconds = ended_children() - waited_for_;
  const std::map<int, Process> now = living();
  for (const auto& [number, process] : now) {
    const auto found = known_.find(number);
    if (found == known_.end())
      seconds += process.own + process.ended;
    else
      seconds += found->second.in_runs + process.ended - found->second.before.ended;
  }
  // What somebody waited for has all that it ever took in that account, and what it took before is none of this.
  for (const auto& [number, descendant] : known_) {
    if (!now.contains(number)) seconds -= descendant.before.own + descendant.before.ended;
  }
  return std::max(0.0, seconds);
}

}  // namespace attest
