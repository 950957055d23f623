// What a page says of a history: a chart for each backend and case, and a list of what moved.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/page/sections.h"
#include "harness/plot/chart.h"

namespace attest {
namespace {

std::string commit_text(const HistoryRun& run) { return run.commit.empty() ? run.file : run.commit.substr(0, 9); }

constexpr double kFarApart = 5;

/// What the axis of times shows: medians and noise bands. Few samples have intervals that reach far beyond; they end
/// with the axis.
std::pair<double, double> reach_of(const HistorySeries& series) {
  double least = series.points.front().median, most = least;
  for (const HistoryPoint& point : series.points) {
    least = std::min(least, point.median);
    most = std::max(most, point.median);
  }
  for (const HistoryLevel& level : series.levels) {
    if (level.low > 0) least = std::min(least, level.low);
    most = std::max(most, level.high);
  }
  constexpr double kRoom = 1.02;
  return {least / kRoom, most * kRoom};
}

std::string series_chart(const History& history, const HistorySeries& series, PageContext& page) {
  Chart chart;
  chart.id = page.ids.next();
  chart.title = series.backend;
  chart.about =
      "Milliseconds of one run of " + series.case_line + " in each file, by date. Shaded: the noise of each level.";
  chart.height = 220;
  chart.x.title = "commit, by date";
  for (const HistoryRun& run : history.runs) chart.x.names.push_back(commit_text(run));
  const auto [least, most] = reach_of(series);
  // Where something took many times as long, all else would lie on one line.
  chart.y = {"run, ms", most > kFarApart * least, {}, least, most};
  for (const HistoryLevel& level : series.levels) {
    const double first = static_cast<double>(series.points[level.first].run),
                 last = static_cast<double>(series.points[level.last].run);
    chart.bands.push_back({"noise band", level.low, level.high, true, first - 0.5, last + 0.5});
    chart.series.push_back({"level",
                            5,
                            {{first - 0.5, level.middle, {}, {}, ""}, {last + 0.5, level.middle, {}, {}, ""}},
                            true,
                            false,
                            true,
                            true});
  }
  ChartSeries medians{"median, with its interval", page.styles.of(series.backend), {}, false, true, false, true};
  for (const HistoryPoint& point : series.points) {
    const HistoryRun& run = history.runs[point.run];
    medians.points.push_back(
        {static_cast<double>(point.run), point.median, point.low, point.high, commit_text(run) + ", " + run.date});
  }
  chart.series.push_back(std::move(medians));
  for (std::size_t n = 1; n < series.levels.size(); ++n) {
    const double at = static_cast<double>(series.points[series.levels[n].first].run) - 0.5;
    chart.series.push_back(
        {"moved here", 5, {{at, least, {}, {}, ""}, {at, most, {}, {}, ""}}, true, false, false, true});
  }
  return draw_chart(chart);
}

double last_ratio(const HistorySeries& series) {
  return series.levels.size() < 2 ? 1 : series.levels.back().middle / series.levels[series.levels.size() - 2].middle;
}

}  // namespace

SectionJson history_section(const History& history, PageContext& page) {
  SectionJson section = {{"files", counted(history.runs.size(), "file")},
                         {"first", history.runs.front().date},
                         {"last", history.runs.back().date},
                         {"moves", SectionJson::array()},
                         {"cases", SectionJson::array()}};
  std::vector<const HistorySeries*> ordered;
  for (const HistorySeries& series : history.series) {
    page.styles.of(series.backend);
    ordered.push_back(&series);
  }
  // What moved furthest comes first.
  std::stable_sort(ordered.begin(), ordered.end(), [](const HistorySeries* a, const HistorySeries* b) {
    return std::fabs(std::log(last_ratio(*a))) > std::fabs(std::log(last_ratio(*b)));
  });
  for (const HistorySeries* series : ordered) {
    for (std::size_t n = 1; n < series->levels.size(); ++n) {
      const HistoryLevel &before = series->levels[n - 1], &after = series->levels[n];
      const HistoryRun& run = history.runs[series->points[after.first].run];
      const double ratio = after.middle / before.middle;
      section["moves"].push_back({{"backend", series->backend},
                                  {"case", series->case_line},
                                  {"commit", commit_text(run)},
                                  {"date", run.date},
                                  {"mark", ratio > 1 ? "\u25b2" : "\u25bc"},
                                  {"kind", ratio > 1 ? "slower" : "faster"},
                                  {"ratio", fmt::format("{:.3f}", ratio)},
                                  {"from", fmt::format("{:.4g}", before.middle)},
                                  {"to", fmt::format("{:.4g}", after.middle)}});
    }
    section["cases"].push_back(
        {{"case", series->case_line}, {"backend", series->backend}, {"svg", series_chart(history, *series, page)}});
  }
  section["has_moves"] = !section["moves"].empty();
  return section;
}

}  // namespace attest
