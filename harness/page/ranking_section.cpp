// Rankings of judged submissions, with each timed case.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "harness/base/text.h"
#include "harness/page/sections.h"

namespace attest {
namespace {

struct RankingMark {
  const char *mark, *kind;
};

RankingMark mark_of(const std::string& verdict) {
  if (verdict == "pass") return {"\u2713", "good"};
  if (verdict == "unproven") return {"?", "none"};
  return {"\u2717", "bad"};
}

std::string milliseconds(const std::optional<double>& seconds) {
  return seconds ? number_words(*seconds * 1e3, 4) : "\u2013";
}

SectionJson speed_row(const RankedSpeed& speed) {
  const bool has_interval = speed.low && speed.high;
  return {{"case", printable_line(speed.case_line)},
          {"run", milliseconds(speed.seconds)},
          {"interval", has_interval ? milliseconds(speed.low) + " to " + milliseconds(speed.high) : ""},
          {"roof", speed.roof_fraction ? fmt::format("{:.1f}%", 100 * *speed.roof_fraction) : "\u2013"},
          {"ratio", shown(speed.speedup)},
          {"reason", printable_line(speed.reason)}};
}

SectionJson ranking_row(const RankedSubmission& one, std::size_t place) {
  const RankingMark mark = mark_of(one.verdict);
  SectionJson speeds = SectionJson::array();
  for (const RankedSpeed& speed : one.speeds) speeds.push_back(speed_row(speed));
  return {{"place", one.speedup && one.verdict == "pass" ? std::to_string(place) : "\u2013"},
          {"submission", printable_line(one.submission)},
          {"verdict", printable_line(one.verdict)},
          {"mark", mark.mark},
          {"kind", mark.kind},
          {"ratio", shown(one.speedup)},
          {"error", shown(one.worst_error_over_bound)},
          {"passed", one.cases > 0 ? fmt::format("{} of {}", one.passed, one.cases) : "\u2013"},
          {"seconds", fmt::format("{:.1f}", one.seconds)},
          {"reason", printable_line(one.reason)},
          {"smallest", printable_line(one.failing_case)},
          {"speeds", speeds},
          {"has_speeds", !speeds.empty()}};
}

}  // namespace

SectionJson ranking_sections(const JudgementFile& file) {
  // By the place of the last judgement of each.
  std::map<std::pair<std::string, std::string>, std::pair<std::size_t, std::vector<RankedSubmission>>> runs;
  for (std::size_t n = 0; n < file.all.size(); ++n) {
    auto& [last, judgements] = runs[{file.all[n].task_content, file.all[n].seed}];
    last = n;
    judgements.push_back(file.all[n]);
  }
  std::map<std::size_t, std::vector<RankedSubmission>, std::greater<>> newest_first;
  for (auto& [key, run] : runs) newest_first.emplace(run.first, std::move(run.second));
  SectionJson sections = SectionJson::array();
  for (const auto& [last, judgements] : newest_first) {
    SectionJson rows = SectionJson::array();
    std::size_t place = 0;
    for (const RankedSubmission& one : ranked(judgements)) rows.push_back(ranking_row(one, ++place));
    const RankedSubmission& newest = file.all[last];
    std::string baseline;
    for (const RankedSubmission& one : judgements) {
      if (!one.baseline.empty()) baseline = one.baseline;
    }
    sections.push_back({{"file", printable_line(file.name)},
                        {"task", printable_line(newest.task)},
                        {"seed", printable_line(newest.seed)},
                        {"baseline", printable_line(baseline)},
                        {"rows", rows}});
  }
  return sections;
}

}  // namespace attest
