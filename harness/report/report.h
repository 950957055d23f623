// What a run of `check` leaves behind: lines on the console, JSON Lines, JUnit.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/identity.h"
#include "harness/base/unavailable.h"
#include "harness/report/counts.h"
#include "harness/verdict/verdict.h"

namespace attest {

struct RunInfo {
  std::vector<std::string> command;
  std::vector<Identity> backends;
  std::vector<Unavailable> unavailable;
  std::size_t cases = 0;
};

/// Receives every verdict of a run, in order.
class Report {
 public:
  virtual ~Report() = default;
  virtual void begin(const RunInfo&) {}
  virtual void verdict(const Verdict&) = 0;
  /// `small` is the smallest case found that fails like `failure`, on the same backend.
  virtual void shrunk(const Verdict& failure, const Verdict& small) {
    (void)failure;
    (void)small;
  }
  /// `problems`: complaints about the run as a whole, such as refusals that are not in a backend's list.
  virtual void end(const Counts& counts, double seconds, const std::vector<std::string>& problems) = 0;
};

/// Header, one object per verdict, summary, as harness/FILES.md says; NaN and infinities are strings.
std::unique_ptr<Report> json_lines_report(const std::filesystem::path& path);
std::unique_ptr<Report> junit_report(const std::filesystem::path& path);
/// Failures as they come, progress on a terminal, a table per backend at the end, failures grouped by cause.
std::unique_ptr<Report> console_report();

}  // namespace attest
