#include "harness/plot/bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/plot/svg.h"

namespace attest {
namespace {

constexpr double kBarsTop = 34, kLine = 26, kHeight = 18, kBarsRight = 16, kBarsLetter = 6.6;
constexpr const char* kShades[] = {"#b9d4e8", "#0072b2", "#e2b48f", "#8a6a00"};
constexpr const char* kWords[] = {"#222", "white", "#222", "white"};

std::string label_of(const Bar& bar, const BarChart& chart) {
  return fmt::format("{}: {:.4g} {}", bar.name, std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0), chart.unit);
}

}  // namespace

std::string draw_bars(const BarChart& chart) {
  Drawing drawing(chart.id);
  pugi::xml_node root = drawing.root();
  pugi::xml_node title = Drawing::text(root, 8, 18, chart.title);
  title.append_attribute("font-size") = "14";
  title.append_attribute("font-weight") = "bold";
  std::size_t letters = 0;
  for (const Bar& bar : chart.bars) letters = std::max(letters, label_of(bar, chart).size());
  const double left = 12 + kBarsLetter * static_cast<double>(letters), across = chart.width - left - kBarsRight;
  double y = kBarsTop;
  for (const Bar& bar : chart.bars) {
    Drawing::text(root, left - 6, y + 13, label_of(bar, chart), "end");
    const double whole = std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0);
    double x = left;
    for (std::size_t n = 0; n < bar.parts.size() && whole > 0 && std::isfinite(whole); ++n) {
      const double size = across * bar.parts[n] / whole;
      pugi::xml_node part = Drawing::rectangle(root, x, y, size, kHeight, kShades[n % 4]);
      part.append_attribute("data-value") = fmt::format("{:.17g}", bar.parts[n]).c_str();
      part.append_attribute("data-name") = bar.name.c_str();
      Drawing::title(part, fmt::format("{}, {}: {:.4g} {}", bar.name, chart.parts[n], bar.parts[n], chart.unit));
      const std::string words = fmt::format("{:.3g}", bar.parts[n]);
      if (size > kBarsLetter * static_cast<double>(words.size()) + 6)
        Drawing::text(root, x + size / 2, y + 13, words, "middle", kWords[n % 4]).append_attribute("class") = "inside";
      x += size;
    }
    y += kLine;
  }
  double x = left;
  for (std::size_t n = 0; n < chart.parts.size(); ++n) {
    Drawing::rectangle(root, x, y + 4, 12, 12, kShades[n % 4]);
    const std::string words = fmt::format("{}. {}", n + 1, chart.parts[n]);
    Drawing::text(root, x + 17, y + 14, words);
    x += 34 + kBarsLetter * static_cast<double>(words.size());
  }
  return drawing.finish(chart.width, y + 24, chart.title + ". " + chart.about);
}

}  // namespace attest
