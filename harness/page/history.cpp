#include "harness/page/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "harness/speed/benchmark_file.h"
#include "harness/speed/sample_interval.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr double kConfidence = 0.95;
/// Tukey's fences: of a normal distribution 0.7% lie beyond.
constexpr double kFence = 1.5;

struct Entry {
  std::string name;
  BenchmarkFile file;
};

std::vector<Entry> read_folder(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw UserError(folder.string() + ": no folder; --history takes one of benchmark files");
  const std::vector<fs::path> paths = benchmark_paths(folder);
  if (paths.empty()) throw UserError(folder.string() + ": no .json file in it; `attest bench --json` writes them");
  std::vector<Entry> entries;
  for (const fs::path& path : paths) {
    Entry entry{path.filename().string(), read_benchmark(path)};
    if (entry.file.text("date").empty())
      throw UserError(path.string() + ": has no date, so it has no place in a history");
    for (const auto& [what, key] : {std::pair{"processor", "cpu"}, std::pair{"number of threads", "threads"}}) {
      if (entries.empty() || entries.front().file.text(key) == entry.file.text(key)) continue;
      throw UserError(fmt::format("{}: another {} than {}: \"{}\" and \"{}\"; keep a folder for each machine",
                                  path.string(), what, entries.front().name, entry.file.text(key),
                                  entries.front().file.text(key)));
    }
    entries.push_back(std::move(entry));
  }
  // ISO 8601 sorts as text, where all files are of one time zone.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.file.text("date") < b.file.text("date"); });
  return entries;
}

HistoryLevel level_of(const std::vector<HistoryPoint>& points, std::size_t first, std::size_t last) {
  std::vector<double> medians;
  for (std::size_t n = first; n <= last; ++n) medians.push_back(points[n].median);
  const double below = quantile(medians, 0.25), above = quantile(medians, 0.75), fence = kFence * (above - below);
  return {first, last, median(medians), std::max(below - fence, 0.0), above + fence};
}

void find_levels(HistorySeries& series) {
  std::vector<double> logarithms;
  for (const HistoryPoint& point : series.points) logarithms.push_back(std::log(point.median));
  std::size_t first = 0;
  for (const ChangePoint& change : change_points(logarithms)) {
    series.levels.push_back(level_of(series.points, first, change.at - 1));
    first = change.at;
  }
  series.levels.push_back(level_of(series.points, first, series.points.size() - 1));
}

}  // namespace

History read_history(const fs::path& folder) {
  const std::vector<Entry> entries = read_folder(folder);
  History history{entries.front().file.text("cpu"), entries.front().file.text("threads"), {}, {}};
  std::map<std::string, std::size_t> places;
  for (const Entry& entry : entries) {
    const std::size_t run = history.runs.size();
    history.runs.push_back({entry.name, entry.file.text("date"), entry.file.text("commit")});
    for (const BenchmarkSample& sample : entry.file.all) {
      const std::string key = benchmark_key(sample.backend, sample.case_line);
      const auto [place, fresh] = places.try_emplace(key, history.series.size());
      if (fresh) history.series.push_back({sample.backend, sample.case_line, {}, {}});
      std::vector<HistoryPoint>& points = history.series[place->second].points;
      if (!points.empty() && points.back().run == run) continue;
      const std::vector<double>& samples = entry.file.samples.at(key);
      const SampleInterval interval = interval_of_median(samples, kConfidence);
      points.push_back({run, median(samples), interval.low, interval.high});
    }
  }
  for (HistorySeries& series : history.series) find_levels(series);
  return history;
}

}  // namespace attest
