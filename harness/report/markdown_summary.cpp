// A page of a CI: what a run came to, as Markdown.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/report/report.h"
#include "harness/report/run_tally.h"

namespace attest {
namespace {

constexpr std::size_t kGroups = 20, kCases = 3;  ///< GitHub takes a MiB from each step, and people less
constexpr std::size_t kLongestText = 1000;       ///< of a name, a reason or a command

/// A file that others append to, too: what is added comes at once, or not at all.
class AppendedFile {
 public:
  explicit AppendedFile(const std::filesystem::path& path) : path_(path) {
    fresh_ = access(path.c_str(), F_OK) != 0;
    descriptor_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
      throw UserError(path.string() + ": can't be written: " + std::strerror(errno) + "; name a file for --summary");
    }
  }
  ~AppendedFile() {
    close(descriptor_);
    if (fresh_ && !written_) unlink(path_.c_str());
  }
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  /// Throws OutputError; the file is then as long as it was.
  void append(const std::string& text) {
    struct stat before {};
    const bool sized = fstat(descriptor_, &before) == 0 && S_ISREG(before.st_mode);
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t done = write(descriptor_, text.data() + at, text.size() - at);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) {
        const int reason = errno;
        if (sized) [[maybe_unused]]
          const int cut = ftruncate(descriptor_, before.st_size);
        throw OutputError(path_.string() + ": could not be written: " + std::strerror(reason));
      }
      at += static_cast<std::size_t>(done);
    }
    written_ = true;
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool fresh_ = false, written_ = false;
};

std::string escaped(const std::string& text) {
  return markdown_text(text.size() <= kLongestText ? text : text.substr(0, kLongestText) + "...");
}

std::string code_of(const std::string& text) { return "<code>" + escaped(text) + "</code>"; }

/// Groups with a few cases of each, and how many more there are.
std::string list_of(const char* title, const std::vector<CaseGroup>& groups, std::size_t most_cases) {
  if (groups.empty()) return "";
  std::string text = fmt::format("\n### {}\n\n", title);
  for (std::size_t g = 0; g < std::min(groups.size(), kGroups); ++g) {
    const auto& [name, cases] = groups[g];
    text += fmt::format("- {} x {}\n", cases.size(), escaped(name));
    for (std::size_t n = 0; n < std::min(cases.size(), most_cases); ++n) text += "  - " + code_of(cases[n]) + '\n';
    if (most_cases > 0 && cases.size() > most_cases)
      text += fmt::format("  - and {} more\n", cases.size() - most_cases);
  }
  if (groups.size() > kGroups) text += fmt::format("- and {} more reasons\n", groups.size() - kGroups);
  return text;
}

std::string failures_of(const RunTally& tally) {
  const std::vector<RunTally::Failures> failures = tally.failures();
  if (failures.empty()) return "";
  std::string text = "\n### Failures by cause\n\n";
  for (std::size_t g = 0; g < std::min(failures.size(), kGroups); ++g) {
    const auto& [name, verdicts, small] = failures[g];
    text += fmt::format("- {} x {}\n", verdicts.size(), escaped(name));
    for (std::size_t n = 0; n < std::min(verdicts.size(), kCases); ++n) {
      text += "  - " + code_of(verdicts[n].repro) + ": " + escaped(verdicts[n].reason) + '\n';
    }
    if (verdicts.size() > kCases) text += fmt::format("  - and {} more\n", verdicts.size() - kCases);
    for (const Verdict& one : small) text += "  - smallest found: " + code_of(one.repro) + '\n';
  }
  if (failures.size() > kGroups) text += fmt::format("- and {} more causes\n", failures.size() - kGroups);
  for (const std::string& likeness : tally.likenesses()) text += "- " + escaped(likeness) + '\n';
  for (const RightIfTold& told : tally.right_if()) {
    text += "- " + escaped(told.backend + " would be right if it states " + told.statement) + ": " +
            code_of(told.code) + '\n';
  }
  return text;
}

class MarkdownSummary : public Report {
 public:
  explicit MarkdownSummary(const std::filesystem::path& path) : file_(path) {}

  void begin(const RunInfo& info) override { unavailable_ = info.unavailable; }
  void verdict(const Verdict& v) override { tally_.add(v); }
  void shrunk(const Verdict& failure, const Verdict& small) override { tally_.add_small(failure, small); }
  void right_if(const RightIfTold& told) override { tally_.add_right_if(told); }
  void ending(const Ending& ending) override { ending_ = ending; }

  void end(const Counts&, double seconds, const std::vector<std::string>& problems) override {
    const Answer answer = tally_.answer(ending_, problems.size());
    std::string text = "## attest: " + escaped(answer.word) + "\n\n" + escaped(answer.rest) + "\n\n";
    if (tally_.verdicts() > 0) text += tally_.backends().printed(TableFormat::markdown);
    for (const Unavailable& u : by_reason(unavailable_))
      text += "\n" + escaped(u.name + " not available: " + u.reason) + '\n';
    if (!problems.empty()) text += "\n### Complaints about the run\n\n";
    for (std::size_t n = 0; n < std::min(problems.size(), kGroups); ++n) text += "- " + escaped(problems[n]) + '\n';
    if (problems.size() > kGroups) text += fmt::format("- and {} more\n", problems.size() - kGroups);
    text += failures_of(tally_);
    text += list_of("Inconclusive: bounds too wide to prove anything", tally_.inconclusive(), kCases);
    text += list_of("Weak: passed, but most bounds are as large as the values", tally_.weak(), kCases);
    text += list_of("Convention: right by what the backend states", tally_.convention(), kCases);
    text += list_of("Waived: suspect, but right by their waivers", tally_.waived(), kCases);
    text += list_of("Refused", tally_.refused(), 0);
    text += fmt::format("\n{} verdicts in {:.2f} s\n\n", tally_.verdicts(), seconds);
    file_.append(text);
  }

 private:
  AppendedFile file_;
  RunTally tally_;
  Ending ending_;
  std::vector<Unavailable> unavailable_;
};

}  // namespace

std::unique_ptr<Report> markdown_summary(const std::filesystem::path& path) {
  return std::make_unique<MarkdownSummary>(path);
}

}  // namespace attest
