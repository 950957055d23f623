#include "harness/judge/judge_folder.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "harness/backends/isolation/worker_process.h"
#include "harness/base/interrupted.h"
#include "harness/base/stopwatch.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/judge/judge.h"
#include "harness/judge/judging_process.h"
#include "harness/judge/submission_files.h"
#include "harness/speed/machine/pinning.h"

namespace attest {
namespace {

/// A judging process that takes so much longer than its budget is ended. What has begun takes its time even so.
constexpr double kMostOfBudget = 2, kMoreSeconds = 20;

struct Entry {
  std::filesystem::path path;
  std::string name;
};

/// "" where the files can't be told: judging says why.
std::string content_of(const std::filesystem::path& path) {
  try {
    return fingerprint_of(submission_files(path));
  } catch (const std::exception&) {
    return "";
  }
}

/// What a submission gets whose judging process came to no judgement.
std::string judgement_without_end(const Entry& entry, const Task& task, std::uint64_t seed, const std::string& reason,
                                  double seconds) {
  JudgedSubmission judged;
  judged.submission = entry.name;
  judged.content = content_of(entry.path);
  judged.verdict = Judged::fail;
  judged.reason = reason;
  judged.seconds = seconds;
  return json_of(judged, task, seed, true);
}

class FolderRun {
 public:
  FolderRun(const Task& task, const FolderSettings& settings, ResultLines& lines)
      : task_(task), settings_(settings), lines_(lines), mark_(mark_of_seed(settings.secret_seed)) {}

  FolderOutcome run(const std::vector<std::filesystem::path>& paths);

 private:
  bool is_earlier(const Entry& entry);
  void judge_all(const std::vector<int>& processors);
  void judge_one(const Entry& entry, int threads);
  void keep(const RankedSubmission& judgement, const std::string& line);

  const Task& task_;
  const FolderSettings& settings_;
  ResultLines& lines_;
  std::string mark_;
  std::vector<Entry> entries_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::size_t total_ = 0;
  FolderOutcome outcome_;
  std::exception_ptr failure_;  ///< that ends the run
};

bool FolderRun::is_earlier(const Entry& entry) {
  const auto& earlier = lines_.earlier();
  if (earlier.empty()) return false;
  const std::string content = content_of(entry.path);
  if (content.empty()) return false;
  const auto found = std::find_if(earlier.rbegin(), earlier.rend(), [&](const RankedSubmission& one) {
    return one.submission == entry.name && one.content == content && one.task_content == task_.content &&
           one.seed == mark_;
  });
  if (found == earlier.rend()) return false;
  outcome_.judgements.push_back(*found);
  ++outcome_.earlier;
  return true;
}

void FolderRun::keep(const RankedSubmission& judgement, const std::string& line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  lines_.append(line);
  outcome_.judgements.push_back(judgement);
  if (settings_.told) settings_.told(judgement, outcome_.judgements.size() + outcome_.not_judged.size(), total_);
}

void FolderRun::judge_one(const Entry& entry, int threads) {
  JudgingProcess process;
  process.words = {entry.path.string(), "--secret-seed",        "-", "--json", "-", "--one-line",
                   "--threads",         std::to_string(threads)};
  process.words.insert(process.words.end(), settings_.words.begin(), settings_.words.end());
  process.input = std::to_string(settings_.secret_seed) + "\n";
  process.limit = std::chrono::milliseconds(
      static_cast<std::int64_t>(1e3 * (kMostOfBudget * settings_.budget_seconds + kMoreSeconds)));
  const Stopwatch watch;
  const JudgingEnd end = run_judging(process);
  if (interrupted) return;
  std::string line = end.output;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  OrderedJson json = OrderedJson::parse(line, nullptr, false);
  if (!is_judgement(json) || line.find('\n') != std::string::npos) {
    if (WIFEXITED(end.status) && WEXITSTATUS(end.status) != 0 && !end.timed_out) {
      const std::lock_guard<std::mutex> lock(mutex_);
      outcome_.not_judged.push_back(printable_line(entry.name) + ": " + printable_line(end.words));
      return;
    }
    line = judgement_without_end(entry, task_, settings_.secret_seed,
                                 end.timed_out ? fmt::format("judging it took more than {:g} s",
                                                             static_cast<double>(process.limit.count()) / 1000)
                                               : "judging it was " + text_of_status(end.status),
                                 watch.seconds());
    json = OrderedJson::parse(line);
  }
  keep(judgement_from_json(json), line);
}

void FolderRun::judge_all(const std::vector<int>& processors) {
  try {
    pin_to(processors);
    const int threads = settings_.threads > 0 ? settings_.threads : static_cast<int>(processors.size());
    for (std::size_t n = next_++; n < entries_.size() && !interrupted; n = next_++) judge_one(entries_[n], threads);
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    next_ = entries_.size();
  }
}

FolderOutcome FolderRun::run(const std::vector<std::filesystem::path>& paths) {
  const std::vector<int> all = own_processors();
  if (static_cast<int>(all.size()) < std::max(1, settings_.threads) * settings_.jobs) {
    throw UserError(fmt::format("--jobs {}: each submission has {} processor(s) of its own, and there are {}",
                                settings_.jobs, std::max(1, settings_.threads), all.size()));
  }
  total_ = paths.size();
  for (const std::filesystem::path& path : paths) {
    Entry entry{path, name_of_submission(path)};
    if (!is_earlier(entry)) entries_.push_back(std::move(entry));
  }
  const std::vector<std::vector<int>> parts = parts_of(all, settings_.jobs);
  std::vector<std::thread> threads;
  for (const std::vector<int>& processors : parts) threads.emplace_back([this, &processors] { judge_all(processors); });
  for (std::thread& thread : threads) thread.join();
  if (failure_) std::rethrow_exception(failure_);
  outcome_.interrupted = interrupted;
  return std::move(outcome_);
}

}  // namespace

FolderOutcome judge_folder(const std::filesystem::path& folder, const Task& task, const FolderSettings& settings,
                           ResultLines& lines) {
  const std::vector<std::filesystem::path> paths = submissions_in(folder);
  if (paths.empty())
    throw UserError(folder.string() +
                    ": holds no submission, which is a file .c, .cc, .cpp, .so or .py, a solution .json, or a folder");
  return FolderRun(task, settings, lines).run(paths);
}

}  // namespace attest
