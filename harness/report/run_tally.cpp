#include "harness/report/run_tally.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/statistics.h"
#include "harness/verdict/known_mistakes.h"

namespace attest {
namespace {

constexpr std::size_t kWorthDistribution = 5;  ///< cases
constexpr std::size_t kNamedBackends = 8;
constexpr std::size_t kFewCases = 8;  ///< of which no share is told

/// "a, b and 3 more"
std::string enumerated(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t n = 0; n < std::min(names.size(), kNamedBackends); ++n) text += (n > 0 ? ", " : "") + names[n];
  if (names.size() > kNamedBackends) text += fmt::format(" and {} more", names.size() - kNamedBackends);
  return text;
}

/// "3 fail (1 suspect, 1 crashed)" and the rest of the table's columns.
std::string counts_in_words(const Counts& counts) {
  std::string kinds;
  const auto tell = [&](std::size_t count, const char* kind) {
    if (count > 0) kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
  };
  tell(counts.suspect - counts.waived, "suspect");
  tell(counts.crashed, "crashed");
  tell(counts.timeout, "timeout");
  tell(counts.flaky, "flaky");
  std::string words = fmt::format("{} pass, ", counts.pass);
  if (counts.convention > 0) words += fmt::format("{} convention, ", counts.convention);
  if (counts.weak > 0) words += fmt::format("{} weak, ", counts.weak);
  words += fmt::format("{} fail", counts.failures());
  if (!kinds.empty()) words += " (" + kinds + ")";
  words += fmt::format(", {} refused, {} inconclusive", counts.refused, counts.inconclusive);
  if (counts.waived > 0) words += fmt::format(", {} waived", counts.waived);
  return words;
}

/// Who refuses most of what is asked is right in little.
bool ran_little(const Counts& counts) {
  const std::size_t asked = counts.passed() + counts.failures() + counts.skipped();
  return asked > kFewCases && 2 * counts.refused > asked;
}

std::string shortened(const std::string& text, std::size_t longest) {
  return text.size() <= longest ? text : text.substr(0, longest - 3) + "...";
}

std::string why_nothing_is_proved(const Counts& counts) {
  if (counts.weak > 0) return "what passed is weak, most of its bounds are as large as the values";
  if (counts.inconclusive > 0) return "what ran is inconclusive";
  if (counts.waived > 0) return "what ran is suspect and waived";
  return counts.refused > 0 ? "every backend refused everything" : "no case ran";
}

}  // namespace

void RunTally::add(const Verdict& v) {
  ++verdicts_;
  counts_.add(v);
  Line& line = lines_[v.backend];
  line.counts.add(v);
  const bool within = v.status == Status::pass || v.status == Status::weak;
  if (within && v.error_over_bound && v.backend != "reference") {
    Distribution& all = distributions_[{v.suite, v.backend, std::string(name_of(v.dtype))}];
    all.error_over_bound.push_back(*v.error_over_bound);
    if (const auto ulps = ulps_of_output(v.accuracy)) {
      all.median_ulps.push_back(ulps->median);
      all.largest_ulps = std::max(all.largest_ulps, ulps->largest);
    }
  }
  if (v.bitwise) {
    count_fact(v, "in every run", v.bitwise->runs);
    count_fact(v, "with other threads", v.bitwise->threads);
    count_fact(v, "without the rest of the batch", v.bitwise->batch);
  }
  if (v.error_over_bound && (!worst_ || *v.error_over_bound > *worst_)) worst_ = v.error_over_bound;
  if (is_failure(v)) {
    failures_[group_of(v)].push_back(v);
    return;
  }
  if (v.error_over_bound && (!line.worst || *v.error_over_bound >= *line.worst)) {
    line.worst = v.error_over_bound;
    line.worst_case = v.case_line;
  }
  if (v.status == Status::convention) convention_[v.backend + ": " + v.reason].push_back(v.case_line);
  if (v.status == Status::weak) weak_[v.backend + ": " + v.reason].push_back(v.case_line);
  if (v.status == Status::refused) refused_[v.backend + ": " + v.reason].push_back(v.case_line);
  if (v.status == Status::inconclusive) inconclusive_[v.backend + ": " + v.reason].push_back(v.case_line);
  if (v.status == Status::suspect) waived_[v.backend + ": " + v.waiver].push_back(v.case_line);
}

void RunTally::count_fact(const Verdict& v, const std::string& name, const std::optional<bool>& same) {
  if (!same) return;
  Fact& fact = facts_[{v.backend, name}];
  ++fact.asked;
  fact.same += *same;
  if (!*same && fact.first_other.empty()) fact.first_other = v.case_line;
}

std::vector<CaseGroup> RunTally::groups(const Groups& map) {
  std::vector<CaseGroup> list;
  for (const auto& [name, cases] : map) list.push_back({name, cases});
  return list;
}

std::vector<RunTally::Failures> RunTally::failures() const {
  std::vector<Failures> list;
  for (const auto& [name, verdicts] : failures_) {
    const auto small = small_.find(name);
    list.push_back({name, verdicts, small == small_.end() ? std::vector<Verdict>() : small->second});
  }
  return list;
}

std::vector<std::string> RunTally::likenesses() const {
  std::map<std::string, std::pair<std::size_t, std::map<std::string, std::size_t>>> by_backend;
  for (const auto& [name, verdicts] : failures_) {
    for (const Verdict& v : verdicts) {
      auto& [count, mistakes] = by_backend[v.backend];
      ++count;
      for (const std::string& mistake : v.mistakes) ++mistakes[mistake];
    }
  }
  std::vector<std::string> lines;
  for (const auto& [backend, found] : by_backend) {
    const auto& [count, mistakes] = found;
    std::size_t most = 0;
    for (const auto& [mistake, times] : mistakes) most = std::max(most, times);
    std::vector<std::string> names;
    for (const KnownMistake& known : known_mistakes()) {
      const auto times = mistakes.find(std::string(known.name));
      if (times != mistakes.end() && times->second == most) names.push_back(times->first);
    }
    if (most > 0 && count > 1)
      lines.push_back(fmt::format("{}, in {} of {} failing cases: {}", backend, most, count, mistakes_text(names)));
  }
  return lines;
}

Answer RunTally::answer(const Ending& ending, std::size_t problems) const {
  std::vector<std::string> wrong, right;
  for (const auto& [name, line] : lines_) {
    if (line.counts.failures() > 0) wrong.push_back(name);
    if (line.counts.failures() > 0 || line.counts.proved() == 0) continue;
    const std::size_t asked = line.counts.passed() + line.counts.skipped();
    right.push_back(!ran_little(line.counts) ? name
                                             : fmt::format("{} in the {} of {} cases that it does", name,
                                                           asked - line.counts.refused, asked));
  }
  Answer answer;
  if (!wrong.empty()) {
    answer.severity = Severity::bad;
    answer.word = "wrong";
    answer.rest = enumerated(wrong) + (right.empty() ? "" : "; right: " + enumerated(right));
  } else if (problems > 0) {
    answer.severity = Severity::bad;
    answer.word = "wrong";
    answer.rest = fmt::format("no case, but the run has {} complaint{}, below", problems, problems == 1 ? "" : "s");
  } else if (ending.interrupted) {
    answer.severity = Severity::doubtful;
    answer.word = "interrupted";
    answer.rest = "nothing wrong until then";
  } else if (counts_.proved() == 0) {
    answer.severity = Severity::doubtful;
    answer.word = "nothing proved";
    answer.rest = why_nothing_is_proved(counts_);
  } else {
    answer.word = "right";
    answer.rest = enumerated(right);
  }
  answer.rest += "; " + counts_in_words(counts_);
  if (ending.interrupted) answer.rest += fmt::format("; {} of {} verdicts", verdicts_, ending.verdicts_wanted);
  return answer;
}

std::vector<std::string> RunTally::refusers() const {
  std::vector<std::string> names;
  for (const auto& [name, line] : lines_) {
    if (ran_little(line.counts)) names.push_back(name);
  }
  return names;
}

Table RunTally::backends(std::size_t longest) const {
  const bool waived = counts_.waived > 0;
  std::vector<Table::Column> columns = {{"backend", false, 10}, {"pass", true, 7},      {"fail", true, 6},
                                        {"refused", true, 8},   {"inconclusive", true}, {"error/bound", true, 12},
                                        {"largest at"}};
  if (waived) columns.insert(columns.begin() + 5, {"waived", true});
  const bool convention = counts_.convention > 0;
  if (convention) columns.insert(columns.begin() + 2, {"convention", true});
  const bool weak = counts_.weak > 0;
  if (weak) columns.insert(columns.begin() + 2, {"weak", true});
  Table table(std::move(columns));
  for (const auto& [name, line] : lines_) {
    const Counts& c = line.counts;
    std::vector<std::string> cells = {name,
                                      std::to_string(c.pass),
                                      std::to_string(c.failures()),
                                      std::to_string(c.refused),
                                      std::to_string(c.inconclusive),
                                      line.worst ? fmt::format("{:.3g}", *line.worst) : "",
                                      shortened(line.worst_case, longest)};
    if (waived) cells.insert(cells.begin() + 5, std::to_string(c.waived));
    if (convention) cells.insert(cells.begin() + 2, std::to_string(c.convention));
    if (weak) cells.insert(cells.begin() + 2, std::to_string(c.weak));
    table.add(std::move(cells));
  }
  return table;
}

Table RunTally::distributions() const {
  Table table({{"error/bound in"},
               {"backend"},
               {"type"},
               {"cases", true},
               {"median", true},
               {"99%", true},
               {"largest", true},
               {"ulps of o (largest)", true}});
  for (const auto& [key, all] : distributions_) {
    const auto& [suite, backend, type] = key;
    if (suite.empty() || all.error_over_bound.size() < kWorthDistribution) continue;
    std::vector<double> list = all.error_over_bound;
    std::sort(list.begin(), list.end());
    const auto at = [&](double q) {
      return fmt::format("{:.2g}", list[static_cast<std::size_t>(q * static_cast<double>(list.size() - 1))]);
    };
    table.add({suite, backend, type, std::to_string(list.size()), at(0.5), at(0.99), at(1),
               all.median_ulps.empty() ? "-" : text_of(Spread{median(all.median_ulps), 0, all.largest_ulps})});
  }
  return table;
}

Table RunTally::bits(std::size_t longest) const {
  Table table({{"the same bits"}, {"asked"}, {"cases"}, {"first that differs"}});
  for (const auto& [key, fact] : facts_) {
    table.add(
        {key.first, key.second, fmt::format("{} of {}", fact.same, fact.asked), shortened(fact.first_other, longest)});
  }
  return table;
}

}  // namespace attest
