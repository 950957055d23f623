// Failures where people look at the code: commands of GitHub's workflows, on standard output or standard error.
#include <fmt/format.h>

#include <utility>

#include "harness/base/text.h"
#include "harness/report/report.h"

namespace attest {
namespace {

constexpr std::size_t kMost = 10;  ///< of a step: GitHub shows no more

/// Percent, and the ends of lines, which would end the command; in a property its separators, too.
std::string encoded(const std::string& text, const char* separators) {
  std::string result;
  for (const char c : printable_line(text)) {
    const bool special = c == '%' || std::string_view(separators).find(c) != std::string_view::npos;
    result += special ? fmt::format("%{:02X}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return result;
}

std::string property(const std::string& text) { return encoded(text, ":,"); }
std::string data(const std::string& text) { return encoded(text, ""); }

class GithubAnnotations : public Report {
 public:
  GithubAnnotations(std::FILE* out, std::function<CasePlace(const Verdict&)> place_of)
      : out_(out), place_of_(std::move(place_of)) {}

  void verdict(const Verdict& v) override {
    if (!is_failure(v) || !has_room()) return;
    const CasePlace place = place_of_(v);
    std::string where;
    if (!place.file.empty()) where = "file=" + property(place.file) + ',';
    if (place.line > 0) where += fmt::format("line={},", place.line);
    tell(where, fmt::format("attest: {} {}", v.backend, name_of(v.status)),
         v.case_line + ": " + v.reason + "; repeat: " + v.repro);
  }

  void end(const Counts&, double, const std::vector<std::string>& problems) override {
    for (const std::string& problem : problems) {
      if (has_room()) tell("", "attest", problem);
    }
    if (left_out_ > 0) {
      const std::string text = fmt::format("::notice title=attest::{} more failures are in the log\n", left_out_);
      std::fwrite(text.data(), 1, text.size(), out_);
    }
    std::fflush(out_);
  }

 private:
  bool has_room() {
    if (told_ < kMost) return true;
    ++left_out_;
    return false;
  }

  void tell(const std::string& where, const std::string& title, const std::string& message) {
    ++told_;
    const std::string text = "::error " + where + "title=" + property(title) + "::" + data(message) + '\n';
    std::fwrite(text.data(), 1, text.size(), out_);
  }

  std::FILE* out_;
  std::function<CasePlace(const Verdict&)> place_of_;
  std::size_t told_ = 0, left_out_ = 0;
};

}  // namespace

std::unique_ptr<Report> github_annotations(std::FILE* out, std::function<CasePlace(const Verdict&)> place_of) {
  return std::make_unique<GithubAnnotations>(out, std::move(place_of));
}

}  // namespace attest
