#include "harness/plot/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "harness/plot/svg.h"

namespace attest {
namespace {

// Pixels. A panel is: margin with row names, the cells, a gap, the colour bar with its numbers.
constexpr double kMapTop = 72, kMapBottom = 40, kGap = 14, kBarWidth = 14, kBarText = 62, kAxisTitle = 22,
                 kMapLetter = 7, kNote = 20;
constexpr double kWidestCell = 46, kNarrowestCell = 5;
constexpr double kNamedCell = 18, kNumberedCell = 40;  ///< cells from this size on carry names, or their weights
constexpr int kBarSteps = 40;
constexpr double kLeastHeight = 100;

struct Colour {
  int red, green, blue;
  std::string text() const { return fmt::format("rgb({},{},{})", red, green, blue); }
};

/// From almost white to dark blue.
Colour colour_of(double share) {
  const double s = std::clamp(share, 0.0, 1.0);
  return {static_cast<int>(247 - 239 * s), static_cast<int>(251 - 203 * s), static_cast<int>(255 - 148 * s)};
}

/// From white to dark blue below the limit, from light to dark red beyond; `share`: 0.5 at the limit.
Colour colour_around_limit(double share) {
  const auto between = [](Colour from, Colour to, double s) {
    const auto mix = [s](int a, int b) { return static_cast<int>(a + (b - a) * s); };
    return Colour{mix(from.red, to.red), mix(from.green, to.green), mix(from.blue, to.blue)};
  };
  if (share <= 0.5) return between({250, 252, 255}, {146, 190, 224}, std::clamp(2 * share, 0.0, 1.0));
  return between({253, 187, 132}, {127, 0, 0}, std::clamp(2 * share - 1, 0.0, 1.0));
}

/// The largest value, rounded up to a tenth or, below one, to a hundredth.
double top_of(const HeatMap& map) {
  double most = 0;
  for (const std::vector<double>& row : map.values) {
    for (double w : row) most = std::isfinite(w) ? std::max(most, w) : most;
  }
  if (map.counts) return std::max(most, 2.0);
  const double step = most > 0.1 ? 10 : 100;
  return std::max(std::ceil(most * step - 1e-9) / step, 0.01);
}

/// From values to shares of the colour bar.
class ColourScale {
 public:
  explicit ColourScale(const HeatMap& map)
      : limit_(map.limit), counts_(map.counts), top_(map.limit > 0 ? map.limit * kReach : top_of(map)) {}

  double share_of(double value) const {
    if (counts_) return std::log(std::max(value, 1.0)) / std::log(top_);
    if (limit_ == 0) return value / top_;
    if (!(value > 0)) return 0;
    return std::isinf(value) ? 1 : std::clamp(0.5 + std::log(value / limit_) / (2 * std::log(kReach)), 0.0, 1.0);
  }
  Colour colour(double share) const { return limit_ > 0 ? colour_around_limit(share) : colour_of(share); }
  std::string at(double share) const {
    if (counts_) return fmt::format("{:.0f}", std::pow(top_, share));
    const double value = limit_ > 0 ? limit_ * std::pow(kReach, 2 * share - 1) : share * top_;
    const char* end = limit_ == 0 ? "" : share == 0 ? "\u2264 " : share == 1 ? "\u2265 " : "";
    return end + fmt::format("{:.3g}", value);
  }
  bool beyond(double value) const { return limit_ > 0 && !(value <= limit_); }

 private:
  static constexpr double kReach = 16;
  double limit_;
  bool counts_;
  double top_;
};

/// Where the parts of one panel are.
struct Panel {
  const HeatMap& map;
  double cell, across, names, width, height;  ///< cell, across: height and width of a cell

  explicit Panel(const HeatMap& m) : map(m) {
    const auto most = static_cast<double>(std::max<std::size_t>({m.rows.size(), m.columns.size(), 1}));
    cell = m.cell_height > 0 ? m.cell_height : std::clamp(m.widest / most, kNarrowestCell, kWidestCell);
    across = m.cell_width > 0 ? m.cell_width : cell;
    std::size_t letters = 0;
    for (const std::string& name : m.rows) letters = std::max(letters, name.size());
    names = kAxisTitle + (cell >= kNamedCell ? kMapLetter * static_cast<double>(letters) + 8 : 0);
    width = names + std::max(map_width(), 0.0) + kGap + kBarWidth + kBarText;
    width = std::max(width, kMapLetter * 1.15 * static_cast<double>(m.title.size()) + names);
    width = std::max(width, kMapLetter * static_cast<double>(m.note.size()) + kAxisTitle);
    height = kMapTop + room_for_names() + inner_height() + kMapBottom + (m.note.empty() ? 0 : kNote);
  }
  double map_width() const { return across * static_cast<double>(map.columns.size()); }
  /// What the colour bar and the names of the axes need, however few rows there are.
  double inner_height() const { return map.limit > 0 ? std::max(map_height(), kLeastHeight) : map_height(); }
  double map_height() const { return cell * static_cast<double>(map.rows.size()); }
  /// Above the cells, for names that stand upright.
  double room_for_names() const {
    std::size_t letters = 0;
    for (const std::string& name : map.columns) letters = std::max(letters, name.size());
    return keys_upright() ? std::max(36.0, kMapLetter * static_cast<double>(letters) - 38) : 0;
  }
  bool keys_upright() const {
    return cell >= kNamedCell && std::any_of(map.columns.begin(), map.columns.end(), [&](const std::string& name) {
             return kMapLetter * static_cast<double>(name.size()) > across - 2;
           });
  }
};

void draw_bar(pugi::xml_node drawing, const HeatMap& map, double x, double y, double height) {
  const ColourScale scale(map);
  for (int n = 0; n < kBarSteps; ++n) {
    const double share = (kBarSteps - n - 0.5) / kBarSteps, step = height / kBarSteps;
    Drawing::rectangle(drawing, x, y + step * n, kBarWidth, step + 0.5, scale.colour(share).text());
  }
  for (double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    Drawing::text(drawing, x + kBarWidth + 5, y + height * (1 - share) + 4, scale.at(share));
  }
  Drawing::upright(drawing, x + kBarWidth + 48, y + height / 2, map.bar, "middle");
}

/// A cross in what is beyond the limit.
void cross(pugi::xml_node drawing, double left, double top, double size, bool dark) {
  pugi::xml_node node = Drawing::path(
      drawing,
      fmt::format("M{0:.1f} {1:.1f}l{2:.1f} {2:.1f}m0 -{2:.1f}l-{2:.1f} {2:.1f}", left + 1.5, top + 1.5, size - 4));
  node.append_attribute("stroke") = dark ? "white" : "#222";
  node.append_attribute("stroke-width") = "0.7";
}

/// What a pointer is told, and what a test reads back.
void name_cell(pugi::xml_node box, const std::string& row, const std::string& column, const std::string& value) {
  box.append_attribute("data-row") = row.c_str();
  box.append_attribute("data-column") = column.c_str();
  box.append_attribute("data-value") = value.c_str();
}

void draw_panel(Drawing& drawing, const Panel& panel, double x0, double y0) {
  const HeatMap& map = panel.map;
  const ColourScale scale(map);
  pugi::xml_node root = drawing.root();
  const double x = x0 + panel.names, y = y0 + kMapTop + panel.room_for_names(), cell = panel.cell,
               across = panel.across;
  pugi::xml_node title = Drawing::text(root, x, y0 + 20, map.title);
  title.append_attribute("font-size") = "14";
  title.append_attribute("font-weight") = "bold";
  Drawing::text(root, x + panel.map_width() / 2, y + panel.map_height() + 26, map.column_axis, "middle");
  Drawing::upright(root, x0 + 14, y + panel.inner_height() / 2, map.row_axis, "middle");
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    const double row = y + cell * static_cast<double>(i);
    if (cell >= kNamedCell) Drawing::text(root, x - 6, row + cell / 2 + 4, map.rows[i], "end");
    for (std::size_t j = 0; j < map.columns.size(); ++j) {
      const double w = map.values[i][j], left = x + across * static_cast<double>(j);
      const bool hidden = map.hidden[i][j] != 0;
      pugi::xml_node box = Drawing::rectangle(root, left, row, across - 1, cell - 1,
                                              hidden ? drawing.hatched() : scale.colour(scale.share_of(w)).text());
      if (map.counts) name_cell(box, map.rows[i], map.columns[j], hidden ? "" : fmt::format("{:.0f}", w));
      if (!hidden && scale.beyond(w)) cross(root, left, row, cell, scale.share_of(w) > 0.8);
      if (across >= kNumberedCell && !hidden && map.limit == 0) {
        Drawing::text(root, left + across / 2, row + cell / 2 + 4, fmt::format("{:.{}f}", w, map.counts ? 0 : 3),
                      "middle", scale.share_of(w) > 0.55 ? "white" : "#222");
      }
    }
  }
  if (cell >= kNamedCell) {
    for (std::size_t j = 0; j < map.columns.size(); ++j) {
      const double middle = x + across * (static_cast<double>(j) + 0.5);
      if (panel.keys_upright())
        Drawing::upright(root, middle + 4, y - 6, map.columns[j], "start");
      else
        Drawing::text(root, middle, y - 8, map.columns[j], "middle");
    }
  }
  draw_bar(root, map, x + panel.map_width() + kGap, y, panel.inner_height());
  if (!map.note.empty()) Drawing::text(root, x0 + kAxisTitle, y + panel.inner_height() + kMapBottom + 10, map.note);
}

}  // namespace

std::string draw_heat_maps(const std::vector<std::vector<HeatMap>>& lines, const std::string& id,
                           const std::string& about) {
  Drawing drawing(id);
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
  return drawing.finish(width, y + 8, about);
}

}  // namespace attest
