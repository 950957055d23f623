// A run of four verdicts as reports see it: for the tests of each of them.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "harness/report/report.h"

namespace attest {

inline Verdict verdict_of(const std::string& backend, Status status, const std::string& case_line,
                          const std::string& cause = "", const std::string& reason = "") {
  Verdict v;
  v.suite = "smoke";
  v.case_line = case_line;
  v.backend = backend;
  v.status = status;
  v.cause = cause_from_text(cause);
  v.reason = reason;
  v.seconds.run = 0.25;
  v.repro = "attest check --backend " + backend + " '" + case_line + "'";
  return v;
}

/// A pass, two failures alike, a refusal; then the smallest case of the failures, what would make them right, and a
/// complaint about the run.
inline void report_a_run(Report& report) {
  RunInfo info;
  info.command = {"attest", "check"};
  info.backends = {{"good", "loops", "CPU"}, {"bad", "kernels", "GPU"}};
  info.unavailable = {{"absent", "no device"}};
  info.cases = 2;
  report.begin(info);
  Verdict pass = verdict_of("good", Status::pass, "seq=4 dim=4");
  pass.error_over_bound = 0.5;
  Counts counts;
  const Verdict verdicts[] = {pass, verdict_of("bad", Status::fail, "seq=4 dim=4", "outside the bound", "o is <wrong>"),
                              verdict_of("bad", Status::fail, "seq=8 dim=4", "outside the bound", "o is \x01 worse"),
                              verdict_of("good", Status::refused, "seq=8 dim=4", "", "too long & wide")};
  for (const Verdict& verdict : verdicts) {
    counts.add(verdict);
    report.verdict(verdict);
  }
  report.shrunk(verdicts[1], verdict_of("bad", Status::fail, "seq=1 dim=1", "outside the bound", "o is wrong"));
  report.right_if({"bad", "stored_weights=bf16 for calls in f32", "arithmetic={\"stored_weights\": \"bf16\"}"});
  report.end(counts, 1.5, {"good refuses what is not listed"});
}

/// What a report writes into a file.
inline std::string written_report(std::unique_ptr<Report> (*make)(const std::filesystem::path&)) {
  const auto path = std::filesystem::temp_directory_path() / ("attest_report." + std::to_string(getpid()));
  report_a_run(*make(path));
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  return text.str();
}

}  // namespace attest
