// Charts show what their data say: each drawing is read back by its own ticks.
#include "harness/plot/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <pugixml.hpp>
#include <set>
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

/// What an axis says of pixels, from its first and last labelled tick.
struct ReadAxis {
  double pixel0, pixel1, value0, value1;
  bool logarithmic;
  double value_at(double pixel) const {
    const double share = (pixel - pixel0) / (pixel1 - pixel0);
    return logarithmic ? value0 * std::pow(value1 / value0, share) : value0 + share * (value1 - value0);
  }
};

ReadAxis axis_of(const pugi::xml_document& document, const char* css_class, bool logarithmic) {
  const std::string path = std::string("//g[@class='") + css_class + "']/text[@class='tick']";
  const auto ticks = document.select_nodes(path.c_str());
  EXPECT_GE(ticks.size(), 2u);
  const bool across = std::string(css_class) == "x-axis";
  const auto place = [&](const pugi::xml_node& n) {
    return across ? n.attribute("x").as_double() : n.attribute("y").as_double() - 4;  // text stands 4 below its line
  };
  const pugi::xml_node first = ticks.begin()->node(), last = (ticks.end() - 1)->node();
  return {place(first), place(last), first.attribute("data-value").as_double(),
          last.attribute("data-value").as_double(), logarithmic};
}

Chart chart_of(std::vector<ChartPoint> points, bool logarithmic, std::size_t style = 5) {
  Chart chart;
  chart.title = "a title";
  chart.x = {"size", logarithmic, {}, {}, {}};
  chart.y = {"speed", logarithmic, {}, {}, {}};
  chart.series.push_back({"one", style, std::move(points), false, true, false, true});
  return chart;
}

TEST(Chart, MarksStandWhereTheTicksSay) {
  for (bool logarithmic : {false, true}) {
    const std::vector<ChartPoint> points = {{1, 2, {}, {}, ""}, {10, 300, {}, {}, ""}, {1000, 40, {}, {}, ""}};
    // The tip of style 5 is 5 below the point, in pixels.
    const auto document = read(draw_chart(chart_of(points, logarithmic)));
    const ReadAxis x = axis_of(document, "x-axis", logarithmic), y = axis_of(document, "y-axis", logarithmic);
    const auto marks = document.select_nodes("//g[@class='series']/path[@data-x]");
    ASSERT_EQ(marks.size(), points.size());
    for (std::size_t n = 0; n < points.size(); ++n) {
      const auto [px, py] = first_point(marks[n].node());
      const double tolerance = logarithmic ? 0.01 : 0;  // pixels are written to a tenth
      EXPECT_NEAR(x.value_at(px), points[n].x, logarithmic ? tolerance * points[n].x : 0.5);
      EXPECT_NEAR(y.value_at(py - 5), points[n].y, logarithmic ? tolerance * points[n].y : 0.3);
      EXPECT_EQ(marks[n].node().attribute("data-x").as_double(), points[n].x);
      EXPECT_EQ(marks[n].node().attribute("data-y").as_double(), points[n].y);
    }
  }
}

TEST(Chart, IntervalsAndBandsReachAsFarAsTheyAre) {
  Chart chart = chart_of({{2, 50, 40.0, 70.0, ""}}, false);
  chart.y.from = 0;
  chart.y.to = 100;
  chart.bands.push_back({"noise", 20, 80, true, {}, {}});
  const auto document = read(draw_chart(chart));
  const ReadAxis y = axis_of(document, "y-axis", false);
  const auto bar = document.select_node("//path[@data-low]").node();
  double px = 0, low = 0, high = 0;
  char letter = 0;
  std::istringstream(std::string(bar.attribute("d").value()).substr(1)) >> px >> low >> letter >> high;
  EXPECT_EQ(letter, 'V');
  EXPECT_NEAR(y.value_at(low), 40, 0.1);
  EXPECT_NEAR(y.value_at(high), 70, 0.1);
  const auto band = document.select_node("//g[@class='bands']/rect").node();
  EXPECT_NEAR(y.value_at(band.attribute("y").as_double()), 80, 0.1);
  EXPECT_NEAR(y.value_at(band.attribute("y").as_double() + band.attribute("height").as_double()), 20, 0.1);
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

TEST(Chart, SeriesHaveColourAndShapeAndOneLegendEntry) {
  Chart chart = chart_of({{2, 2, {}, {}, ""}}, false, 0);
  for (std::size_t style = 1; style < 6; ++style)
    chart.series.push_back({"series " + std::to_string(style), style, {{2, 2, {}, {}, ""}}, false, true, false, true});
  chart.series.push_back(chart.series.back());  // the same name once more
  const auto document = read(draw_chart(chart));
  std::set<std::string> colours, shapes;
  for (const auto& mark : document.select_nodes("//g[@class='series']/path[@data-x]")) {
    colours.insert(mark.node().attribute("stroke").value());
    shapes.insert(mark.node().attribute("d").value());
  }
  EXPECT_EQ(colours.size(), 6u);
  EXPECT_EQ(shapes.size(), 6u) << "at one point, six shapes";
  EXPECT_EQ(document.select_nodes("//g[@class='legend']/text").size(), 6u);
}

TEST(Chart, NamesInsteadOfNumbers) {
  Chart chart = chart_of({{5, 0, 4.0, 6.0, ""}, {7, 1, {}, {}, ""}}, false);
  chart.y.names = {"first & <last>", "second"};
  const std::string svg = draw_chart(chart);
  const auto document = read(svg);
  EXPECT_NE(svg.find("first &amp; &lt;last&gt;"), std::string::npos);
  const auto marks = document.select_nodes("//g[@class='series']/path[@data-x]");
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_LT(first_point(marks[0].node()).second, first_point(marks[1].node()).second) << "from the top";
  EXPECT_NE(std::string(document.select_node("//path[@data-low]").node().attribute("d").value()).find('H'),
            std::string::npos)
      << "an interval of x";
}

TEST(Chart, HostileNamesStayText) {
  Chart chart = chart_of({{1, 1, {}, {}, "</title><script>alert(1)</script>"}}, false);
  chart.title = "\x1b[2J<script>";
  chart.series.front().name = "\"><script>alert(1)</script>";
  const auto document = read(draw_chart(chart));
  EXPECT_TRUE(document.select_nodes("//script").empty());
  EXPECT_EQ(draw_chart(chart).find('\x1b'), std::string::npos);
}

TEST(Ticks, AreOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_EQ(ticks_of(0, 10, false), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(ticks_of(1, 1000, true), (std::vector<double>{1, 10, 100, 1000}));
  EXPECT_EQ(ticks_of(3, 60, true), (std::vector<double>{5, 10, 20, 50}));
  for (double low : {1e-9, 0.3, 7.0, 1e12}) {
    for (double factor : {1.5, 30.0, 1e9}) {
      EXPECT_LE(ticks_of(low, low * factor, true).size(), 9u) << low << " " << factor;
      EXPECT_GE(ticks_of(low, low * factor, false).size(), 2u) << low << " " << factor;
      EXPECT_LE(ticks_of(low, low * factor, false).size(), 8u) << low << " " << factor;
    }
  }
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
