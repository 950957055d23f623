// Stacked bars: widths are shares.
#include "harness/plot/bars.h"

#include <gtest/gtest.h>

#include <pugixml.hpp>
#include <string>

namespace attest {
namespace {

TEST(Bars, WidthsAreSharesAndNumbersAreThere) {
  BarChart chart{"", "split", "", "ms", {"upload", "run", "download"}, {{"eigen", {1, 6, 3}}, {"<b>", {2, 2, 0}}}};
  const std::string svg = draw_bars(chart);
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(svg.c_str()));
  const auto parts = document.select_nodes("//rect[@data-name='eigen']");
  ASSERT_EQ(parts.size(), 3u);
  double whole = 0, x = parts[0].node().attribute("x").as_double();
  for (const auto& part : parts) {
    EXPECT_NEAR(part.node().attribute("x").as_double(), x + whole, 0.2) << "one after another";
    whole += part.node().attribute("width").as_double();
  }
  EXPECT_NEAR(parts[1].node().attribute("width").as_double() / whole, 0.6, 0.002);
  EXPECT_EQ(parts[2].node().attribute("data-value").as_double(), 3);
  EXPECT_NE(svg.find("eigen: 10 ms"), std::string::npos) << "its total beside its name";
  EXPECT_NE(svg.find("&lt;b&gt;: 4 ms"), std::string::npos);
  EXPECT_NE(svg.find("1. upload"), std::string::npos) << "told by order, too";
}

TEST(Bars, NothingIsDrawnOfNothing) {
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(draw_bars({"", "none", "", "ms", {"run"}, {{"a", {0}}}}).c_str()));
  EXPECT_TRUE(document.select_nodes("//rect[@data-name]").empty());
}

}  // namespace
}  // namespace attest
