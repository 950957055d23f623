// What a page says of one benchmark file.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/base/text.h"
#include "harness/comparison/accuracy.h"
#include "harness/page/sections.h"
#include "harness/page/speed_charts.h"
#include "harness/page/timings.h"
#include "harness/speed/samples/speed_comparison.h"

namespace attest {
namespace {

constexpr double kRatioConfidence = 0.95;
constexpr std::size_t kMostSampleCharts = 40;

std::string ulps(const Timing& t) {
  return t.median_ulps && t.largest_ulps ? text_of(Spread{*t.median_ulps, 0, *t.largest_ulps}) : "\u2013";
}

std::string fraction(const std::optional<double>& value) { return value ? fmt::format("{:.2f}", *value) : "\u2013"; }

/// The table of one case, fastest first.
SectionJson rows_of(const std::vector<const Timing*>& timings) {
  SectionJson rows = SectionJson::array();
  const Timing& fastest = *timings.front();
  for (const Timing* t : timings) {
    std::string ratio = "1";
    if (t != &fastest) {
      const RatioInterval r = compare_samples(fastest.samples, t->samples, kRatioConfidence);
      ratio = number_words(r.ratio, 3) + " (" + number_words(r.low, 3) + " to " + number_words(r.high, 3) + ")";
    }
    rows.push_back({{"backend", t->backend},
                    {"run", shown(t->run)},
                    {"interval", t->low ? shown(t->low) + " to " + shown(t->high) : "\u2013"},
                    {"total", shown(t->total)},
                    {"prepare", shown(t->prepare)},
                    {"gflops", shown(t->gflops)},
                    {"roof", fraction(t->roof_fraction)},
                    {"error", shown(t->error)},
                    {"ulps", ulps(*t)},
                    {"ratio", ratio},
                    {"disturbed", t->disturbed ? "disturbed" : ""}});
  }
  return rows;
}

/// How the time grows along each curve of a sweep.
SectionJson growth_of(const SweptCurves& sweep) {
  SectionJson rows = SectionJson::array();
  for (const SweptCurve& curve : sweep.curves) {
    for (const auto& [backend, growth] : curve.growth) {
      rows.push_back({{"line", curve.line},
                      {"backend", backend},
                      {"exponent", fmt::format("{:.2f}", growth.exponent)},
                      {"last", fmt::format("{:.2f}", growth.last)},
                      {"sizes", fmt::format("{:g} to {:g}", growth.from, growth.to)}});
    }
  }
  return rows;
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
  chart(sweep_chart(bench.file, timings, page));
  if (bench.file.sweep) section["sweep"] = {{"key", bench.file.sweep->key}, {"rows", growth_of(*bench.file.sweep)}};
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
