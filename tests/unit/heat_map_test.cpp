// Pictures of weights.
#include "harness/plot/heat_map.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "harness/base/data_folder.h"
#include "harness/cases/case_file.h"
#include "harness/trace/trace.h"

namespace attest {
namespace {

Case walkthrough(const std::string& name) {
  return case_from_file(data_folder("golden") / "walkthroughs" / (name + ".safetensors"));
}

Trace trace_line(const std::string& line, const TraceSettings& settings = {}) {
  return trace_case(case_from_line(line), settings);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(HeatMaps, ASecondPanelOnlyWhenItDiffers) {
  const std::string both = draw_heat_maps(trace_line("seq=3 dim=4").heat_maps);
  EXPECT_EQ(count(both, "Without causal mask"), 1u);
  EXPECT_EQ(count(both, "With causal mask"), 1u);
  EXPECT_EQ(count(both, ">weight</text>"), 2u);  // a colour bar each
  EXPECT_EQ(count(both, "url(#hidden)"), 3u);
  // Its additive mask is causal already.
  const std::string one = draw_heat_maps(trace_case(walkthrough("three_tokens"), {}).heat_maps);
  EXPECT_EQ(count(one, "Attention weights"), 1u);
  EXPECT_EQ(count(one, "causal mask"), 0u);
  EXPECT_EQ(count(one, "url(#hidden)"), 3u);
  EXPECT_EQ(count(one, "query: who attends"), 1u);
  EXPECT_EQ(count(draw_heat_maps(trace_line("batch=2 heads=2 seq=3 dim=4").heat_maps), "batch 1, head 1"), 2u);
}

TEST(HeatMaps, NamesAreEscaped) {
  const std::string hostile = draw_heat_maps({{{"a\x1b[2J", {"\x07"}, {"\xff"}, {{0.5}}, {{0}}}}});
  for (char c : hostile) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << static_cast<int>(c);
  EXPECT_EQ(hostile.find("&#"), std::string::npos) << "XML knows no reference to a control character";
  const std::string svg = draw_heat_maps({{{"a < b", {"<&"}, {"\""}, {{0.5}}, {{0}}}}});
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_NE(svg.find("&lt;&amp;"), std::string::npos);
}

pugi::xml_document read(const std::string& svg) {
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(svg.c_str()));
  return document;
}

/// The fills of the cells of one panel, in order: those before its colour bar of 40 steps, and behind the paper.
std::vector<std::string> fills_of(const pugi::xml_document& document, std::size_t cells) {
  std::vector<std::string> fills;
  for (const auto& rect : document.select_nodes("/svg/rect[not(@class)]"))
    fills.push_back(rect.node().attribute("fill").value());
  EXPECT_EQ(fills.size(), cells + 40);
  fills.resize(cells);
  return fills;
}

TEST(HeatMaps, WhatIsBeyondALimitIsCrossedAndWarm) {
  HeatMap map{"errors", {"0"}, {"0", "1", "2", "3"}, {{0.5, 1, 1.5, kInfinity}}, {{0, 0, 0, 0}}};
  map.limit = 1;
  const auto document = read(draw_heat_maps({{map}}, "x-", "errors of a case"));
  EXPECT_EQ(document.select_nodes("/svg/path[@stroke-width='0.7']").size(), 2u) << "a cross each";
  const auto fills = fills_of(document, 4);
  const auto warm = [](const std::string& fill) {
    int red = 0, green = 0, blue = 0;
    EXPECT_EQ(std::sscanf(fill.c_str(), "rgb(%d,%d,%d)", &red, &green, &blue), 3);
    return red > blue;
  };
  EXPECT_FALSE(warm(fills[0]));
  EXPECT_FALSE(warm(fills[1]));
  EXPECT_TRUE(warm(fills[2]));
  EXPECT_TRUE(warm(fills[3]));
  EXPECT_EQ(fills[3], "rgb(127,0,0)");
}

}  // namespace
}  // namespace attest
