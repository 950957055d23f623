// What failed in the last run, for runs of that alone, or of that first.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "harness/report/earlier_run.h"
#include "harness/run/case_lists.h"
#include "harness/verdict/verdict.h"

namespace attest {

class LastFailures {
 public:
  /// Nothing failed.
  LastFailures() = default;
  /// The failures in a file of `check --json`, and those that its run had kept of runs before. Where there is no file,
  /// nothing failed. Throws UserError for a file that can't be read or is none of verdicts.
  explicit LastFailures(const std::filesystem::path& path);

  std::size_t size() const { return verdicts_.size(); }
  /// How many of these cases failed, on any backend.
  std::size_t cases_in(const std::vector<CaseList>& lists) const;
  /// Leaves those that failed, and lists that have one. Where none did, all of them stay.
  void keep(std::vector<CaseList>& lists) const;
  /// Puts those that failed at the beginning of their lists, and lists that have one before others.
  void put_first(std::vector<CaseList>& lists) const;
  /// Failures that a run does not come to are still failures for the next one.
  void hold_in(EarlierRun& earlier) const;

 private:
  bool has(const CaseList& list, const Case& one) const;

  std::vector<Verdict> verdicts_;
  std::set<std::pair<std::string, std::string>> cases_;  ///< by suite and line
};

}  // namespace attest
