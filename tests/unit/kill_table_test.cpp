// The kill table: its file, and its picture read back.
#include "harness/page/kill_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <pugixml.hpp>
#include <set>
#include <tuple>

#include "tests/unit/complaint.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

KillTable a_table() {
  return {"0.1.0",
          "c0ffee",
          "a cpu",
          "attest mutants",
          {"smoke", "bugs", "none"},
          {{"tail <lost>", "drops the last key", {{"smoke", 3}, {"bugs", 90}}}, {"scale_lost", "", {{"bugs", 1}}}},
          7,
          2,
          {{"smoke", 48, 7, {1, 1, 5}}, {"bugs", 90, 4, {2, 80}}}};
}

TEST(KillTable, WhatIsWrittenIsReadBack) {
  const Folder folder;
  const nlohmann::ordered_json json = to_json(a_table());
  std::ofstream(folder / "kills.json") << json;
  EXPECT_EQ(to_json(read_kill_table(folder / "kills.json")), json);
}

TEST(KillTable, WhatIsNoneIsOneLine) {
  const Folder folder;
  const auto says = [&](const auto& change) {
    nlohmann::ordered_json json = to_json(a_table());
    change(json);
    std::ofstream(folder / "x.json") << json;
    return complaint([&] { read_kill_table(folder / "x.json"); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(says([](auto& json) { json = 7; }), "x.json: ");
  has(says([](auto& json) { json["kind"] = "compare"; }), "x.json: ");
  has(says([](auto& json) { json["schema"] = 2; }), "schema 2");
  has(says([](auto& json) { json.erase("mutants"); }), "\"mutants\"");
  has(says([](auto& json) { json["mistakes"][1]["kills"]["bugs"] = -4; }), "number 2 of \"mistakes\": \"kills\"");
  has(says([](auto& json) { json["mutant_suites"][0]["at"] = "x"; }), "\"at\"");
}

TEST(KillTable, ThePictureSaysWhoCatchesWhat) {
  pugi::xml_document document;
  const std::string svg = kill_table_svg(a_table());
  ASSERT_TRUE(document.load_string(svg.c_str()));
  std::set<std::tuple<std::string, std::string, std::string>> cells;
  for (const auto& cell : document.select_nodes("//rect[@data-row]")) {
    const auto says = [&](const char* name) { return std::string(cell.node().attribute(name).as_string()); };
    cells.insert({says("data-row"), says("data-column"), says("data-value")});
    EXPECT_EQ(says("fill").starts_with("url("), says("data-value").empty()) << "hatched where nothing catches it";
  }
  using Cells = decltype(cells);
  EXPECT_EQ(cells, (Cells{{"tail <lost>", "smoke", "3"},
                          {"tail <lost>", "bugs", "90"},
                          {"scale_lost", "smoke", ""},
                          {"scale_lost", "bugs", "1"}}));
  EXPECT_NE(svg.find(">90</text>"), std::string::npos) << "the number stands in the cell";
  EXPECT_NE(svg.find("7 mutants"), std::string::npos);
  EXPECT_EQ(svg.find("<lost>"), std::string::npos);
}

}  // namespace
}  // namespace attest
