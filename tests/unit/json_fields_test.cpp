// Fields of an object that somebody else may have written.
#include "harness/base/json_fields.h"

#include <gtest/gtest.h>

#include "tests/unit/complaint.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

const Json kObject = {{"name", "a\x1b\nb"}, {"size", 2.5},  {"cases", 7},          {"right", true},
                      {"all", {"x", "y"}},  {"at", {1, 2}}, {"in", Json::object()}};

TEST(JsonFields, WhatIsThereIsRead) {
  const JsonFields fields(kObject, "a file: it");
  EXPECT_EQ(fields.text("name"), "a\\x1b\\x0ab") << "in one line, nothing that moves a cursor";
  EXPECT_EQ(fields.number("size"), 2.5);
  EXPECT_EQ(fields.count("cases"), 7u);
  EXPECT_TRUE(fields.flag("right"));
  EXPECT_EQ(fields.texts("all"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(fields.counts("at"), (std::vector<std::size_t>{1, 2}));
  EXPECT_TRUE(fields.object("in").empty());
  EXPECT_EQ(fields.list("at").size(), 2u);
  EXPECT_EQ(fields.place_in("at", 2), "a file: it: number 2 of \"at\"");
}

TEST(JsonFields, WhatIsOfAnotherTypeOrNotThereIsSaid) {
  const JsonFields fields(kObject, "a file: it");
  EXPECT_EQ(complaint([&] { fields.at("none"); }), "a file: it has no \"none\"");
  EXPECT_EQ(complaint([&] { fields.text("size"); }), "a file: it has a \"size\" that is no text");
  EXPECT_EQ(complaint([&] { fields.number("name"); }), "a file: it has a \"name\" that is no number");
  EXPECT_EQ(complaint([&] { fields.count("size"); }), "a file: it has a \"size\" that is no count");
  EXPECT_EQ(complaint([&] { fields.flag("cases"); }), "a file: it has a \"cases\" that is neither true nor false");
  EXPECT_EQ(complaint([&] { fields.list("in"); }), "a file: it has a \"in\" that is no list");
  EXPECT_EQ(complaint([&] { fields.object("at"); }), "a file: it has a \"at\" that is no object");
  EXPECT_EQ(complaint([&] { fields.texts("at"); }), "a file: it has a \"at\" with what is no text");
  EXPECT_EQ(complaint([&] { fields.counts("all"); }), "a file: it has a \"all\" with what is no count");
  EXPECT_EQ(complaint([] { JsonFields(Json::array(), "a file: it"); }), "a file: it is no object");
  for (const Json& wrong : {Json(-1), Json(1e300), Json("7")}) {
    const Json object = {{"n", wrong}};
    EXPECT_NE(complaint([&] { JsonFields(object, "it").count("n"); }), "") << wrong;
  }
}

}  // namespace
}  // namespace attest
