#include "harness/speed/machine/machine_watch.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "harness/base/statistics.h"
#include "harness/speed/machine/cpu_clock.h"

namespace attest {
namespace {

/// Shares of a processor beyond which a sample is disturbed.
constexpr double kSteal = 0.05, kOthers = 0.1;
/// /proc/stat counts in ticks of a hundredth of a second, and each of two readings may be one off.
constexpr double kTicks = 0.02;
constexpr double kSlowdown = 1.25;

double megahertz() {
  double kilohertz = 0;
  std::ifstream scaling("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
  if (scaling >> kilohertz) return kilohertz / 1e3;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("cpu MHz")) return std::strtod(line.c_str() + line.find(':') + 1, nullptr);
  }
  return 0;
}

}  // namespace

std::string disturbed_by(const Disturbance& d, int threads, int processors) {
  const double ticks = d.seconds > 0 ? kTicks / d.seconds : 0;
  if (d.steal > kSteal + ticks) return fmt::format("a hypervisor kept {:.2f} processors", d.steal);
  const double free = std::max(0, processors - threads);
  if (d.others > free + kOthers + ticks) return fmt::format("other processes used {:.2f} processors", d.others);
  if (d.busy_threads > free)
    return fmt::format("{} thread(s) that another backend left running took processors", d.busy_threads);
  if (d.slowdown > kSlowdown) return fmt::format("a fixed loop took {:.2f} times as long", d.slowdown);
  return "";
}

/// A fifth of a millisecond of multiplications that wait for each other. The faster of two rounds, so that an interrupt
/// doesn't count.
double MachineWatch::calibrate() {
  double fastest = 1e300;
  for (int round = 0; round < 2; ++round) {
    const double seconds = timed([] {
      std::uint64_t x = 1;
      for (int n = 0; n < 50'000; ++n) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
      }
    });
    fastest = std::min(fastest, seconds);
  }
  rounds_.push_back(fastest);
  fastest_ = std::min(fastest_, fastest);
  return fastest;
}

MachineWatch::Ticks MachineWatch::ticks() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (!(file >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal)) return {};
  const auto each = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {(user + nice + system + irq + softirq) / each, steal / each};
}

void MachineWatch::begin() {
  slowest_ = calibrate();
  ticks_ = ticks();
  cpu_ = process_cpu_seconds();
  watch_ = Stopwatch();
}

Disturbance MachineWatch::end() {
  Disturbance d;
  d.seconds = watch_.seconds();
  const Ticks now = ticks();
  const double own = process_cpu_seconds() - cpu_;
  d.slowdown = std::max(slowest_, calibrate()) / fastest_;
  d.steal = (now.steal - ticks_.steal) / d.seconds;
  d.others = std::max(0.0, now.busy - ticks_.busy - own) / d.seconds;
  getloadavg(&d.load, 1);
  d.megahertz = megahertz();
  return d;
}

double MachineWatch::calibration_spread() const {
  const double middle = median(rounds_);
  return middle > 0 ? (quantile(rounds_, 0.75) - quantile(rounds_, 0.25)) / middle : 0;
}

}  // namespace attest
