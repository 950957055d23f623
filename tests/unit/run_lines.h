// A run of `check` in a test: what its report is told, and what it comes to.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/run/check_run.h"

namespace attest {

struct Ran {
  std::vector<RunInfo> begun;
  std::vector<Verdict> verdicts;
  std::vector<std::pair<Verdict, Verdict>> small;  ///< failures, and the smallest case of each
  int ended = 0;
  CheckOutcome outcome;
};

class KeepingReport : public Report {
 public:
  explicit KeepingReport(Ran& ran) : ran_(ran) {}
  void begin(const RunInfo& info) override { ran_.begun.push_back(info); }
  void verdict(const Verdict& v) override { ran_.verdicts.push_back(v); }
  void shrunk(const Verdict& failure, const Verdict& small) override { ran_.small.emplace_back(failure, small); }
  void end(const Counts&, double, const std::vector<std::string>&) override { ++ran_.ended; }

 private:
  Ran& ran_;
};

inline Ran run_cases(const BackendSet& backends, std::vector<CaseList> cases, CheckSettings settings = {},
                     const std::vector<BackendSet>& other_threads = {}, EarlierRun earlier = {}) {
  Ran ran;
  std::vector<std::unique_ptr<Report>> reports;
  reports.push_back(std::make_unique<KeepingReport>(ran));
  ran.outcome =
      CheckRun(std::move(settings), std::move(cases), backends, other_threads, std::move(earlier), std::move(reports))
          .run();
  return ran;
}
inline Ran run_lines(const BackendSet& backends, const std::vector<std::string>& lines, CheckSettings settings = {},
                     const std::vector<BackendSet>& other_threads = {}, EarlierRun earlier = {}) {
  return run_cases(backends, load_cases({{}, {}, lines}), std::move(settings), other_threads, std::move(earlier));
}

inline CheckSettings without_shrinking() {
  CheckSettings settings;
  settings.shrink = false;
  return settings;
}

}  // namespace attest
