// The console: short while all is well, exact when something fails.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <tuple>

#include "harness/base/text.h"
#include "harness/cases/long_case.h"
#include "harness/report/report.h"

namespace attest {
namespace {

constexpr std::size_t kShownFailures = 10;  ///< printed as they come; the rest only in groups
constexpr std::size_t kShownPerCause = 3;
constexpr std::size_t kWorthDistribution = 5;  ///< cases

/// Prints what files and backends call themselves without their control characters. Output that can't be written shows
/// at the end, in ferror(stdout): it must not end the run, whose files are more than a table.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = printable(fmt::format(format, std::forward<Args>(args)...));
  std::fwrite(text.data(), 1, text.size(), stdout);
}

std::string shortened(const std::string& text, std::size_t max_size) {
  return text.size() <= max_size ? text : text.substr(0, max_size - 3) + "...";
}

const char* word_for(Status status) {
  switch (status) {
    case Status::crashed: return "CRASHED";
    case Status::timeout: return "TIMEOUT";
    case Status::suspect: return "SUSPECT";
    default: return "FAIL";
  }
}

class ConsoleReport : public Report {
 public:
  ConsoleReport() : terminal_(isatty(STDERR_FILENO) != 0) {}

  void begin(const RunInfo& info) override {
    verdicts_expected_ = info.cases * info.backends.size();
    for (const Identity& b : info.backends) say("{:<9} {} on {}\n", b.name, b.library, b.device);
    for (const Unavailable& u : info.unavailable) say("{:<9} not available: {}\n", u.name, u.reason);
    std::fflush(stdout);
  }

  void long_case(const std::string& case_line, double multiply_adds) override {
    clear_progress();
    fmt::print(stderr, "{}\n", long_case_words(case_line, multiply_adds));
  }

  void verdict(const Verdict& v) override {
    Line& line = lines_[v.backend];
    line.counts.add(v);
    if (v.status == Status::pass && v.error_over_bound && v.backend != "reference") {
      ratios_[{v.suite, v.backend, std::string(name_of(v.dtype))}].push_back(*v.error_over_bound);
    }
    if (v.bitwise) {
      count_fact(v, "in every run", v.bitwise->runs);
      count_fact(v, "with other threads", v.bitwise->threads);
      count_fact(v, "without the rest of the batch", v.bitwise->batch);
    }
    if (!is_failure(v) && v.error_over_bound && *v.error_over_bound >= line.worst) {
      line.worst = *v.error_over_bound;
      line.worst_case = v.case_line;
    }
    if (is_failure(v)) {
      failures_[v.backend + ": " + v.cause].push_back(v);
      if (++shown_ <= kShownFailures) {
        clear_progress();
        say("{} {}  {}\n     {}\n     {}\n", word_for(v.status), v.backend, v.case_line, v.reason, v.repro);
      }
    } else if (v.status == Status::refused) {
      ++refusals_[v.backend + ": " + v.reason];
    }
    ++done_;
    progress();
  }

  void shrunk(const Verdict& failure, const Verdict& small) override {
    small_[failure.backend + ": " + failure.cause].push_back(small);
  }

  void ending(const Ending& ending) override { ending_ = ending; }

  void end(const Counts& counts, double seconds, const std::vector<std::string>& problems) override {
    clear_progress();
    say("\n{:<10} {:>7} {:>6} {:>8} {:>11}   {:>11}  {}\n", "backend", "pass", "fail", "refused", "mistrusted",
        "error/bound", "largest of the passing cases at");
    for (const auto& [name, line] : lines_) {
      say("{:<10} {:>7} {:>6} {:>8} {:>11}   {:>11.3g}  {}\n", name, line.counts.pass, line.counts.failures(),
          line.counts.refused, line.counts.mistrusted, line.worst, shortened(line.worst_case, 90));
    }
    print_distribution();
    if (!facts_.empty()) say("\nthe same bits\n");
    for (const auto& [key, fact] : facts_) {
      say("  {:<10} {:<30} {} of {}{}\n", key.first, key.second, fact.same, fact.asked,
          fact.first_other.empty() ? "" : "   not: " + shortened(fact.first_other, 60));
    }
    if (!refusals_.empty()) say("\nrefused:\n");
    for (const auto& [reason, count] : refusals_) say("  {} x  {}\n", count, reason);
    if (!failures_.empty()) say("\nfailures by cause:\n");
    for (const auto& [cause, list] : failures_) {
      say("  {} x  {}\n", list.size(), cause);
      for (std::size_t n = 0; n < std::min(list.size(), kShownPerCause); ++n) say("      {}\n", list[n].repro);
      if (list.size() > kShownPerCause) say("      ... and {} more\n", list.size() - kShownPerCause);
      for (const Verdict& small : small_[cause]) {
        say("    smallest found: {}\n      {}\n", small.repro, small.reason);
      }
    }
    for (const std::string& problem : problems) say("\n{}\n", problem);
    const std::size_t total = counts.pass + counts.failures() + counts.skipped();
    if (counts.mistrusted > 0)
      say("\n{} mistrusted: their bounds were too wide to prove anything\n", counts.mistrusted);
    if (counts.suspect > 0) {
      say("\n{} suspect: within the bound, but further off than 8 standard deviations; {} of them waived\n",
          counts.suspect, counts.waived);
    }
    if (counts.crashed + counts.timeout > 0) {
      say("\n{} crashed, {} took too long; both count as failed\n", counts.crashed, counts.timeout);
    }
    say("\n{} verdicts in {:.2f} s ({:.0f} a second); {} refused, {} mistrusted\n", total, seconds,
        seconds > 0 ? static_cast<double>(total) / seconds : 0, counts.refused, counts.mistrusted);
    print_ending(total);
    say("{} passed, {} failed, {} skipped\n", counts.pass, counts.failures(), counts.skipped());
    std::fflush(stdout);
  }

 private:
  struct Line {
    Counts counts;
    double worst = 0;
    std::string worst_case;
  };

  struct Fact {
    std::size_t same = 0, asked = 0;
    std::string first_other;  ///< the first case with other bits
  };

  void count_fact(const Verdict& v, const std::string& name, const std::optional<bool>& same) {
    if (!same) return;
    Fact& fact = facts_[{v.backend, name}];
    ++fact.asked;
    fact.same += *same;
    if (!*same && fact.first_other.empty()) fact.first_other = v.case_line;
  }

  void print_ending(std::size_t total) const {
    if (ending_.taken_over > 0) say("{} of them taken over from the earlier run\n", ending_.taken_over);
    if (!ending_.left.empty()) {
      say("{} verdicts of the earlier run are none of this one; they are kept in the file\n", ending_.left.size());
    }
    if (ending_.interrupted) say("INTERRUPTED: {} of {} verdicts\n", total, ending_.verdicts_wanted);
  }

  /// The largest error/bound of each passing case, over suites with enough cases for it to say something.
  void print_distribution() {
    std::string suite_shown;
    for (auto& [key, list] : ratios_) {
      const auto& [suite, backend, type] = key;
      if (suite.empty() || list.size() < kWorthDistribution) continue;
      std::sort(list.begin(), list.end());
      const auto at = [&sorted = list](double q) {
        return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
      };
      if (suite != suite_shown)
        say("\nerror/bound in {:<14} {:>5} {:>6} {:>10} {:>10} {:>10}\n", suite, "type", "cases", "median", "99%",
            "largest");
      suite_shown = suite;
      say("  {:<26} {:>5} {:>6} {:>10.2g} {:>10.2g} {:>10.2g}\n", backend, type, list.size(), at(0.5), at(0.99), at(1));
    }
  }

  void progress() {
    if (!terminal_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_progress_ < std::chrono::milliseconds(100)) return;
    last_progress_ = now;
    fmt::print(stderr, "\r{} of {} verdicts\x1b[K", done_, verdicts_expected_);
    std::fflush(stderr);
  }

  void clear_progress() const {
    if (terminal_) fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
  }

  bool terminal_;
  Ending ending_;
  std::size_t verdicts_expected_ = 0, done_ = 0, shown_ = 0;
  std::chrono::steady_clock::time_point last_progress_{};
  std::map<std::string, Line> lines_;
  std::map<std::string, std::vector<Verdict>> failures_, small_;  ///< by backend and cause
  std::map<std::string, std::size_t> refusals_;
  std::map<std::pair<std::string, std::string>, Fact> facts_;  ///< by backend and question
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<double>>
      ratios_;  ///< by suite, backend, type
};

}  // namespace

std::unique_ptr<Report> console_report() { return std::make_unique<ConsoleReport>(); }

}  // namespace attest
