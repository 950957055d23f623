// Stacked bars in SVG: one bar for each thing, its parts one after another, with their numbers as text.
#pragma once

#include <string>
#include <vector>

namespace attest {

struct Bar {
  std::string name;
  std::vector<double> parts;  ///< not negative; as many as the chart's parts
};

struct BarChart {
  std::string id;  ///< unique in its page
  std::string title, about, unit;
  std::vector<std::string> parts;  ///< what they are; at most 4
  std::vector<Bar> bars;
  double width = 660;
};

/// A logarithmic axis would hide what a part is of the whole: each bar has the full width, its total beside its name.
/// Parts are told apart by lightness and by their order, which the legend gives. Each has data-value with its number.
std::string draw_bars(const BarChart& chart);

}  // namespace attest
