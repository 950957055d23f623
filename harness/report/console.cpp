// The console: short while all is well, exact when something fails.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>

#include "harness/base/terminal.h"
#include "harness/base/text.h"
#include "harness/cases/long_case.h"
#include "harness/report/report.h"
#include "harness/report/run_tally.h"
#include "harness/verdict/printed_command.h"

namespace attest {
namespace {

constexpr std::size_t kShownFailures = 10;  ///< printed as they come; the rest only in groups
constexpr std::size_t kShownPerGroup = 3;   ///< cases
constexpr std::size_t kShownGroups = 20;
constexpr std::size_t kLongestCase = 90;  ///< characters, in tables

const char* word_for(Status status) {
  switch (status) {
    case Status::crashed: return "CRASHED";
    case Status::timeout: return "TIMEOUT";
    case Status::suspect: return "SUSPECT";
    case Status::flaky: return "FLAKY";
    default: return "FAIL";
  }
}

class ConsoleReport : public Report {
 public:
  explicit ConsoleReport(const ConsoleSettings& settings)
      : settings_(settings),
        most_per_group_(verbose() ? std::numeric_limits<std::size_t>::max() : kShownPerGroup),
        most_groups_(verbose() ? std::numeric_limits<std::size_t>::max() : kShownGroups),
        line_(settings.progress ? ProgressLine() : ProgressLine(false)) {}

  void begin(const RunInfo& info) override {
    progress_.unit = "verdicts";
    progress_.wanted = info.verdicts;
    for (const Identity& b : info.backends) identities_[b.name] = b;
    if (quiet()) return;
    // One case is one question: who answered stands in its table.
    if (info.cases > 1 || verbose()) {
      for (const Identity& b : info.backends) say("{:<9} {}\n", shown(b.name), shown(description(b)));
    }
    for (const Unavailable& u : by_reason(info.unavailable))
      say("{:<9} not available: {}\n", shown(u.name), shown(u.reason));
    std::fflush(settings_.out);
  }

  void long_case(const std::string& case_line, double multiply_adds) override {
    line_.clear();
    fmt::print(stderr, "{}\n", long_case_words(case_line, multiply_adds));
  }

  /// In the line of progress alone: what is printed is printed in order.
  void arrival(const Verdict& v) override {
    progress_.failed += is_failure(v);
    ++progress_.done;
    if (v.error_over_bound) progress_.worst = std::max(progress_.worst.value_or(0), *v.error_over_bound);
    if (line_.due()) line_.draw(progress_);
  }

  void verdict(const Verdict& v) override {
    tally_.add(v);
    if (is_failure(v)) {
      if (verbose() || ++shown_ <= kShownFailures) show_failure(v);
    } else if (verbose()) {
      show_verdict(v);
    }
    if (line_.due()) {
      count_progress();
      line_.draw(progress_);
    }
  }

  void stage(const std::string& what) override {
    count_progress();
    progress_.what = what;
    line_.draw_now(progress_);
  }

  void shrunk(const Verdict& failure, const Verdict& small) override { tally_.add_small(failure, small); }

  void right_if(const RightIfTold& told) override { tally_.add_right_if(told); }

  void ending(const Ending& ending) override { ending_ = ending; }

  void end(const Counts& counts, double seconds, const std::vector<std::string>& problems) override {
    line_.clear();
    const Answer answer = tally_.answer(ending_, problems.size());
    say("{}{}\n", quiet() ? "" : "\n", colored_text(shown(answer.text()), answer.severity, settings_.colored));
    if (settings_.format != TableFormat::text) print(settings_.table, tally_.backends().printed(settings_.format));
    if (!quiet()) print_details(counts);
    for (const std::string& problem : problems) say("\n{}\n", shown(problem));
    if (!quiet()) print_totals(counts, seconds);
    say("{} passed, {} failed, {} skipped\n", counts.passed(), counts.failures(), counts.skipped());
    std::fflush(settings_.out);
  }

 private:
  std::string fuzz_command(const std::string& name) const {
    const auto found = identities_.find(name);
    return printed_command("fuzz", found == identities_.end() ? Identity{name, "", ""} : found->second);
  }
  bool quiet() const { return settings_.detail == Detail::quiet; }
  bool verbose() const { return settings_.detail == Detail::verbose; }

  /// What files and backends call themselves, on the line where it stands: a line of its own could be taken for one of
  /// attest's, or by a CI for a command.
  static std::string shown(const std::string& text) {
    std::string line = printable_line(text);
    const std::size_t start = line.find_first_not_of(' ');
    if (start != std::string::npos && line.compare(start, 2, "::") == 0) line.replace(start, 1, "\\x3a");
    return line;
  }

  /// Output that can't be written shows at the end, in ferror(): it must not end the run, whose files are more than a
  /// table.
  static void print(std::FILE* out, const std::string& text) { std::fwrite(text.data(), 1, text.size(), out); }
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    print(settings_.out, fmt::format(format, std::forward<Args>(args)...));
  }

  void show_failure(const Verdict& v) {
    line_.clear();
    say("{} {}  {}\n     {}\n     {}\n", colored_text(word_for(v.status), Severity::bad, settings_.colored),
        shown(v.backend), shown(v.case_line), shown(v.reason), shown(v.repro));
    std::fflush(settings_.out);  // it is looked at while the run goes on
  }

  void show_verdict(const Verdict& v) {
    line_.clear();
    const std::string error = v.error_over_bound ? fmt::format("{:.3g}", *v.error_over_bound) : "-";
    const std::string& why = v.status == Status::suspect ? v.waiver : v.reason;
    say("{:<10} {:<10} {:>9}  {}{}\n", v.status == Status::suspect ? "waived" : name_of(v.status), shown(v.backend),
        error, shown(v.case_line), why.empty() ? "" : "   " + shown(why));
    for (const Accuracy& one : v.accuracy) say("{:<31}  {}\n", "", shown(text_of(one)));
  }

  void count_progress() {
    progress_.done = tally_.verdicts();
    progress_.failed = tally_.counts().failures();
    progress_.worst = tally_.worst();
  }

  void print_details(const Counts& counts) {
    const std::size_t longest = verbose() ? std::string::npos : kLongestCase;
    if (settings_.format == TableFormat::text && tally_.verdicts() > 0)
      say("\n{}", tally_.backends(longest).printed(TableFormat::text));
    if (verbose()) say("\n{}\n", kColumnsOfCheck);
    if (const Table table = tally_.distributions(); table.rows() > 0) say("\n{}", table.printed(TableFormat::text));
    if (const Table table = tally_.bits(longest); table.rows() > 0) say("\n{}", table.printed(TableFormat::text));
    print_groups("refused", tally_.refused(), verbose() ? most_per_group_ : 0);
    for (const std::string& name : tally_.refusers())
      say("\n{} refused most of it: {} asks only what it does\n", shown(name), shown(fuzz_command(name)));
    print_groups("inconclusive, their bounds too wide to prove anything", tally_.inconclusive(), most_per_group_);
    print_groups("weak, passed with most bounds of a result as large as its values", tally_.weak(), most_per_group_);
    print_groups("convention, not as attest does it and as the backend states", tally_.convention(), most_per_group_);
    print_groups("waived: suspect, but right by their waivers", tally_.waived(), most_per_group_);
    print_failures();
    if (counts.suspect > 0) {
      say("\n{} suspect: within the bound, but further off than 8 standard deviations; {} of them waived\n",
          counts.suspect, counts.waived);
    }
    if (counts.crashed + counts.timeout > 0) {
      say("\n{} crashed, {} took too long; both count as failed\n", counts.crashed, counts.timeout);
    }
  }

  /// Each with as many cases as `most`.
  void print_groups(const char* title, const std::vector<CaseGroup>& groups, std::size_t most) const {
    if (groups.empty()) return;
    say("\n{}:\n", title);
    for (std::size_t g = 0; g < std::min(groups.size(), most_groups_); ++g) {
      const auto& [name, cases] = groups[g];
      say("  {} x  {}\n", cases.size(), shown(name));
      for (std::size_t n = 0; n < std::min(cases.size(), most); ++n) say("      {}\n", shown(cases[n]));
      if (most > 0 && cases.size() > most) say("      ... and {} more (--verbose)\n", cases.size() - most);
    }
    if (groups.size() > most_groups_) say("  ... and {} more reasons (--verbose)\n", groups.size() - most_groups_);
  }

  void print_failures() const {
    const std::vector<RunTally::Failures> failures = tally_.failures();
    if (failures.empty()) return;
    say("\nfailures by cause:\n");
    for (std::size_t g = 0; g < std::min(failures.size(), most_groups_); ++g) {
      const auto& [name, verdicts, small] = failures[g];
      say("  {} x  {}\n", verdicts.size(), shown(name));
      for (std::size_t n = 0; n < std::min(verdicts.size(), most_per_group_); ++n)
        say("      {}\n", shown(verdicts[n].repro));
      if (verdicts.size() > most_per_group_)
        say("      ... and {} more (--verbose)\n", verdicts.size() - most_per_group_);
      for (const Verdict& one : small) {
        say("    smallest found: {}\n      {}\n", shown(one.repro), shown(one.reason));
        if (!one.not_needed.empty()) say("      not needed: {}\n", join_texts(one.not_needed, ", "));
      }
    }
    if (failures.size() > most_groups_) say("  ... and {} more causes (--verbose)\n", failures.size() - most_groups_);
    for (const std::string& likeness : tally_.likenesses()) say("  {}\n", shown(likeness));
    for (const RightIfTold& told : tally_.right_if()) say("  {} {}\n", shown(told.backend), shown(told.sentence()));
  }

  void print_totals(const Counts& counts, double seconds) const {
    const std::size_t total = counts.passed() + counts.failures() + counts.skipped();
    say("\n{} verdicts in {:.2f} s ({:.0f} a second)\n", total, seconds,
        seconds > 0 ? static_cast<double>(total) / seconds : 0);
    if (ending_.taken_over > 0) say("{} of them taken over from the earlier run\n", ending_.taken_over);
    if (!ending_.left.empty()) {
      say("{} verdicts of the earlier run are none of this one; they are kept in the file\n", ending_.left.size());
    }
    if (ending_.interrupted) say("INTERRUPTED: {} of {} verdicts\n", total, ending_.verdicts_wanted);
  }

  std::map<std::string, Identity> identities_;
  ConsoleSettings settings_;
  std::size_t most_per_group_, most_groups_;
  RunTally tally_;
  Ending ending_;
  Progress progress_;
  ProgressLine line_;
  std::size_t shown_ = 0;
};

}  // namespace

std::unique_ptr<Report> console_report(const ConsoleSettings& settings) {
  return std::make_unique<ConsoleReport>(settings);
}

}  // namespace attest
