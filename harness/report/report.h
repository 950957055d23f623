// What a run of `check` leaves behind: lines on the console, JSON Lines, JUnit, a summary and annotations for CI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/report/counts.h"
#include "harness/report/run_info.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// How a run came to its end, beside its verdicts.
struct Ending {
  bool interrupted = false;
  std::size_t verdicts_wanted = 0;  ///< as many as there would be uninterrupted
  std::size_t taken_over = 0;       ///< of an earlier run
  std::vector<Verdict> left;        ///< of the earlier run: not asked for, or not come to
};

/// A statement under which every failing case of a backend would be right (harness/probe/right_if.h).
struct RightIfTold {
  std::string backend;
  std::string statement;  ///< "stored_weights=bf16 for calls in bf16"
  std::string code;       ///< how it is written where the backend is
  /// "would be right if it states stored_weights=bf16 for calls in bf16: arithmetic={"stored_weights": "bf16"}"
  std::string sentence() const { return "would be right if it states " + statement + ": " + code; }
};

/// Receives every verdict of a run, in order. Of a run on several ranks it is told each when it comes, and all of them
/// in order at the end.
class Report {
 public:
  virtual ~Report() = default;
  virtual void begin(const RunInfo&) {}
  /// The case that comes next takes `multiply_adds` on each backend, which is long.
  virtual void long_case(const std::string& case_line, double multiply_adds) {
    (void)case_line;
    (void)multiply_adds;
  }
  /// On several ranks: a verdict has come. verdict() tells it again.
  virtual void arrival(const Verdict&) {}
  virtual void verdict(const Verdict&) = 0;
  /// What is being done from now on, after the last case: a few words.
  virtual void stage(const std::string& what) { (void)what; }
  /// `small` is the smallest case found that fails like `failure`, on the same backend.
  virtual void shrunk(const Verdict& failure, const Verdict& small) {
    (void)failure;
    (void)small;
  }
  /// The failing cases of a backend would all be right if it stated something else of its arithmetic.
  virtual void right_if(const RightIfTold&) {}
  /// Comes before end().
  virtual void ending(const Ending&) {}
  /// Throws OutputError when a file could not be written. `problems`: complaints about the run as a whole, such as
  /// refusals that are not in a backend's list.
  virtual void end(const Counts& counts, double seconds, const std::vector<std::string>& problems) = 0;
};

/// Header, one object per verdict, summary, as harness/FILES.md says; NaN and infinities are strings. "-" is standard
/// output.
std::unique_ptr<Report> json_lines_report(const std::filesystem::path& path);
std::unique_ptr<Report> junit_report(const std::filesystem::path& path);

enum class Detail : std::uint8_t { quiet, normal, verbose };

struct ConsoleSettings {
  std::FILE* out = stdout;                 ///< all but a table that is CSV or Markdown
  TableFormat format = TableFormat::text;  ///< of the table of backends
  std::FILE* table = stdout;               ///< where it goes when it is no text
  Detail detail = Detail::normal;          ///< quiet: failures and the answer; verbose: each verdict, all cases
  bool colored = false;
  bool progress = true;  ///< on a terminal
};

/// Failures as they come, progress on a terminal; at the end the answer, a table of the backends, and all that isn't a
/// pass by its reason. Names and reasons are escaped.
std::unique_ptr<Report> console_report(const ConsoleSettings& settings = {});

/// Appends Markdown to a file, at the end and at once: the answer, the table, failures with the commands that repeat
/// them, what was inconclusive or waived. Throws UserError when the file can't be written to.
std::unique_ptr<Report> markdown_summary(const std::filesystem::path& path);

/// Where a case stands, for people who look at its file.
struct CasePlace {
  std::string file;  ///< empty: on the command line
  int line = 0;      ///< from 1; 0: the file itself is the case
};

/// Commands of GitHub's workflows, a line each: ::error for failures and complaints, ten at most, as GitHub shows them.
std::unique_ptr<Report> github_annotations(std::FILE* out, std::function<CasePlace(const Verdict&)> place_of);

}  // namespace attest
