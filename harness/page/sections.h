// The sections of a page, each as the data that page.mustache lays out. Text in them is not escaped yet, but has no
// control characters; drawings stand under keys that end in "svg" and are the only markup.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/page/result_files.h"

namespace attest {

using SectionJson = nlohmann::json;

/// The same colour and shape for a backend in every chart of a page, in the order in which they come.
class BackendStyles {
 public:
  std::size_t of(const std::string& backend) { return styles_.try_emplace(backend, styles_.size()).first->second; }

 private:
  std::map<std::string, std::size_t> styles_;
};

/// Ids of drawings, which are unique in a page.
class DrawingIds {
 public:
  std::string next() { return "d" + std::to_string(++count_) + "-"; }

 private:
  int count_ = 0;
};

struct PageContext {
  BackendStyles styles;
  DrawingIds ids;
};

/// What was run, what was found, the worst error, and whether it is good news.
SectionJson headline_json(const ResultFiles& results);
/// Command, machine, versions and commit of each file.
SectionJson origins(const ResultFiles& results);

// Of checks. Empty lists where there is nothing to show.

/// By backend and cause, the most frequent first: how often, the repro line, the shrunk case, the map of one.
SectionJson failure_groups(const std::vector<CheckResults>& checks, PageContext& page);
/// Backends down, suites across.
SectionJson verdict_matrix(const std::vector<CheckResults>& checks);
/// Of runs that have cases in common: what each backend came to in each, and the cases whose verdicts differ, those
/// that fail in the last run before the others. Empty where no two have.
SectionJson runs_side_by_side(const std::vector<CheckResults>& checks);
/// Refused, suspect, inconclusive and waived, by backend and reason.
SectionJson reasons_beside_passes(const std::vector<CheckResults>& checks);
/// What share of the cases of a type lies at or below an error/bound, a line for each backend.
SectionJson error_distributions(const std::vector<CheckResults>& checks, PageContext& page);
/// The data of the case table, for a script: a list of strings, rows that point into it, and each run with its first
/// row.
std::string case_table_json(const std::vector<CheckResults>& checks);

/// Tables and charts of one benchmark file.
SectionJson speed_section(const BenchResults& bench, PageContext& page);
SectionJson comparison_section(const CompareResults& comparison, PageContext& page);
/// Of one file a ranking for each task and seed, the last ones first.
SectionJson ranking_sections(const JudgementFile& file);

/// "1,234".
std::string counted(std::size_t number);
/// "1 case", "2 cases".
std::string counted(std::size_t number, const std::string& what);
/// Four digits; "inf" and "nan" as words; a dash where there is no number.
std::string shown(const std::optional<double>& number);

}  // namespace attest
