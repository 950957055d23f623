// Charts of speeds, read back: what stands in the file is in the drawing.
#include "harness/page/speed_charts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <pugixml.hpp>
#include <set>
#include <sstream>
#include <string>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

/// Two backends on three lengths: eigen takes 1, 2 and 4 ms, other three times as long.
BenchmarkFile a_file() {
  std::ostringstream text;
  text << R"({"context":{"roof_fma_gflops_f32":"100","roof_fma_gflops_f64":"50","roof_read_gbps":"20"},"benchmarks":[)";
  const char* comma = "";
  for (const char* backend : {"eigen", "other"}) {
    const double slow = backend[0] == 'o' ? 3 : 1;
    for (int length : {64, 128, 256}) {
      for (int sample = 0; sample < 3; ++sample) {
        text << comma << R"({"name":")" << backend << R"(/x","label":"seq=)" << length
             << R"( dim=64","time_unit":"ms","real_time":)" << slow * length / 64 * (1 + 0.01 * sample)
             << R"(,"GFLOP/s":)" << 30 / slow << R"(,"GB/s":2,"error_over_bound":)" << 0.1 * slow
             << R"(,"upload_seconds":0.001,"download_seconds":0.002,"run_low_seconds":)" << 1e-3 * slow * length / 64
             << R"(,"run_high_seconds":)" << 1.02e-3 * slow * length / 64 << "}";
        comma = ",";
      }
    }
  }
  text << "]}";
  std::istringstream file(text.str());
  return read_benchmark(file, "a file");
}

pugi::xml_document read(const std::string& svg) {
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(svg.c_str())) << svg;
  return document;
}

std::multiset<std::pair<double, double>> marks_of(const pugi::xml_document& document) {
  std::multiset<std::pair<double, double>> marks;
  for (const auto& mark : document.select_nodes("//path[@data-x]"))
    marks.insert({mark.node().attribute("data-x").as_double(), mark.node().attribute("data-y").as_double()});
  return marks;
}

TEST(SpeedCharts, SpeedStandsAgainstEachLength) {
  PageContext page;
  const auto marks =
      marks_of(read(speed_chart(timings_of(a_file()), "length", &Timing::key_length, &Timing::but_length, page)));
  for (double length : {64, 128, 256}) {
    EXPECT_EQ(marks.count({length, 30}), 1u) << length;
    EXPECT_EQ(marks.count({length, 10}), 1u) << length;
  }
  EXPECT_EQ(speed_chart(timings_of(a_file()), "dim", &Timing::head_dim, &Timing::but_dim, page), "") << "one dim alone";
}

TEST(SpeedCharts, SweptLinesStandAgainstTheirSize) {
  PageContext page;
  BenchmarkFile file = a_file();
  EXPECT_EQ(sweep_chart(file, timings_of(file), page), "") << "nothing was swept";
  file.sweep = SweptCurves{"seq", "", {64, 256}, {{"dim=64", {"seq=64 dim=64", "seq=256 dim=64"}, {}}}};
  const auto marks = marks_of(read(sweep_chart(file, timings_of(file), page)));
  EXPECT_EQ(marks, (std::multiset<std::pair<double, double>>{{64, 1.01}, {256, 4.04}, {64, 3.03}, {256, 12.12}}));
  file.sweep->curves.front().cases = {"seq=1 dim=1", "seq=2 dim=1"};
  EXPECT_EQ(sweep_chart(file, timings_of(file), page), "") << "of cases that have no samples";
}

TEST(SpeedCharts, EverySampleIsThere) {
  PageContext page;
  const std::vector<Timing> timings = timings_of(a_file());
  const auto document = read(samples_chart("seq=64 dim=64", {&timings[0], &timings[3]}, page));
  std::multiset<double> times;
  for (const auto& [x, y] : marks_of(document)) times.insert(x);
  EXPECT_EQ(times, (std::multiset<double>{1, 1.01, 1.01, 1.02, 3, 3.03, 3.03, 3.06})) << "medians twice";
}

TEST(SpeedCharts, TimesAreSplitAndHeldAgainstTheFastest) {
  PageContext page;
  const std::vector<Timing> timings = timings_of(a_file());
  const auto split = read(split_chart("seq=64 dim=64", {&timings[0]}, page));
  std::vector<double> parts;
  for (const auto& part : split.select_nodes("//rect[@data-value]"))
    parts.push_back(part.node().attribute("data-value").as_double());
  EXPECT_EQ(parts, (std::vector<double>{1, 1.01, 2}));
  std::multiset<double> ratios;
  for (const auto& [x, y] : marks_of(read(ratios_to_fastest(timings, page)))) ratios.insert(std::round(x * 1e6) / 1e6);
  EXPECT_EQ(ratios, (std::multiset<double>{1, 1, 1, 3, 3, 3}));
}

TEST(SpeedCharts, APictureIsOneByName) {
  const BenchmarkFile file = a_file();
  const std::set<std::string> all = {picture_of(file, "roofline"), picture_of(file, "peers"),
                                     picture_of(file, "errors")};
  EXPECT_EQ(all.size(), 3u);
  for (const std::string& svg : all) EXPECT_EQ(marks_of(read(svg)).size(), 6u);
  EXPECT_NE(message_of<UserError>([&] { picture_of(file, "beauty"); }).find("peers"), std::string::npos);
}

}  // namespace
}  // namespace attest
