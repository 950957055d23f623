#include "harness/page/speed_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/user_error.h"
#include "harness/plot/bars.h"
#include "harness/plot/chart.h"

namespace attest {

std::string samples_chart(const std::string& case_line, const std::vector<const Timing*>& timings, PageContext& page) {
  Chart chart;
  chart.id = page.ids.next();
  chart.title = "every sample";
  chart.about = "Milliseconds of one run of " + case_line + ": each sample, and the interval of the median.";
  chart.x = {"run, ms", true, {}, {}, {}};
  chart.y.title = "";
  chart.height = 30 * static_cast<double>(timings.size()) + 30;
  for (std::size_t n = 0; n < timings.size(); ++n) {
    const Timing& t = *timings[n];
    chart.y.names.push_back(t.backend);
    const std::size_t style = page.styles.of(t.backend);
    ChartSeries samples{t.backend, style, {}, false, true, false, false};
    const double count = static_cast<double>(t.samples.size());
    for (std::size_t s = 0; s < t.samples.size(); ++s) {
      const double beside = count > 1 ? 0.5 * (static_cast<double>(s) / (count - 1) - 0.5) : 0;
      samples.points.push_back(
          {t.samples[s], static_cast<double>(n) + beside, {}, {}, fmt::format("sample {}", s + 1)});
    }
    chart.series.push_back(std::move(samples));
    if (t.low) {
      chart.series.push_back({t.backend + ", median",
                              style,
                              {{t.run, static_cast<double>(n) + 0.36, t.low, t.high, "median and its interval"}},
                              false,
                              true,
                              false,
                              false});
    }
  }
  return draw_chart(chart);
}

std::string roofline_chart(const std::vector<Timing>& timings, const BenchmarkFile& file, bool f64, PageContext& page) {
  Chart chart;
  chart.id = page.ids.next();
  const double fma = file.number(f64 ? "roof_fma_gflops_f64" : "roof_fma_gflops_f32"),
               read = file.number("roof_read_gbps");
  chart.title = fmt::format("roofline, {}", f64 ? "f64" : "other types, FMA in f32");
  chart.about =
      fmt::format("Speed against intensity, under measured roofs of {:.4g} GFLOP/s and {:.4g} GB/s.", fma, read);
  chart.x = {"intensity, flop for each byte of the tensors", true, {}, {}, {}};
  chart.y = {"GFLOP/s", true, {}, {}, {}};
  double least = 1e300, most = 0;
  std::map<std::string, ChartSeries> series;
  for (const Timing& t : timings) {
    if ((t.dtype == "f64") != f64 || !t.gflops || !t.gbps || !(*t.gbps > 0) || !(*t.gflops > 0)) continue;
    const double intensity = *t.gflops / *t.gbps;
    least = std::min(least, intensity);
    most = std::max(most, intensity);
    ChartSeries& one = series[t.backend];
    one.name = t.backend;
    one.style = page.styles.of(t.backend);
    one.points.push_back({intensity, *t.gflops, {}, {}, t.case_line});
  }
  if (series.empty()) return "";
  for (auto& [name, one] : series) chart.series.push_back(std::move(one));
  if (fma > 0 && read > 0) {
    ChartSeries roof{"measured roof", 5, {}, true, false, true, true};
    const double from = std::min(least, fma / read) / 2, to = std::max(most, fma / read) * 2;
    for (double x : {from, fma / read, to}) roof.points.push_back({x, std::min(fma, x * read), {}, {}, ""});
    chart.series.push_back(std::move(roof));
  }
  return draw_chart(chart);
}

std::string speed_chart(const std::vector<Timing>& timings, const std::string& title, std::int64_t Timing::*size,
                        std::string Timing::*family, PageContext& page) {
  Chart chart;
  chart.id = page.ids.next();
  chart.title = "speed against " + title;
  chart.about = "GFLOP/s of each backend and case.";
  chart.x = {title, true, {}, {}, {}};
  chart.y = {"GFLOP/s", true, {}, {}, {}};
  std::map<std::pair<std::string, std::string>, ChartSeries> series;
  std::set<std::int64_t> sizes;
  for (const Timing& t : timings) {
    if (t.*size <= 0 || !t.gflops || !(*t.gflops > 0)) continue;
    sizes.insert(t.*size);
    ChartSeries& one = series[{t.backend, t.*family}];
    one.name = t.backend;
    one.style = page.styles.of(t.backend);
    one.points.push_back({static_cast<double>(t.*size), *t.gflops, {}, {}, t.case_line});
  }
  if (sizes.size() < 2) return "";
  for (auto& [key, one] : series) {
    std::sort(one.points.begin(), one.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
    one.joined = one.points.size() > 1;
    chart.series.push_back(std::move(one));
  }
  return draw_chart(chart);
}

std::string sweep_chart(const BenchmarkFile& file, const std::vector<Timing>& timings, PageContext& page) {
  if (!file.sweep) return "";
  const SweptCurves& sweep = *file.sweep;
  Chart chart;
  chart.id = page.ids.next();
  chart.title = "time against " + sweep.key;
  chart.about = "Milliseconds of one run along each swept line, with the interval of the median.";
  chart.x = {sweep.key + (sweep.before.empty() ? "" : " (behind " + sweep.before + ")"), true, {}, {}, {}};
  chart.y = {"run, ms", true, {}, {}, {}};
  std::map<std::pair<std::string, std::string>, const Timing*> found;
  for (const Timing& t : timings) found[{t.backend, t.case_line}] = &t;
  std::set<std::string> backends;
  for (const Timing& t : timings) backends.insert(t.backend);
  for (const std::string& backend : backends) {
    for (const SweptCurve& curve : sweep.curves) {
      ChartSeries series{backend, page.styles.of(backend), {}, true, true, false, true};
      for (std::size_t n = 0; n < sweep.values.size(); ++n) {
        const auto timing = found.find({backend, curve.cases[n]});
        if (timing == found.end()) continue;
        const Timing& t = *timing->second;
        series.points.push_back({static_cast<double>(sweep.values[n]), t.run, t.low, t.high, t.case_line});
      }
      if (!series.points.empty()) chart.series.push_back(std::move(series));
    }
  }
  return chart.series.empty() ? "" : draw_chart(chart);
}

std::string error_chart(const std::vector<Timing>& timings, PageContext& page) {
  Chart chart;
  chart.id = page.ids.next();
  chart.title = "error against speed";
  chart.about = "error/bound and GFLOP/s of each backend and case.";
  chart.x = {"GFLOP/s", true, {}, {}, {}};
  chart.y = {"error/bound", true, {}, {}, {}};
  std::map<std::string, ChartSeries> series;
  for (const Timing& t : timings) {
    if (!t.error || !t.gflops) continue;
    ChartSeries& one = series[t.backend];
    one.name = t.backend;
    one.style = page.styles.of(t.backend);
    one.points.push_back({*t.gflops, *t.error, {}, {}, t.case_line});
  }
  if (series.empty()) return "";
  for (auto& [name, one] : series) chart.series.push_back(std::move(one));
  return draw_chart(chart);
}

std::string split_chart(const std::string& case_line, const std::vector<const Timing*>& timings, PageContext& page) {
  BarChart chart;
  chart.id = page.ids.next();
  chart.title = "where the time of a call goes";
  chart.about = "Upload, run and download of " + case_line + ", in milliseconds.";
  chart.unit = "ms";
  chart.parts = {"upload", "run", "download"};
  for (const Timing* t : timings) {
    if (!t->upload || !t->download) continue;
    chart.bars.push_back({t->backend, {*t->upload, t->run, *t->download}});
  }
  return chart.bars.empty() ? "" : draw_bars(chart);
}

std::string ratios_to_fastest(const std::vector<Timing>& timings, PageContext& page) {
  Chart chart;
  chart.id = page.ids.next();
  chart.title = "time against the fastest of each case";
  chart.about = "Medians of run, as multiples of the fastest backend's; intervals of the medians.";
  chart.x = {"times the fastest", true, {}, {}, {}};
  chart.width = 860;
  std::map<std::string, double> fastest;
  std::map<std::string, std::size_t> places;
  for (const Timing& t : timings) {
    const auto [place, fresh] = fastest.try_emplace(t.case_line, t.run);
    place->second = std::min(place->second, t.run);
    if (!fresh) continue;
    places[t.case_line] = chart.y.names.size();
    chart.y.names.push_back(t.case_line);
  }
  chart.height = 26 * static_cast<double>(chart.y.names.size()) + 24;
  std::map<std::string, ChartSeries> series;
  for (const Timing& t : timings) {
    ChartSeries& one = series[t.backend];
    one.name = t.backend;
    one.style = page.styles.of(t.backend);
    const double unit = fastest[t.case_line];
    ChartPoint point{t.run / unit, static_cast<double>(places[t.case_line]), {}, {}, t.case_line};
    if (t.low && t.high) point.low = *t.low / unit, point.high = *t.high / unit;
    one.points.push_back(point);
  }
  for (auto& [name, one] : series) chart.series.push_back(std::move(one));
  return draw_chart(chart);
}

std::string picture_of(const BenchmarkFile& file, const std::string& what) {
  const std::vector<Timing> timings = timings_of(file);
  PageContext page;
  for (const Timing& t : timings) page.styles.of(t.backend);
  if (what == "roofline") {
    const std::string svg = roofline_chart(timings, file, false, page);
    return svg.empty() ? roofline_chart(timings, file, true, page) : svg;
  }
  if (what == "peers") return ratios_to_fastest(timings, page);
  if (what == "errors") return error_chart(timings, page);
  throw UserError("--picture: \"" + what + "\"; roofline, peers or errors of a benchmark, or kills");
}

}  // namespace attest
