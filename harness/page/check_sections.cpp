// What a page says of checks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "harness/base/statistics.h"
#include "harness/base/text.h"
#include "harness/page/sections.h"
#include "harness/plot/chart.h"
#include "harness/plot/heat_map.h"

namespace attest {
namespace {

constexpr std::size_t kMostGroups = 60, kMostCasesOfGroup = 5, kMostReasons = 200;
/// Of all maps of a page together, so that one with many failures still opens at once.
constexpr std::size_t kMostBytesOfMaps = 900 << 10;
constexpr std::size_t kMostPointsOfLine = 160;

std::vector<std::string> numbers_to(std::int64_t things, std::size_t cells) {
  std::vector<std::string> names;
  for (std::size_t n = 0; n < cells; ++n)
    names.push_back(things == static_cast<std::int64_t>(cells) ? std::to_string(n) : "");
  return names;
}

HeatMap map_of(const ErrorGrid& grid, const std::string& title, const std::string& down, const std::string& across) {
  HeatMap map;
  map.title = title;
  const auto range = [](std::int64_t things) { return things > 1 ? fmt::format(" (0 to {})", things - 1) : ""; };
  map.row_axis = down + range(grid.height);
  map.column_axis = across + range(grid.width);
  map.bar = "error/bound";
  map.limit = 1;
  map.widest = 300;
  std::size_t width = 0;
  for (const auto& row : grid.cells) width = std::max(width, row.size());
  map.rows = numbers_to(grid.height, grid.cells.size());
  map.columns = numbers_to(grid.width, width);
  for (const std::vector<double>& row : grid.cells) {
    std::vector<double>& values = map.values.emplace_back(row);
    values.resize(width, kNaN);  // what a file lacks was not compared
    std::vector<double>& hidden = map.hidden.emplace_back();
    for (double value : values) hidden.push_back(std::isnan(value) ? 1 : 0);
  }
  return map;
}

std::string error_map_svg(const Verdict& failure, PageContext& page) {
  const ErrorMap& map = *failure.error_map;
  const std::string rows(row_word(map.output));
  return draw_heat_maps(
      {{map_of(map.rows, map.output + ": every head", "head", rows),
        map_of(map.elements, fmt::format("{}[{},{}]: the worst head", map.output, map.batch, map.head), rows,
               "column")}},
      page.ids.next(), "Error over bound of " + failure.case_line + " on " + failure.backend);
}

struct FailureGroup {
  std::vector<const Verdict*> failures;
  double worst = 0;
};

/// Older files have no causes: the verdict stands for them.
std::string cause_of(const Verdict& v) { return v.cause.empty() ? std::string(name_of(v.status)) : v.cause.text(); }

/// Of a cause the smallest case that fails by it. Older files don't say by which it does.
const ShrunkFailure* shrunk_of(const std::vector<CheckResults>& checks, const std::vector<const Verdict*>& failures) {
  for (const CheckResults& check : checks) {
    for (const ShrunkFailure& shrunk : check.shrunk) {
      for (const Verdict* v : failures) {
        const bool alike = shrunk.cause.empty() || shrunk.cause == v->cause.text();
        if (alike && shrunk.backend == v->backend && shrunk.case_line == v->case_line) return &shrunk;
      }
    }
  }
  return nullptr;
}

std::string dtype_of(const Verdict& v) {
  if (v.case_line.ends_with(".safetensors")) return "files";
  const std::string line = " " + v.case_line + " ";
  const std::size_t at = line.find(" dtype=");
  return at == std::string::npos ? "f32" : line.substr(at + 7, line.find(' ', at + 1) - at - 7);
}

std::string suite_name(const Verdict& v) { return v.suite.empty() ? "command line" : v.suite; }

}  // namespace

SectionJson failure_groups(const std::vector<CheckResults>& checks, PageContext& page) {
  std::map<std::pair<std::string, std::string>, FailureGroup> groups;
  for (const CheckResults& check : checks) {
    for (const Verdict& v : check.verdicts) {
      if (!is_failure(v)) continue;
      FailureGroup& group = groups[{v.backend, cause_of(v)}];
      group.failures.push_back(&v);
      if (v.error_over_bound && !(group.worst >= *v.error_over_bound)) group.worst = *v.error_over_bound;
    }
  }
  std::vector<std::pair<std::pair<std::string, std::string>, FailureGroup>> ordered(groups.begin(), groups.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second.failures.size() > b.second.failures.size(); });
  SectionJson list = SectionJson::array();
  std::size_t bytes = 0;
  for (const auto& [key, group] : ordered) {
    if (list.size() == kMostGroups) break;
    const Verdict& first = *group.failures.front();
    SectionJson one = {{"backend", printable_line(key.first)},
                       {"cause", printable_line(key.second)},
                       {"count", counted(group.failures.size())},
                       {"status", name_of(first.status)},
                       {"worst", shown(group.worst)},
                       {"reason", printable_line(first.reason)},
                       {"repro", printable_line(first.repro)},
                       {"cases", SectionJson::array()}};
    for (std::size_t n = 0; n < std::min(group.failures.size(), kMostCasesOfGroup); ++n)
      one["cases"].push_back({{"case", printable_line(group.failures[n]->case_line)}});
    if (group.failures.size() > kMostCasesOfGroup) one["more"] = counted(group.failures.size() - kMostCasesOfGroup);
    if (const ShrunkFailure* shrunk = shrunk_of(checks, group.failures)) {
      one["shrunk"] = {{"smallest", printable_line(shrunk->smallest)},
                       {"reason", printable_line(shrunk->reason)},
                       {"repro", printable_line(shrunk->repro)}};
    }
    const auto drawn = std::find_if(group.failures.begin(), group.failures.end(),
                                    [](const Verdict* v) { return v->error_map.has_value(); });
    if (drawn != group.failures.end() && bytes < kMostBytesOfMaps) {
      const std::string svg = error_map_svg(**drawn, page);
      bytes += svg.size();
      one["map"] = {{"svg", svg}, {"case", printable_line((*drawn)->case_line)}};
    }
    list.push_back(std::move(one));
  }
  return list;
}

SectionJson verdict_matrix(const std::vector<CheckResults>& checks) {
  std::vector<std::string> backends, suites;
  std::map<std::pair<std::string, std::string>, std::map<Status, std::size_t>> cells;
  std::map<std::pair<std::string, std::string>, std::size_t> failures;
  const auto note = [](std::vector<std::string>& list, const std::string& name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  };
  for (const CheckResults& check : checks) {
    for (const Verdict& v : check.verdicts) {
      note(backends, v.backend);
      note(suites, suite_name(v));
      ++cells[{v.backend, suite_name(v)}][v.status];
      if (is_failure(v)) ++failures[{v.backend, suite_name(v)}];
    }
  }
  SectionJson matrix = {{"suites", SectionJson::array()}, {"rows", SectionJson::array()}};
  if (backends.empty()) return matrix;
  for (const std::string& suite : suites) matrix["suites"].push_back({{"name", printable_line(suite)}});
  for (const std::string& backend : backends) {
    SectionJson row = {{"backend", printable_line(backend)}, {"cells", SectionJson::array()}};
    for (const std::string& suite : suites) {
      const auto found = cells.find({backend, suite});
      if (found == cells.end()) {
        row["cells"].push_back({{"kind", "none"}, {"mark", "\u2013"}, {"text", "not run"}});
        continue;
      }
      std::string text;
      for (const auto& [status, count] : found->second)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counted(count), name_of(status));
      const bool failed = failures.contains({backend, suite}),
                 passed = found->second.contains(Status::pass) || found->second.contains(Status::convention);
      row["cells"].push_back({{"kind", failed   ? "bad"
                                       : passed ? "good"
                                                : "none"},
                              {"mark", failed   ? "\u2717"
                                       : passed ? "\u2713"
                                                : "\u2013"},
                              {"text", text}});
    }
    matrix["rows"].push_back(std::move(row));
  }
  return matrix;
}

SectionJson reasons_beside_passes(const std::vector<CheckResults>& checks) {
  struct Aside {
    std::size_t count = 0;
    std::map<std::string, std::size_t> backends;
    std::string example;
  };
  std::map<std::array<std::string, 2>, Aside> asides;  // verdict, reason: backends that say the same stand together
  for (const CheckResults& check : checks) {
    for (const Verdict& v : check.verdicts) {
      const bool beside = v.status == Status::refused || v.status == Status::inconclusive ||
                          v.status == Status::suspect || v.status == Status::convention || v.status == Status::weak;
      if (!beside) continue;
      const std::string why = v.waiver.empty() ? v.reason : v.reason + " Waived: " + v.waiver;
      Aside& aside = asides[{std::string(name_of(v.status)), why}];
      if (aside.count++ == 0) aside.example = v.case_line;
      ++aside.backends[v.backend];
    }
  }
  std::vector<std::pair<std::array<std::string, 2>, Aside>> ordered(asides.begin(), asides.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    // What may be wrong comes before what was not done.
    const bool late_a = a.first[0] == "refused", late_b = b.first[0] == "refused";
    return late_a != late_b ? late_b : a.second.count > b.second.count;
  });
  SectionJson list = SectionJson::array();
  for (const auto& [key, aside] : ordered) {
    if (list.size() == kMostReasons) break;
    std::string backends;
    for (const auto& [backend, count] : aside.backends) {
      backends += (backends.empty() ? "" : ", ") + printable_line(backend);
      if (aside.backends.size() > 1) backends += " " + counted(count);
    }
    list.push_back({{"status", key[0]},
                    {"backend", backends},
                    {"reason", printable_line(key[1])},
                    {"count", counted(aside.count)},
                    {"example", printable_line(aside.example)}});
  }
  return list;
}

SectionJson error_distributions(const std::vector<CheckResults>& checks, PageContext& page) {
  std::map<std::string, std::map<std::string, std::vector<double>>> by_type;
  for (const CheckResults& check : checks) {
    for (const Verdict& v : check.verdicts) {
      if (v.error_over_bound) by_type[dtype_of(v)][v.backend].push_back(*v.error_over_bound);
    }
  }
  SectionJson list = SectionJson::array();
  for (auto& [type, backends] : by_type) {
    Chart chart;
    chart.id = page.ids.next();
    chart.title = "error/bound in " + printable_line(type);
    chart.about = "Share of the cases at or below an error/bound, a line for each backend. Beyond 1 is wrong.";
    chart.x = {"error/bound", true, {}, {}, {}};
    chart.y = {"share of the cases, %", false, {}, 0, 100};
    for (auto& [backend, errors] : backends) {
      std::sort(errors.begin(), errors.end());
      ChartSeries series{printable_line(backend), page.styles.of(backend), {}, true, false, false, true};
      const std::size_t count = errors.size(), step = std::max<std::size_t>(1, count / kMostPointsOfLine);
      for (std::size_t n = 0; n < count; n += step) {
        const double share = 100 * static_cast<double>(n + 1) / static_cast<double>(count);
        // An exact result has no logarithm: it stands at the left end.
        series.points.push_back({std::max(errors[n], 1e-4), share, {}, {}, ""});
      }
      if (!errors.empty()) {
        series.points.push_back({std::max(errors.back(), 1e-4), 100, {}, {}, ""});
        // The largest has a mark, so that lines on one another can be told apart.
        chart.series.push_back({printable_line(backend),
                                page.styles.of(backend),
                                {{std::max(errors.back(), 1e-4), 100, {}, {}, "the largest"}},
                                false,
                                true,
                                false,
                                true});
      }
      chart.series.push_back(std::move(series));
    }
    chart.bands.push_back({"beyond the bound", 1, std::numeric_limits<double>::infinity(), false});
    list.push_back({{"svg", draw_chart(chart)}});
  }
  return list;
}

}  // namespace attest
