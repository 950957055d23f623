// A drawing in SVG: shapes and text with colours that read on white by themselves, and classes by which a page with a
// style of its own gives them those of its theme.
#pragma once

#include <pugixml.hpp>
#include <string>

namespace attest {

/// Lengths are pixels; x to the right, y down. Text is escaped, and control characters in it are made visible.
class Drawing {
 public:
  /// `id`: stands before the ids inside, which are unique in a page only so.
  explicit Drawing(const std::string& id = "");

  pugi::xml_node root() { return svg_; }
  /// What is drawn in place of a cell that has no value.
  std::string hatched() const { return "url(#" + pattern_ + ")"; }

  pugi::xml_node group(const std::string& css_class);
  static pugi::xml_node rectangle(pugi::xml_node parent, double x, double y, double width, double height,
                                  const std::string& fill);
  static pugi::xml_node line(pugi::xml_node parent, double x1, double y1, double x2, double y2,
                             const char* css_class = "axis");
  static pugi::xml_node path(pugi::xml_node parent, const std::string& commands);
  static pugi::xml_node text(pugi::xml_node parent, double x, double y, const std::string& words,
                             const char* anchor = "start", const char* fill = "#222");
  /// Text turned around its own point, to read from below.
  static pugi::xml_node upright(pugi::xml_node parent, double x, double y, const std::string& words,
                                const char* anchor);
  /// What a pointer that rests on the node is told, and a screen reader.
  static void title(pugi::xml_node node, const std::string& words);

  /// The whole drawing; nothing can be added after. `about` says in words what it shows, for those who don't see it.
  std::string finish(double width, double height, const std::string& about = "");

 private:
  pugi::xml_document document_;
  pugi::xml_node svg_, background_;
  pugi::xml_attribute size_[2];
  std::string pattern_;
};

/// Sets an attribute to a number of pixels, to a tenth.
void set_pixels(pugi::xml_node node, const char* name, double value);

}  // namespace attest
