// Two runs or more side by side: what differs between them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "harness/base/text.h"
#include "harness/page/sections.h"

namespace attest {
namespace {

constexpr std::size_t kMostChanges = 200;

/// Of one case on one backend: the verdict in each run, or null.
using InRuns = std::vector<const Verdict*>;

bool has_failure(const Verdict* v) { return v && is_failure(*v); }

bool differs(const InRuns& runs) {
  const Verdict* first = nullptr;
  for (const Verdict* v : runs) {
    if (!v) continue;
    if (first && v->status != first->status) return true;
    first = v;
  }
  return false;
}

bool is_common(const InRuns& runs) {
  return std::count_if(runs.begin(), runs.end(), [](const Verdict* v) { return v != nullptr; }) > 1;
}

SectionJson cell_of(bool failed, bool passed, const std::string& text) {
  return {{"kind", failed   ? "bad"
                   : passed ? "good"
                            : "none"},
          {"mark", failed   ? "\u2717"
                   : passed ? "\u2713"
                            : "\u2013"},
          {"text", text}};
}

SectionJson cell_of(const Verdict* v) {
  if (!v) return cell_of(false, false, "not run");
  const std::string error = v->error_over_bound ? ", error/bound " + shown(v->error_over_bound) : "";
  return cell_of(is_failure(*v), is_right(*v), std::string(name_of(v->status)) + error);
}

SectionJson cell_of(const std::map<Status, std::size_t>& counts, bool failed) {
  std::string text;
  for (const auto& [status, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counted(count), name_of(status));
  const bool passed = counts.contains(Status::pass) || counts.contains(Status::convention);
  return cell_of(failed, passed, text.empty() ? "not run" : text);
}

}  // namespace

SectionJson runs_side_by_side(const std::vector<CheckResults>& checks) {
  std::map<std::array<std::string, 3>, InRuns> cases;  // suite, case, backend
  std::map<std::string, std::vector<std::map<Status, std::size_t>>> counts;
  std::map<std::string, std::vector<bool>> failed;
  for (std::size_t run = 0; run < checks.size(); ++run) {
    for (const Verdict& v : checks[run].verdicts) {
      InRuns& one = cases[{v.suite, v.case_line, v.backend}];
      one.resize(checks.size());
      one[run] = &v;
      counts[v.backend].resize(checks.size());
      ++counts[v.backend][run][v.status];
      failed[v.backend].resize(checks.size());
      if (is_failure(v)) failed[v.backend][run] = true;
    }
  }
  std::vector<std::pair<std::array<std::string, 3>, InRuns>> changes;
  std::size_t common = 0;
  for (const auto& [key, runs] : cases) {
    common += is_common(runs);
    if (differs(runs)) changes.emplace_back(key, runs);
  }
  if (common == 0) return SectionJson::object();
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return has_failure(a.second.back()) && !has_failure(b.second.back());
  });
  SectionJson section = {{"names", SectionJson::array()},     {"rows", SectionJson::array()},
                         {"changes", SectionJson::array()},   {"differ", counted(changes.size())},
                         {"common", counted(common, "case")}, {"has_changes", !changes.empty()}};
  for (const CheckResults& check : checks) section["names"].push_back({{"name", printable_line(check.name)}});
  for (const auto& [backend, in_runs] : counts) {
    SectionJson row = {{"backend", printable_line(backend)}, {"cells", SectionJson::array()}};
    for (std::size_t run = 0; run < checks.size(); ++run)
      row["cells"].push_back(cell_of(in_runs[run], failed[backend][run]));
    section["rows"].push_back(std::move(row));
  }
  for (std::size_t n = 0; n < std::min(changes.size(), kMostChanges); ++n) {
    const auto& [key, runs] = changes[n];
    SectionJson row = {
        {"case", printable_line(key[1])}, {"backend", printable_line(key[2])}, {"cells", SectionJson::array()}};
    for (const Verdict* v : runs) row["cells"].push_back(cell_of(v));
    section["changes"].push_back(std::move(row));
  }
  if (changes.size() > kMostChanges) section["left_out"] = counted(changes.size() - kMostChanges);
  return section;
}

}  // namespace attest
