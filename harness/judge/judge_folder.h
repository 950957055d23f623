// A folder of submissions, judged one by one or several at a time, and taken up again where it was left.
//
// Each is judged by a process of its own, which has some of the processors for itself and for what it starts: nothing
// of one submission runs on those of another. They share memory and caches beyond a core; the baseline is timed on the
// same processors in turn with the submission, and so suffers from that alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/judge/result_lines.h"
#include "harness/judge/task.h"

namespace attest {

struct FolderSettings {
  std::vector<std::string> words;  ///< options of each, besides those below
  std::uint64_t secret_seed = 0;   ///< the same for all: they meet the same cases
  double budget_seconds = 60;      ///< of each
  int jobs = 1;                    ///< at a time
  int threads = 0;                 ///< that each is given; 0: as many as it has processors
  /// Told of each as soon as it is judged, and how many are; from any thread, one at a time.
  std::function<void(const RankedSubmission&, std::size_t done, std::size_t of)> told{};
};

struct FolderOutcome {
  std::vector<RankedSubmission> judgements;  ///< earlier ones of the same submission, task and seed among them
  std::size_t earlier = 0;                   ///< and how many these are
  std::vector<std::string> not_judged;       ///< a sentence each: no fault of the submission
  bool interrupted = false;
};

/// Appends each judgement to `lines` when it is there. Throws UserError where the folder holds no submission, or there
/// are too few processors; OutputError.
FolderOutcome judge_folder(const std::filesystem::path& folder, const Task& task, const FolderSettings& settings,
                           ResultLines& lines);

}  // namespace attest
