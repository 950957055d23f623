// What a page says of one benchmark file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/base/statistics.h"
#include "harness/cases/case.h"
#include "harness/page/sections.h"
#include "harness/page/timings.h"
#include "harness/plot/bars.h"
#include "harness/plot/chart.h"
#include "harness/speed/speed_comparison.h"

namespace attest {
namespace {

constexpr double kRatioConfidence = 0.95;
constexpr std::size_t kMostSampleCharts = 40;

std::string fraction(const std::optional<double>& value) { return value ? fmt::format("{:.2f}", *value) : "\u2013"; }

/// The table of one case, fastest first.
SectionJson rows_of(const std::vector<const Timing*>& timings) {
  SectionJson rows = SectionJson::array();
  const Timing& fastest = *timings.front();
  for (const Timing* t : timings) {
    std::string ratio = "1";
    if (t != &fastest) {
      const RatioInterval r = compare_samples(fastest.samples, t->samples, kRatioConfidence);
      ratio = fmt::format("{:.3g} ({:.3g} to {:.3g})", r.ratio, r.low, r.high);
    }
    rows.push_back({{"backend", t->backend},
                    {"run", fmt::format("{:.4g}", t->run)},
                    {"interval", t->low ? fmt::format("{:.4g} to {:.4g}", *t->low, *t->high) : "\u2013"},
                    {"total", shown(t->total)},
                    {"prepare", shown(t->prepare)},
                    {"gflops", shown(t->gflops)},
                    {"roof", fraction(t->roof_fraction)},
                    {"error", shown(t->error)},
                    {"ratio", ratio},
                    {"disturbed", t->disturbed ? "disturbed" : ""}});
  }
  return rows;
}

/// Every sample, a line of marks for each backend, with the interval of its median.
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

/// What the machine could do at most at each intensity, and what was done.
std::string roofline_chart(const std::vector<Timing>& timings, const BenchmarkFile& file, bool f64, PageContext& page) {
  Chart chart;
  chart.id = page.ids.next();
  const double fma = number_in(file, f64 ? "roof_fma_gflops_f64" : "roof_fma_gflops_f32"),
               read = number_in(file, "roof_read_gbps");
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

/// Speed against a size: joined are the cases that differ in this size alone.
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

}  // namespace

SectionJson speed_section(const BenchResults& bench, PageContext& page) {
  const std::vector<Timing> timings = timings_of(bench.file);
  SectionJson section = {{"file", bench.name}, {"cases", SectionJson::array()}, {"charts", SectionJson::array()}};
  const auto chart = [&](const std::string& svg) {
    if (!svg.empty()) section["charts"].push_back({{"svg", svg}});
  };
  for (const Timing& t : timings) page.styles.of(t.backend);
  for (bool f64 : {false, true}) chart(roofline_chart(timings, bench.file, f64, page));
  chart(speed_chart(timings, "length of keys", &Timing::key_length, &Timing::but_length, page));
  chart(speed_chart(timings, "head dim", &Timing::head_dim, &Timing::but_dim, page));
  chart(error_chart(timings, page));
  std::vector<std::string> order;
  std::map<std::string, std::vector<const Timing*>> by_case;
  for (const Timing& t : timings) {
    if (!by_case.contains(t.case_line)) order.push_back(t.case_line);
    by_case[t.case_line].push_back(&t);
  }
  for (const std::string& line : order) {
    std::vector<const Timing*>& list = by_case[line];
    std::stable_sort(list.begin(), list.end(), [](const Timing* a, const Timing* b) { return a->run < b->run; });
    SectionJson one = {{"case", line}, {"rows", rows_of(list)}};
    if (section["cases"].size() < kMostSampleCharts) {
      one["samples_svg"] = samples_chart(line, list, page);
      if (const std::string split = split_chart(line, list, page); !split.empty()) one["split"] = {{"svg", split}};
    }
    section["cases"].push_back(std::move(one));
  }
  return section;
}

}  // namespace attest
