// What a run of `check` leaves behind: lines on the console, JSON Lines, JUnit.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/identity.h"
#include "harness/base/unavailable.h"
#include "harness/report/conditions.h"
#include "harness/report/counts.h"
#include "harness/verdict/verdict.h"

namespace attest {

struct RunInfo {
  std::vector<std::string> command;
  Conditions conditions;
  std::vector<Identity> backends;
  std::vector<Unavailable> unavailable;
  std::size_t cases = 0;
};

/// How a run came to its end, beside its verdicts.
struct Ending {
  bool interrupted = false;
  std::size_t verdicts_wanted = 0;  ///< as many as there would be uninterrupted
  std::size_t taken_over = 0;       ///< of an earlier run
  std::vector<Verdict> left;        ///< of the earlier run: not asked for, or not come to
};

/// Receives every verdict of a run, in order.
class Report {
 public:
  virtual ~Report() = default;
  virtual void begin(const RunInfo&) {}
  /// The case that comes next takes `multiply_adds` on each backend, which is long.
  virtual void long_case(const std::string& case_line, double multiply_adds) {
    (void)case_line;
    (void)multiply_adds;
  }
  virtual void verdict(const Verdict&) = 0;
  /// `small` is the smallest case found that fails like `failure`, on the same backend.
  virtual void shrunk(const Verdict& failure, const Verdict& small) {
    (void)failure;
    (void)small;
  }
  /// Comes before end().
  virtual void ending(const Ending&) {}
  /// Throws OutputError when a file could not be written. `problems`: complaints about the run as a whole, such as
  /// refusals that are not in a backend's list.
  virtual void end(const Counts& counts, double seconds, const std::vector<std::string>& problems) = 0;
};

/// Header, one object per verdict, summary, as harness/FILES.md says; NaN and infinities are strings.
std::unique_ptr<Report> json_lines_report(const std::filesystem::path& path);
std::unique_ptr<Report> junit_report(const std::filesystem::path& path);
/// Failures as they come, progress on a terminal, a table per backend at the end, failures grouped by cause.
std::unique_ptr<Report> console_report();

}  // namespace attest
