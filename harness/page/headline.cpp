// The first lines of a page: what was run, whether anything failed or got slower, the worst error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/text.h"
#include "harness/page/sections.h"

namespace attest {
namespace {

constexpr std::size_t kMostNames = 10;

std::string names_of(const std::set<std::string>& names, const char* none) {
  if (names.empty()) return none;
  std::vector<std::string> kept(names.begin(), names.end());
  if (kept.size() > kMostNames) {
    const std::size_t more = kept.size() - kMostNames + 1;
    kept.resize(kMostNames - 1);
    kept.push_back(fmt::format("{} more", counted(more)));
  }
  return join_texts(kept, ", ");
}

/// What a page is about in a line, and whether it is good news.
struct Headline {
  std::string ran, found, worst;
  std::vector<std::string> notes;  ///< complaints about the runs, and what would make failing backends right
  bool bad = false;
};

void add(std::string& text, const std::string& more) { text += (text.empty() ? "" : "; ") + more; }

void tell_checks(const std::vector<CheckResults>& checks, Headline& line) {
  if (checks.empty()) return;
  std::set<std::string> suites, backends, cases;
  std::size_t failed = 0, passed = 0, problems = 0, results = 0;
  bool interrupted = false;
  const Verdict* worst = nullptr;
  for (const CheckResults& check : checks) {
    problems += check.problems.size();
    for (const std::string& problem : check.problems) line.notes.push_back(printable_line(problem));
    for (const RightIfTold& told : check.right_if)
      line.notes.push_back(printable_line(told.backend + " " + told.sentence()));
    interrupted = interrupted || check.interrupted;
    for (const Verdict& v : check.verdicts) {
      ++results;
      suites.insert(v.suite.empty() ? "the command line" : printable_line(v.suite));
      backends.insert(printable_line(v.backend));
      cases.insert(v.case_line);
      failed += is_failure(v);
      passed += is_right(v);
      if (v.error_over_bound && (!worst || *v.error_over_bound > *worst->error_over_bound)) worst = &v;
    }
  }
  add(line.ran, fmt::format("check of {} from {} on {}", counted(cases.size(), "case"), names_of(suites, "nowhere"),
                            names_of(backends, "no backend")));
  if (failed > 0)
    add(line.found, fmt::format("{} of {} failed", counted(failed), counted(results, "result")));
  else
    add(line.found,
        passed > 0 ? fmt::format("nothing failed, {} passed", counted(passed)) : "nothing passed and nothing failed");
  if (problems > 0) add(line.found, counted(problems, "complaint") + " about the run");
  if (interrupted) add(line.found, "the run was interrupted");
  line.bad = line.bad || failed > 0 || problems > 0 || interrupted || passed == 0;
  if (worst) {
    line.worst = fmt::format("worst error/bound {} ({}, {})", shown(worst->error_over_bound),
                             printable_line(worst->backend), printable_line(worst->case_line));
  }
}

void tell_benches(const std::vector<BenchResults>& benches, Headline& line) {
  if (benches.empty()) return;
  std::set<std::string> backends, cases;
  double worst = 0;
  std::size_t disturbed = 0;
  bool interrupted = false;
  for (const BenchResults& bench : benches) {
    disturbed += bench.file.disturbed.size();
    interrupted = interrupted || bench.file.interrupted;
    for (const BenchmarkSample& sample : bench.file.all) {
      backends.insert(sample.backend);
      cases.insert(sample.case_line);
      const auto error = sample.numbers.find("error_over_bound");
      if (error != sample.numbers.end()) worst = std::max(worst, error->second);
    }
  }
  add(line.ran, fmt::format("bench of {} on {}", counted(cases.size(), "case"), names_of(backends, "no backend")));
  add(line.found, "every speed is of a right result");
  if (disturbed > 0) add(line.found, counted(disturbed, "speed") + " disturbed");
  if (interrupted) add(line.found, "the bench was interrupted");
  line.bad = line.bad || interrupted;
  if (line.worst.empty() && worst > 0) line.worst = "worst error/bound " + shown(worst);
}

void tell_comparisons(const std::vector<CompareResults>& comparisons, Headline& line) {
  for (const CompareResults& one : comparisons) {
    const ComparisonFile& file = one.file;
    std::size_t slower = 0, faster = 0;
    for (const ComparisonLine& l : file.lines) {
      slower += l.verdict == SpeedVerdict::slower;
      faster += l.verdict == SpeedVerdict::faster;
    }
    const std::size_t gone = file.only_before.size();
    add(line.ran, fmt::format("comparison of {} with {}", file.now.name, file.before.name));
    add(line.found, fmt::format("{} slower, {} faster, {} gone, of {}", counted(slower), counted(faster), counted(gone),
                                counted(file.lines.size() + gone, "speed")));
    line.bad = line.bad || slower > 0 || gone > 0;
  }
}

void tell_judgements(const std::vector<JudgementFile>& files, Headline& line) {
  for (const JudgementFile& file : files) {
    std::size_t passed = 0;
    for (const RankedSubmission& one : file.all) passed += one.verdict == "pass";
    add(line.ran, fmt::format("judgements of {}", counted(file.all.size(), "submission")));
    add(line.found, fmt::format("{} of {} passed", counted(passed), counted(file.all.size())));
  }
}

SectionJson to_json(const Headline& line) {
  SectionJson notes = SectionJson::array();
  for (const std::string& note : line.notes) notes.push_back({{"text", note}});
  return {{"mark", line.bad ? "\u2717" : "\u2713"},

          {"kind", line.bad ? "bad" : "good"},      {"ran", line.ran}, {"found", line.found}, {"worst", line.worst},
          {"has_notes", !line.notes.empty()},       {"notes", notes}};
}

}  // namespace

SectionJson headline_json(const ResultFiles& results) {
  Headline line;
  tell_checks(results.checks, line);
  tell_benches(results.benches, line);
  tell_comparisons(results.comparisons, line);
  tell_judgements(results.judgements, line);
  return to_json(line);
}

std::string counted(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string counted(std::size_t number, const std::string& what) {
  return counted(number) + " " + what + (number == 1 ? "" : "s");
}

std::string shown(const std::optional<double>& number) {
  if (!number) return "\u2013";
  if (std::isnan(*number)) return "nan";
  return std::isinf(*number) ? "inf" : number_words(*number, 4);
}

}  // namespace attest
