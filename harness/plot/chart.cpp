#include "harness/plot/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/base/text.h"
#include "harness/plot/svg.h"

namespace attest {
namespace {

constexpr double kTop = 34, kBottom = 46, kRight = 16, kLetter = 6.6, kLegendLine = 18, kMark = 4;
/// Dark enough on white, and far apart for every kind of colour blindness; after Okabe and Ito.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#007f5c", "#b0508a", "#8a6a00", "#4b4b4b"};
constexpr std::size_t kStyles = std::size(kColours);

/// A mark around a point: circle, square, triangle, diamond, cross, triangle on its tip.
std::string shape_at(std::size_t style, double x, double y) {
  const double r = kMark;
  const auto at = [&](double dx, double dy) { return fmt::format("{:.1f} {:.1f}", x + dx, y + dy); };
  switch (style % kStyles) {
    case 0: return fmt::format("M{}a{} {} 0 1 0 {} 0a{} {} 0 1 0 {} 0Z", at(-r, 0), r, r, 2 * r, r, r, -2 * r);
    case 1: return "M" + at(-r, -r) + "L" + at(r, -r) + "L" + at(r, r) + "L" + at(-r, r) + "Z";
    case 2: return "M" + at(0, -r - 1) + "L" + at(r + 1, r) + "L" + at(-r - 1, r) + "Z";
    case 3: return "M" + at(0, -r - 1) + "L" + at(r + 1, 0) + "L" + at(0, r + 1) + "L" + at(-r - 1, 0) + "Z";
    case 4: return "M" + at(-r, -r) + "L" + at(r, r) + "M" + at(r, -r) + "L" + at(-r, r);
    default: return "M" + at(0, r + 1) + "L" + at(r + 1, -r) + "L" + at(-r - 1, -r) + "Z";
  }
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  // Sizes are read as they are written: 10000 and not 1e+04.
  if (std::fabs(value) >= 1e4 && std::fabs(value) < 1e6) return fmt::format("{:.0f}", value);
  return number_words(value, 4);
}

/// Axes end before numbers whose ratios leave a double's range; what lies beyond stands at their end.
constexpr double kLargest = 1e200;

/// From numbers to pixels.
class Scale {
 public:
  Scale(const ChartAxis& axis, const std::vector<double>& values, double begin, double end)
      : axis_(axis), begin_(begin), end_(end) {
    if (!axis.names.empty()) {
      low_ = -0.5;
      high_ = static_cast<double>(axis.names.size()) - 0.5;
      return;
    }
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (double value : values) {
      if (!(std::fabs(value) < kLargest) || (axis.logarithmic && !(value > 1 / kLargest))) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
    if (least > most) least = axis.logarithmic ? 1 : 0, most = axis.logarithmic ? 10 : 1;
    low_ = axis.from.value_or(least);
    high_ = axis.to.value_or(most);
    widen();
    ticks_ = ticks_of(low_, high_, axis.logarithmic);
  }

  /// Nothing for what the axis can't show.
  std::optional<double> place(double value) const {
    if (std::isnan(value) || (axis_.logarithmic && !(value > 0))) return std::nullopt;
    if (std::isinf(value)) return value > 0 ? end_ : begin_;
    const double share = axis_.logarithmic ? (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_))
                                           : (value - low_) / (high_ - low_);
    return begin_ + std::clamp(share, 0.0, 1.0) * (end_ - begin_);
  }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  /// Room at both ends, and some where all values are one; to full decades, or nearly, where the axis has few.
  void widen() {
    if (axis_.logarithmic) {
      const double room = std::max(0.06 * std::log(high_ / low_), 0.08);
      if (!axis_.from) low_ *= std::exp(-room);
      if (!axis_.to) high_ *= std::exp(room);
      // Two ticks at least: 1, 2 and 5 lie a factor of 2.5 apart.
      while (ticks_of(low_, high_, true).size() < 2) low_ /= 1.3, high_ *= 1.3;
    } else {
      const double room = high_ > low_ ? 0.05 * (high_ - low_) : std::max(0.1 * std::fabs(high_), 0.5);
      if (!axis_.from) low_ -= room;
      if (!axis_.to) high_ += room;
      if (!(high_ > low_)) high_ = low_ + 1;
    }
  }

  const ChartAxis& axis_;
  double begin_, end_, low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

/// Every number that the axis must reach.
std::vector<double> numbers_of(const Chart& chart, bool of_x) {
  std::vector<double> list;
  const bool intervals_here = of_x == !chart.y.names.empty();
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      list.push_back(of_x ? point.x : point.y);
      for (const auto& end : {point.low, point.high}) {
        if (end && intervals_here) list.push_back(*end);
      }
    }
  }
  for (const ChartBand& band : chart.bands) {
    if (band.across == of_x) continue;
    list.push_back(band.low);
    list.push_back(std::isinf(band.high) ? 1.6 * band.low : band.high);  // without an end: to that of the axis
  }
  return list;
}

std::string shortened(const std::string& name, std::size_t letters) {
  return name.size() <= letters ? name : name.substr(0, letters - 1) + "\u2026";
}

/// Of a name at the y axis: names may take nearly half of the width.
std::size_t most_letters(const Chart& chart) {
  return static_cast<std::size_t>(std::max((0.45 * chart.width - 30) / (1.1 * kLetter), 8.0));
}

class ChartDrawing {
 public:
  explicit ChartDrawing(const Chart& chart)
      : chart_(chart),
        drawing_(chart.id),
        left_(left_of(chart)),
        right_(chart.width - kRight),
        bottom_(kTop + chart.height - kBottom),
        x_(chart.x, numbers_of(chart, true), left_, right_),
        y_(chart.y, numbers_of(chart, false), chart.y.names.empty() ? bottom_ : kTop,
           chart.y.names.empty() ? kTop : bottom_) {}

  std::string draw() {
    pugi::xml_node title = Drawing::text(drawing_.root(), 8, 18, chart_.title);
    title.append_attribute("font-size") = "14";
    title.append_attribute("font-weight") = "bold";
    draw_bands();
    draw_axes();
    for (const ChartSeries& series : chart_.series) draw_series(series);
    const double end = draw_legend(bottom_ + kBottom + (upright_names() ? 56 : 0) + 4);
    return drawing_.finish(chart_.width, end, chart_.title + ". " + chart_.about);
  }

 private:
  static double left_of(const Chart& chart) {
    std::size_t letters = 6;
    for (const std::string& name : chart.y.names)
      letters = std::max(letters, std::min(name.size(), most_letters(chart)));
    return 30 + 1.1 * kLetter * static_cast<double>(letters);
  }
  bool upright_names() const { return !chart_.x.names.empty(); }

  void draw_bands() {
    pugi::xml_node group = drawing_.group("bands");
    for (const ChartBand& band : chart_.bands) {
      const Scale& scale = band.across ? y_ : x_;
      const auto low = scale.place(band.low), high = scale.place(band.high);
      if (!low || !high) continue;
      const double begin = std::min(*low, *high), size = std::fabs(*high - *low);
      const auto part = [](const Scale& other, const std::optional<double>& value, double otherwise) {
        return value ? other.place(*value).value_or(otherwise) : otherwise;
      };
      pugi::xml_node node;
      if (band.across) {
        const double from = part(x_, band.from, left_), to = part(x_, band.to, right_);
        node = Drawing::rectangle(group, from, begin, to - from, size, "#dfe7ee");
      } else {
        const double from = part(y_, band.from, kTop), to = part(y_, band.to, bottom_);
        node = Drawing::rectangle(group, begin, std::min(from, to), size, std::fabs(to - from), "#dfe7ee");
      }
      node.append_attribute("class") = "band";
      node.append_attribute("data-low") = band.low;
      node.append_attribute("data-high") = std::isinf(band.high) ? "inf" : fmt::format("{:g}", band.high).c_str();
      Drawing::title(node, band.name);
    }
  }

  void draw_axes() {
    pugi::xml_node across = drawing_.group("x-axis"), up = drawing_.group("y-axis");
    Drawing::line(across, left_, bottom_, right_, bottom_);
    Drawing::line(up, left_, kTop, left_, bottom_);
    double last = -1e9;
    for (double value : x_.ticks()) {
      const double at = *x_.place(value);
      const std::string words = number_text(value);
      Drawing::line(across, at, kTop, at, bottom_, "grid");
      // Labels that would touch are left out; the line stays.
      if (at - last < kLetter * static_cast<double>(words.size()) + 6) continue;
      last = at;
      pugi::xml_node text = Drawing::text(across, at, bottom_ + 16, words, "middle");
      text.append_attribute("class") = "tick";
      text.append_attribute("data-value") = fmt::format("{:.17g}", value).c_str();
    }
    for (double value : y_.ticks()) {
      const double at = *y_.place(value);
      Drawing::line(up, left_, at, right_, at, "grid");
      pugi::xml_node text = Drawing::text(up, left_ - 6, at + 4, number_text(value), "end");
      text.append_attribute("class") = "tick";
      text.append_attribute("data-value") = fmt::format("{:.17g}", value).c_str();
    }
    for (std::size_t n = 0; n < chart_.y.names.size(); ++n) {
      const double at = *y_.place(static_cast<double>(n));
      pugi::xml_node text =
          Drawing::text(up, left_ - 6, at + 4, shortened(chart_.y.names[n], most_letters(chart_)), "end");
      Drawing::title(text, chart_.y.names[n]);
    }
    // As many names as stand beside each other.
    const auto every = static_cast<std::size_t>(
        std::ceil(static_cast<double>(chart_.x.names.size()) * 14 / std::max(right_ - left_, 1.0)));
    for (std::size_t n = 0; n < chart_.x.names.size(); n += std::max<std::size_t>(every, 1)) {
      const double at = *x_.place(static_cast<double>(n));
      Drawing::upright(across, at + 4, bottom_ + 8, shortened(chart_.x.names[n], 12), "end");
    }
    const double below = bottom_ + 36 + (upright_names() ? 56 : 0);
    Drawing::text(across, (left_ + right_) / 2, below, chart_.x.title, "middle").append_attribute("class") =
        "axis-title";
    Drawing::upright(up, 14, (kTop + bottom_) / 2, chart_.y.title, "middle").append_attribute("class") = "axis-title";
  }

  void paint(pugi::xml_node node, std::size_t style, bool filled) const {
    const char* colour = colour_of_style(style);
    node.append_attribute("fill") = filled ? colour : "none";
    node.append_attribute("stroke") = colour;
    node.append_attribute("stroke-width") = "1.5";
    node.append_attribute("class") = fmt::format("s{}{}", style % kStyles, filled ? " filled" : "").c_str();
  }

  void draw_series(const ChartSeries& series) {
    pugi::xml_node group = drawing_.group("series");
    group.append_attribute("data-name") = series.name.c_str();
    if (series.joined) draw_line(group, series);
    for (const ChartPoint& point : series.points) draw_point(group, series, point);
  }

  void draw_line(pugi::xml_node group, const ChartSeries& series) {
    std::string commands;
    for (const ChartPoint& point : series.points) {
      const auto x = x_.place(point.x), y = y_.place(point.y);
      if (x && y) commands += fmt::format("{}{:.1f} {:.1f}", commands.empty() ? "M" : "L", *x, *y);
    }
    if (commands.empty()) return;
    pugi::xml_node node = Drawing::path(group, commands);
    paint(node, series.style, false);
    if (series.dashed) node.append_attribute("stroke-dasharray") = "6 4";
  }

  void draw_point(pugi::xml_node group, const ChartSeries& series, const ChartPoint& point) {
    const auto x = x_.place(point.x), y = y_.place(point.y);
    if (!x || !y) return;
    if (point.low && point.high) {
      const bool flat = !chart_.y.names.empty();
      const auto low = (flat ? x_ : y_).place(*point.low), high = (flat ? x_ : y_).place(*point.high);
      if (low && high) {
        pugi::xml_node bar = Drawing::path(group, flat ? fmt::format("M{:.1f} {:.1f}H{:.1f}", *low, *y, *high)
                                                       : fmt::format("M{:.1f} {:.1f}V{:.1f}", *x, *low, *high));
        paint(bar, series.style, false);
        bar.append_attribute("data-low") = fmt::format("{:.17g}", *point.low).c_str();
        bar.append_attribute("data-high") = fmt::format("{:.17g}", *point.high).c_str();
      }
    }
    if (!series.marked) return;
    const bool beyond = std::isinf(point.x) || std::isinf(point.y);
    pugi::xml_node mark = Drawing::path(
        group, beyond ? fmt::format("M{0:.1f} {1:.1f}l-6 9h12Z", *x, *y) : shape_at(series.style, *x, *y));
    paint(mark, series.style, !beyond);
    mark.append_attribute("data-x") =
        std::isfinite(point.x) ? fmt::format("{:.17g}", point.x).c_str() : number_text(point.x).c_str();
    mark.append_attribute("data-y") =
        std::isfinite(point.y) ? fmt::format("{:.17g}", point.y).c_str() : number_text(point.y).c_str();
    std::string words = series.name;
    if (!point.label.empty()) words += ", " + point.label;
    if (chart_.x.names.empty()) words += ": " + number_text(point.x);
    if (chart_.y.names.empty()) words += ": " + number_text(point.y);
    Drawing::title(mark, words);
  }

  /// Below the axis, in as many lines as it takes. Returns where it ends.
  double draw_legend(double top) {
    pugi::xml_node group = drawing_.group("legend");
    double x = left_, y = top + 8;
    std::vector<std::string> seen;
    const auto entry = [&](const std::string& name, const auto& symbol) {
      if (name.empty() || std::find(seen.begin(), seen.end(), name) != seen.end()) return;
      seen.push_back(name);
      const double size = 36 + 1.08 * kLetter * static_cast<double>(name.size());
      if (x > left_ && x + size > right_) x = left_, y += kLegendLine;
      symbol(x + 8, y);
      Drawing::text(group, x + 20, y + 4, name);
      x += size;
    };
    for (const ChartSeries& series : chart_.series) {
      if (!series.in_legend) continue;
      entry(series.name, [&](double at, double middle) {
        if (series.joined) {
          pugi::xml_node stroke = Drawing::path(group, fmt::format("M{:.1f} {:.1f}h16", at - 8, middle));
          paint(stroke, series.style, false);
          if (series.dashed) stroke.append_attribute("stroke-dasharray") = "6 4";
        }
        if (series.marked) paint(Drawing::path(group, shape_at(series.style, at, middle)), series.style, true);
      });
    }
    for (const ChartBand& band : chart_.bands) {
      entry(band.name, [&](double at, double middle) {
        Drawing::rectangle(group, at - 8, middle - 6, 16, 12, "#dfe7ee").append_attribute("class") = "band";
      });
    }
    return y + (seen.empty() ? 0 : kLegendLine);
  }

  const Chart& chart_;
  Drawing drawing_;
  double left_, right_, bottom_;
  Scale x_, y_;
};

}  // namespace

const char* colour_of_style(std::size_t style) { return kColours[style % kStyles]; }

std::vector<double> ticks_of(double low, double high, bool logarithmic) {
  std::vector<double> ticks;
  if (logarithmic) {
    const double decades = std::log10(high / low);
    const int first = static_cast<int>(std::floor(std::log10(low))),
              last = static_cast<int>(std::ceil(std::log10(high)));
    const int step = std::max(1, static_cast<int>(std::ceil(decades / 7)));
    for (int decade = first; decade <= last; ++decade) {
      for (double digit : {1.0, 2.0, 5.0}) {
        if (digit > 1 && decades > 2.5) continue;
        const double value = digit * std::pow(10.0, decade);
        if (value >= low && value <= high && (step == 1 || decade % step == 0)) ticks.push_back(value);
      }
    }
    return ticks;
  }
  const double rough = (high - low) / 5, power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power;
  for (double digit : {1.0, 2.0, 5.0, 10.0}) {
    step = digit * power;
    if (step >= rough) break;
  }
  const auto first = static_cast<long>(std::ceil(low / step - 1e-9)),
             last = static_cast<long>(std::floor(high / step + 1e-9));
  for (long n = first; n <= last; ++n) ticks.push_back(static_cast<double>(n) * step);
  return ticks;
}

std::string draw_chart(const Chart& chart) { return ChartDrawing(chart).draw(); }

}  // namespace attest
