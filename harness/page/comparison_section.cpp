// What a page says of a comparison: ratios with their intervals, what one side alone has, how the two differ.
#include <fmt/format.h>

#include <algorithm>

#include "harness/page/sections.h"
#include "harness/plot/chart.h"

namespace attest {
namespace {

constexpr std::size_t kMostLines = 400;

SectionJson side_json(const char* which, const ComparisonSide& side) {
  return {{"which", which},          {"name", side.name},   {"commit", side.commit}, {"cpu", side.cpu},
          {"threads", side.threads}, {"build", side.build}, {"date", side.date}};
}

const char* mark_of(SpeedVerdict verdict) {
  switch (verdict) {
    case SpeedVerdict::faster: return "\u25bc";
    case SpeedVerdict::slower: return "\u25b2";
    case SpeedVerdict::same: return "=";
    case SpeedVerdict::ambiguous: break;
  }
  return "?";
}

std::string ratios_chart(const ComparisonFile& file, const std::vector<const ComparisonLine*>& lines,
                         PageContext& page) {
  Chart chart;
  chart.id = page.ids.next();
  chart.title = "new over old";
  chart.about = "Ratio of the times of each case, with its interval. Above 1 is slower.";
  chart.x = {"time, new over old", true, {}, {}, {}};
  chart.width = 900;  // so that few names of cases are cut
  chart.height = 22 * static_cast<double>(lines.size()) + 24;
  for (std::size_t n = 0; n < lines.size(); ++n) {
    const ComparisonLine& line = *lines[n];
    chart.y.names.push_back(line.backend + " " + line.case_line);
    // The shape is the verdict's, so that it is told without colour.
    const std::size_t style = line.verdict == SpeedVerdict::slower   ? 2
                              : line.verdict == SpeedVerdict::faster ? 5
                              : line.verdict == SpeedVerdict::same   ? 0
                                                                     : 4;
    chart.series.push_back({std::string(name_of(line.verdict)),
                            style,
                            {{line.interval.ratio, static_cast<double>(n), line.interval.low, line.interval.high,
                              line.backend + " " + line.case_line}},
                            false,
                            true,
                            false,
                            true});
  }
  chart.bands.push_back({fmt::format("counts as the same, within {:g}%", 100 * file.margin), 1 / (1 + file.margin),
                         1 + file.margin, false});
  return draw_chart(chart);
}

SectionJson named(const std::vector<std::string>& list) {
  SectionJson json = SectionJson::array();
  for (const std::string& one : list) json.push_back({{"name", one}});
  return json;
}

}  // namespace

SectionJson comparison_section(const CompareResults& comparison, PageContext& page) {
  const ComparisonFile& file = comparison.file;
  std::vector<const ComparisonLine*> lines;
  for (const ComparisonLine& line : file.lines) lines.push_back(&line);
  std::stable_sort(lines.begin(), lines.end(), [](const ComparisonLine* a, const ComparisonLine* b) {
    return a->interval.ratio > b->interval.ratio;
  });
  SectionJson section = {{"file", comparison.name},
                         {"paired", file.paired ? "of pairs measured in turn" : "of independent samples"},
                         {"confidence", fmt::format("{:g}", 100 * file.confidence)},
                         {"margin", fmt::format("{:g}", 100 * file.margin)},
                         {"sides", {side_json("old", file.before), side_json("new", file.now)}},
                         {"rows", SectionJson::array()},
                         {"has_unlike", !file.unlike.empty()},
                         {"has_only_before", !file.only_before.empty()},
                         {"has_only_now", !file.only_now.empty()},
                         {"only_before", named(file.only_before)},
                         {"only_now", named(file.only_now)},
                         {"unlike", named(file.unlike)}};
  if (lines.size() > kMostLines) {
    section["left_out"] = counted(lines.size() - kMostLines);
    lines.resize(kMostLines);
  }
  for (const ComparisonLine* line : lines) {
    const RatioInterval& r = line->interval;
    section["rows"].push_back({{"backend", line->backend},
                               {"case", line->case_line},
                               {"verdict", name_of(line->verdict)},
                               {"mark", mark_of(line->verdict)},
                               {"ratio", fmt::format("{:.3f}", r.ratio)},
                               {"interval", fmt::format("{:.3f} to {:.3f}", r.low, r.high)},
                               {"samples", fmt::format("{} and {}", line->before, line->now)},
                               {"disturbed", line->disturbed ? "disturbed, not to be trusted" : ""}});
  }
  if (!lines.empty()) section["chart"] = {{"svg", ratios_chart(file, lines, page)}};
  return section;
}

}  // namespace attest
