// Judgements of `attest judge`, one a line of a file, read back and ranked.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/report/verdict_json.h"

namespace attest {

/// The value of kKindKey in a line of such a file.
inline constexpr const char* kJudgementKind = "judgement";
/// Version of a judgement that this program writes. Keys are added, never altered.
inline constexpr int kJudgementSchema = 1;

/// Of one timed case. Times in seconds.
struct RankedSpeed {
  std::string case_line, reason;  ///< the latter: why there is no speed
  std::optional<double> seconds, low, high, roof_fraction, speedup;
};

struct RankedSubmission {
  std::string submission;                ///< file or folder, as it is called in the folder that was judged
  std::string content;                   ///< fingerprint of its files
  std::string task, task_content, seed;  ///< the latter two: what the cases were drawn from, as fingerprints
  std::string backend, verdict, reason, failing_case, baseline, sandbox, attest;
  std::optional<double> speedup, worst_error_over_bound;
  std::size_t passed = 0, cases = 0;
  std::vector<RankedSpeed> speeds;
  double seconds = 0;  ///< that judging took
};

struct JudgementFile {
  std::string name;  ///< without its folder
  std::vector<RankedSubmission> all;
  std::uintmax_t complete_bytes = 0;  ///< behind them a torn line may follow
};

/// Whether a line of JSON is a judgement.
bool is_judgement(const OrderedJson& json);

/// Of one; what is missing is empty.
RankedSubmission judgement_from_json(const OrderedJson& json);

/// Throws UserError, in one line with the file's path, for a file that can't be read, for a line that is no judgement,
/// and for one of a newer schema. A last line without its end is left out.
JudgementFile read_judgements(const std::filesystem::path& path);

/// The order of merit: passes by their speedup, then passes without one, then what could not be proved, what fails, and
/// what is invalid. What is equal is in the order of names. Of a submission that was judged several times the last
/// judgement counts.
std::vector<RankedSubmission> ranked(std::vector<RankedSubmission> judgements);

/// The table of a ranking, for a terminal.
std::string ranking_table(const std::vector<RankedSubmission>& ranking);

}  // namespace attest
