// Charts of data at the ends of what can be drawn; docs.tables compares whole charts with those of the documents.
#include "harness/plot/chart.h"

#include <gtest/gtest.h>

#include <limits>
#include <pugixml.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace attest {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

pugi::xml_document read(const std::string& svg) {
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(svg.c_str())) << svg;
  return document;
}

/// Where a mark is: the middle of its box, from the numbers of its first move and what follows is known of the shapes.
std::pair<double, double> first_point(const pugi::xml_node& node) {
  std::istringstream text(std::string(node.attribute("d").value()).substr(1));
  double x = 0, y = 0;
  text >> x >> y;
  return {x, y};
}

Chart chart_of(std::vector<ChartPoint> points, bool logarithmic, std::size_t style = 5) {
  Chart chart;
  chart.title = "a title";
  chart.x = {"size", logarithmic, {}, {}, {}};
  chart.y = {"speed", logarithmic, {}, {}, {}};
  chart.series.push_back({"one", style, std::move(points), false, true, false, true});
  return chart;
}

TEST(Chart, WhatAnAxisCannotShowIsLeftOutAndInfinityStandsAtItsEnd) {
  const auto document = read(draw_chart(
      chart_of({{1, 1, {}, {}, ""}, {0, 1, {}, {}, ""}, {kNan, 1, {}, {}, ""}, {10, kInf, {}, {}, ""}}, true)));
  const auto marks = document.select_nodes("//g[@class='series']/path[@data-x]");
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_STREQ(marks[1].node().attribute("data-y").value(), "inf");
  EXPECT_NE(std::string(marks[1].node().child("title").text().get()).find("inf"), std::string::npos);
  EXPECT_EQ(first_point(marks[1].node()).second, 34) << "the top of the frame";
}

TEST(Chart, NumbersAtTheEndsOfTheirRangeAreDrawn) {
  for (bool logarithmic : {false, true}) {
    const std::string svg = draw_chart(chart_of(
        {{1e308, 5e-324, {}, {}, ""}, {5e-324, 1e308, {}, {}, ""}, {1, 1, {}, {}, ""}, {1e150, 1e-150, {}, {}, ""}},
        logarithmic));
    EXPECT_EQ(read(svg).select_nodes("//g[@class='series']/path[@data-x]").size(), 4u);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
  }
}

TEST(Chart, HostileNamesStayText) {
  Chart chart = chart_of({{1, 1, {}, {}, "</title><script>alert(1)</script>"}}, false);
  chart.title = "\x1b[2J<script>";
  chart.series.front().name = "\"><script>alert(1)</script>";
  const auto document = read(draw_chart(chart));
  EXPECT_TRUE(document.select_nodes("//script").empty());
  EXPECT_EQ(draw_chart(chart).find('\x1b'), std::string::npos);
}

TEST(Chart, ABandWithoutAnEndReachesThatOfTheAxis) {
  Chart chart = chart_of({{0.01, 50, {}, {}, ""}, {1e6, 90, {}, {}, ""}}, true);
  chart.bands.push_back({"beyond the bound", 1, std::numeric_limits<double>::infinity(), false, {}, {}});
  const auto document = read(draw_chart(chart));
  const auto band = document.select_node("//g[@class='bands']/rect").node();
  const auto axis = document.select_node("//g[@class='x-axis']/line").node();
  EXPECT_NEAR(band.attribute("x").as_double() + band.attribute("width").as_double(), axis.attribute("x2").as_double(),
              0.2);
}

}  // namespace
}  // namespace attest
