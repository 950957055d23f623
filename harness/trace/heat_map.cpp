#include "harness/trace/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <pugixml.hpp>
#include <sstream>

#include "harness/base/text.h"

namespace attest {
namespace {

// Pixels. A panel is: margin with row names, the cells, a gap, the colour bar with its numbers.
constexpr double kTop = 72, kBottom = 40, kGap = 14, kBarWidth = 14, kBarText = 62, kAxisTitle = 22, kLetter = 7;
constexpr double kWidestCell = 46, kNarrowestCell = 5, kWidestMap = 560;
constexpr double kNamedCell = 18, kNumberedCell = 40;  ///< cells from this size on carry names, or their weights
constexpr int kBarSteps = 40;

struct Colour {
  int red, green, blue;
  std::string text() const { return fmt::format("rgb({},{},{})", red, green, blue); }
};

/// From almost white to dark blue.
Colour colour_of(double share) {
  const double s = std::clamp(share, 0.0, 1.0);
  return {static_cast<int>(247 - 239 * s), static_cast<int>(251 - 203 * s), static_cast<int>(255 - 148 * s)};
}

/// The largest weight, rounded up to a tenth or, below one, to a hundredth.
double top_of(const HeatMap& map) {
  double most = 0;
  for (const std::vector<double>& row : map.weights) {
    for (double w : row) most = std::isfinite(w) ? std::max(most, w) : most;
  }
  const double step = most > 0.1 ? 10 : 100;
  return std::max(std::ceil(most * step - 1e-9) / step, 0.01);
}

class Drawing {
 public:
  Drawing() {
    svg_ = document_.append_child("svg");
    svg_.append_attribute("xmlns") = "http://www.w3.org/2000/svg";
    size_[0] = svg_.append_attribute("width");
    size_[1] = svg_.append_attribute("height");
    svg_.append_attribute("font-family") = "sans-serif";
    svg_.append_attribute("font-size") = "12";
    pugi::xml_node pattern = svg_.append_child("defs").append_child("pattern");
    pattern.append_attribute("id") = "hidden";
    for (const char* side : {"width", "height"}) pattern.append_attribute(side) = "6";
    pattern.append_attribute("patternUnits") = "userSpaceOnUse";
    rectangle(pattern, 0, 0, 6, 6, "#eee");
    pugi::xml_node stroke = pattern.append_child("path");
    stroke.append_attribute("d") = "M0 6L6 0";
    stroke.append_attribute("stroke") = "#bbb";
    background_ = rectangle(svg_, 0, 0, 0, 0, "white");
  }

  static pugi::xml_node rectangle(pugi::xml_node parent, double x, double y, double width, double height,
                                  const std::string& fill) {
    pugi::xml_node node = parent.append_child("rect");
    number(node, "x", x);
    number(node, "y", y);
    number(node, "width", width);
    number(node, "height", height);
    node.append_attribute("fill") = fill.c_str();
    return node;
  }
  pugi::xml_node rectangle(double x, double y, double width, double height, const std::string& fill) {
    return rectangle(svg_, x, y, width, height, fill);
  }

  pugi::xml_node text(double x, double y, const std::string& words, const char* anchor = "start",
                      const char* fill = "#222") {
    pugi::xml_node node = svg_.append_child("text");
    number(node, "x", x);
    number(node, "y", y);
    node.append_attribute("text-anchor") = anchor;
    node.append_attribute("fill") = fill;
    node.text() = printable_line(words).c_str();
    return node;
  }

  /// Turned around its own point, to read from below.
  void upright(double x, double y, const std::string& words, const char* anchor) {
    text(x, y, words, anchor).append_attribute("transform") = fmt::format("rotate(-90 {:.1f} {:.1f})", x, y).c_str();
  }

  std::string finish(double width, double height) {
    for (pugi::xml_attribute size : {size_[0], background_.attribute("width")}) size = std::ceil(width);
    for (pugi::xml_attribute size : {size_[1], background_.attribute("height")}) size = std::ceil(height);
    std::ostringstream out;
    document_.save(out, " ", pugi::format_indent | pugi::format_no_declaration);
    return out.str();
  }

 private:
  static void number(pugi::xml_node node, const char* name, double value) {
    node.append_attribute(name) = fmt::format("{:.1f}", value).c_str();
  }

  pugi::xml_document document_;
  pugi::xml_node svg_, background_;
  pugi::xml_attribute size_[2];
};

/// Where the parts of one panel are.
struct Panel {
  const HeatMap& map;
  double cell, names, width, height;

  explicit Panel(const HeatMap& m) : map(m) {
    const auto most = static_cast<double>(std::max<std::size_t>({m.queries.size(), m.keys.size(), 1}));
    cell = std::clamp(kWidestMap / most, kNarrowestCell, kWidestCell);
    std::size_t letters = 0;
    for (const std::string& name : m.queries) letters = std::max(letters, name.size());
    names = kAxisTitle + (cell >= kNamedCell ? kLetter * static_cast<double>(letters) + 8 : 0);
    width = names + std::max(map_width(), 0.0) + kGap + kBarWidth + kBarText;
    width = std::max(width, kLetter * 1.15 * static_cast<double>(m.title.size()) + names);
    height = kTop + (keys_upright() ? 36 : 0) + cell * static_cast<double>(m.queries.size()) + kBottom;
  }
  double map_width() const { return cell * static_cast<double>(map.keys.size()); }
  double map_height() const { return cell * static_cast<double>(map.queries.size()); }
  bool keys_upright() const {
    return cell >= kNamedCell && std::any_of(map.keys.begin(), map.keys.end(), [&](const std::string& name) {
             return kLetter * static_cast<double>(name.size()) > cell - 2;
           });
  }
};

void draw_bar(Drawing& drawing, double x, double y, double height, double top) {
  for (int n = 0; n < kBarSteps; ++n) {
    const double share = (kBarSteps - n - 0.5) / kBarSteps, step = height / kBarSteps;
    drawing.rectangle(x, y + step * n, kBarWidth, step + 0.5, colour_of(share).text());
  }
  for (double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    drawing.text(x + kBarWidth + 5, y + height * (1 - share) + 4, fmt::format("{:.3g}", share * top));
  }
  drawing.upright(x + kBarWidth + 48, y + height / 2, "weight", "middle");
}

void draw_panel(Drawing& drawing, const Panel& panel, double x0, double y0) {
  const HeatMap& map = panel.map;
  const double top = top_of(map);
  const double x = x0 + panel.names, y = y0 + kTop + (panel.keys_upright() ? 36 : 0), cell = panel.cell;
  pugi::xml_node title = drawing.text(x, y0 + 20, map.title);
  title.append_attribute("font-size") = "14";
  title.append_attribute("font-weight") = "bold";
  drawing.text(x + panel.map_width() / 2, y + panel.map_height() + 26, "key: whom it attends to", "middle");
  drawing.upright(x0 + 14, y + panel.map_height() / 2, "query: who attends", "middle");
  for (std::size_t i = 0; i < map.queries.size(); ++i) {
    const double row = y + cell * static_cast<double>(i);
    if (cell >= kNamedCell) drawing.text(x - 6, row + cell / 2 + 4, map.queries[i], "end");
    for (std::size_t j = 0; j < map.keys.size(); ++j) {
      const double w = map.weights[i][j], left = x + cell * static_cast<double>(j);
      const bool hidden = map.hidden[i][j] != 0;
      drawing.rectangle(left, row, cell - 1, cell - 1, hidden ? "url(#hidden)" : colour_of(w / top).text());
      if (cell >= kNumberedCell && !hidden) {
        drawing.text(left + cell / 2, row + cell / 2 + 4, fmt::format("{:.3f}", w), "middle",
                     w / top > 0.55 ? "white" : "#222");
      }
    }
  }
  if (cell >= kNamedCell) {
    for (std::size_t j = 0; j < map.keys.size(); ++j) {
      const double middle = x + cell * (static_cast<double>(j) + 0.5);
      if (panel.keys_upright())
        drawing.upright(middle + 4, y - 6, map.keys[j], "start");
      else
        drawing.text(middle, y - 8, map.keys[j], "middle");
    }
  }
  draw_bar(drawing, x + panel.map_width() + kGap, y, panel.map_height(), top);
}

}  // namespace

std::string draw_heat_maps(const std::vector<std::vector<HeatMap>>& lines) {
  Drawing drawing;
  double y = 8, width = 0;
  for (const auto& line : lines) {
    double x = 8, height = 0;
    for (const HeatMap& map : line) {
      const Panel panel(map);
      draw_panel(drawing, panel, x, y);
      x += panel.width + 2 * kGap;
      height = std::max(height, panel.height);
    }
    width = std::max(width, x);
    y += height;
  }
  return drawing.finish(width, y + 8);
}

}  // namespace attest
