// Attention weights as heat maps in SVG: a panel with title, named axes and a colour bar; hidden cells are hatched.
#pragma once

#include <string>
#include <vector>

namespace attest {

struct HeatMap {
  std::string title;
  std::vector<std::string> queries, keys;
  std::vector<std::vector<double>> weights, hidden;  ///< query by key; hidden: 1 where the query does not see the key
};

/// One line of panels after another. White is 0 and the darkest blue a panel's largest weight, as its colour bar says.
std::string draw_heat_maps(const std::vector<std::vector<HeatMap>>& lines);

}  // namespace attest
