// Drawings: well-formed, escaped, with words for those who don't see them.
#include "harness/plot/svg.h"

#include <gtest/gtest.h>

#include <string>

namespace attest {
namespace {

TEST(Svg, SaysItsSizeAndWhatItShows) {
  Drawing drawing("one-");
  Drawing::text(drawing.root(), 1, 2, "a < b \x07");
  EXPECT_EQ(drawing.hatched(), "url(#one-hidden)");
  const std::string svg = drawing.finish(10.2, 20, "what \"it\" shows");
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(svg.c_str()));
  const pugi::xml_node root = document.document_element();
  EXPECT_EQ(root.attribute("width").as_int(), 11);
  EXPECT_STREQ(root.attribute("viewBox").value(), "0 0 11 20");
  EXPECT_STREQ(root.attribute("aria-label").value(), "what \"it\" shows");
  EXPECT_STREQ(root.child("text").text().get(), "a < b \\x07");
  EXPECT_STREQ(root.select_node("//pattern").node().attribute("id").value(), "one-hidden");
}

}  // namespace
}  // namespace attest
