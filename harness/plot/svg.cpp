#include "harness/plot/svg.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "harness/base/text.h"

namespace attest {

void set_pixels(pugi::xml_node node, const char* name, double value) {
  node.append_attribute(name) = fmt::format("{:.1f}", value).c_str();
}

Drawing::Drawing(const std::string& id) : pattern_(id + "hidden") {
  svg_ = document_.append_child("svg");
  svg_.append_attribute("xmlns") = "http://www.w3.org/2000/svg";
  size_[0] = svg_.append_attribute("width");
  size_[1] = svg_.append_attribute("height");
  svg_.append_attribute("font-family") = "sans-serif";
  svg_.append_attribute("font-size") = "12";
  pugi::xml_node pattern = svg_.append_child("defs").append_child("pattern");
  pattern.append_attribute("id") = pattern_.c_str();
  for (const char* side : {"width", "height"}) pattern.append_attribute(side) = "6";
  pattern.append_attribute("patternUnits") = "userSpaceOnUse";
  rectangle(pattern, 0, 0, 6, 6, "#eee");
  pugi::xml_node stroke = path(pattern, "M0 6L6 0");
  stroke.append_attribute("stroke") = "#bbb";
  background_ = rectangle(svg_, 0, 0, 0, 0, "white");
  background_.append_attribute("class") = "paper";
}

pugi::xml_node Drawing::group(const std::string& css_class) {
  pugi::xml_node node = svg_.append_child("g");
  node.append_attribute("class") = css_class.c_str();
  return node;
}

pugi::xml_node Drawing::rectangle(pugi::xml_node parent, double x, double y, double width, double height,
                                  const std::string& fill) {
  pugi::xml_node node = parent.append_child("rect");
  set_pixels(node, "x", x);
  set_pixels(node, "y", y);
  set_pixels(node, "width", width);
  set_pixels(node, "height", height);
  node.append_attribute("fill") = fill.c_str();
  return node;
}

pugi::xml_node Drawing::line(pugi::xml_node parent, double x1, double y1, double x2, double y2, const char* css_class) {
  pugi::xml_node node = parent.append_child("line");
  set_pixels(node, "x1", x1);
  set_pixels(node, "y1", y1);
  set_pixels(node, "x2", x2);
  set_pixels(node, "y2", y2);
  node.append_attribute("stroke") = std::string(css_class) == "grid" ? "#e4e4e4" : "#555";
  node.append_attribute("class") = css_class;
  return node;
}

pugi::xml_node Drawing::path(pugi::xml_node parent, const std::string& commands) {
  pugi::xml_node node = parent.append_child("path");
  node.append_attribute("d") = commands.c_str();
  return node;
}

pugi::xml_node Drawing::text(pugi::xml_node parent, double x, double y, const std::string& words, const char* anchor,
                             const char* fill) {
  pugi::xml_node node = parent.append_child("text");
  set_pixels(node, "x", x);
  set_pixels(node, "y", y);
  node.append_attribute("text-anchor") = anchor;
  node.append_attribute("fill") = fill;
  node.text() = printable_line(words).c_str();
  return node;
}

pugi::xml_node Drawing::upright(pugi::xml_node parent, double x, double y, const std::string& words,
                                const char* anchor) {
  pugi::xml_node node = text(parent, x, y, words, anchor);
  node.append_attribute("transform") = fmt::format("rotate(-90 {:.1f} {:.1f})", x, y).c_str();
  return node;
}

void Drawing::title(pugi::xml_node node, const std::string& words) {
  node.prepend_child("title").text() = printable_line(words).c_str();
}

std::string Drawing::finish(double width, double height, const std::string& about) {
  for (pugi::xml_attribute size : {size_[0], background_.attribute("width")}) size = std::ceil(width);
  for (pugi::xml_attribute size : {size_[1], background_.attribute("height")}) size = std::ceil(height);
  svg_.append_attribute("viewBox") = fmt::format("0 0 {:.0f} {:.0f}", std::ceil(width), std::ceil(height)).c_str();
  if (!about.empty()) {
    svg_.append_attribute("role") = "img";
    svg_.append_attribute("aria-label") = printable_line(about).c_str();
  }
  std::ostringstream out;
  document_.save(out, " ", pugi::format_indent | pugi::format_no_declaration);
  return out.str();
}

}  // namespace attest
