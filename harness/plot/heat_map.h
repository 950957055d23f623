// Heat maps in SVG: panels with title, named axes and a colour bar; cells without a value are hatched.
#pragma once

#include <string>
#include <vector>

namespace attest {

struct HeatMap {
  std::string title;
  std::vector<std::string> rows, columns;           ///< names, shown where cells are large enough; empty names are not
  std::vector<std::vector<double>> values, hidden;  ///< row by column; hidden: 1 where there is no value to show
  std::string row_axis = "query: who attends", column_axis = "key: whom it attends to", bar = "weight";
  /// Colour by logarithm, from 1/16 of `limit` to 16 times; what is beyond `limit` is warm and carries a cross, so that
  /// it is seen without colour, too. 0: linear, from 0 to the largest value.
  double limit = 0;
  double widest = 560;  ///< of the cells together, in pixels
  /// Of one cell, in pixels, where it is not to be a square as large as fits.
  double cell_width = 0, cell_height = 0;
  bool counts = false;  ///< values are counts from 1: colour by logarithm, and whole numbers in the cells
  std::string note{};   ///< a line below
};

/// One line of panels after another. White is 0 and the darkest blue a panel's largest value, as its colour bar says;
/// with a limit, white is the least and dark red the most. `id`: unique in the page that the drawing is part of.
std::string draw_heat_maps(const std::vector<std::vector<HeatMap>>& lines, const std::string& id = "",
                           const std::string& about = "");

}  // namespace attest
