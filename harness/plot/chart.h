// Charts in SVG: axes with ticks, linear, logarithmic or of names; points, lines and intervals in series; a legend.
//
// A series has a colour that people who are colour-blind can tell from its neighbours, and a mark of its own shape.
// Each mark carries its numbers as text for a pointer and, unrounded, as data-x and data-y, so that a test can read the
// drawing back.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace attest {

struct ChartAxis {
  std::string title;
  bool logarithmic = false;
  std::vector<std::string> names{};    ///< instead of numbers: the thing at 0, 1, ...
  std::optional<double> from{}, to{};  ///< else where the data begin and end
};

struct ChartPoint {
  double x = 0, y = 0;
  std::optional<double> low{}, high{};  ///< an interval around y, or around x where the y axis has names
  std::string label{};                  ///< what a pointer is told besides the numbers
};

struct ChartSeries {
  std::string name;
  std::size_t style = 0;  ///< colour and shape; the same for the same thing in every chart
  std::vector<ChartPoint> points;
  bool joined = false;  ///< by a line, in the order of the points
  bool marked = true;   ///< with a mark at each point
  bool dashed = false;
  bool in_legend = true;
};

/// A stretch of the x axis, or of the y axis, that is shaded.
struct ChartBand {
  std::string name;
  double low = 0, high = 0;
  bool across = false;                 ///< of the y axis
  std::optional<double> from{}, to{};  ///< of the other axis; else all of it
};

struct Chart {
  std::string id;            ///< unique in its page
  std::string title, about;  ///< `about`: what it shows, for those who don't see it
  ChartAxis x, y;
  std::vector<ChartSeries> series;
  std::vector<ChartBand> bands;
  double width = 660, height = 340;
};

/// Numbers that an axis can't show are left out: NaN, and on a logarithmic axis what is not above 0. Infinity stands at
/// the end of the axis as a mark of its own.
std::string draw_chart(const Chart& chart);

/// Numbers at which an axis from `low` to `high` has ticks: 1, 2 or 5 times a power of ten. At least two.
std::vector<double> ticks_of(double low, double high, bool logarithmic);

/// Colour of a style on white; a page's own style may set others for its themes.
const char* colour_of_style(std::size_t style);

}  // namespace attest
