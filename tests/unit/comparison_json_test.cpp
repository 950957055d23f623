// A comparison as JSON comes back as it was, and nothing else is taken for one.
#include "harness/speed/files/comparison_json.h"

#include <gtest/gtest.h>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

ComparisonFile sample() {
  ComparisonFile file;
  file.attest = "0.1.0";
  file.command = "attest compare old.json new.json";
  file.margin = 0.05;
  file.confidence = 0.99;
  file.before = {"old.json", "abc", "a cpu", "2", "GNU", "2026-01-01"};
  file.now = {"new.json", "def", "a cpu", "2", "GNU", "2026-01-02"};
  file.lines.push_back({"eigen", "seq=4 dim=4", SpeedVerdict::slower, {1.5, 1.25, 1.75, 0.99}, 7, 9, false});
  file.lines.push_back({"other", "seq=8 dim=4", SpeedVerdict::ambiguous, {1, 0.5, 2, 0.5}, 3, 3, true});
  file.only_before = {"eigen     seq=16 dim=4"};
  file.unlike = {"threads 1 and 2"};
  return file;
}

TEST(ComparisonJson, ComesBackAsItWas) {
  const auto json = comparison_to_json(sample());
  const ComparisonFile got = comparison_from_json(nlohmann::ordered_json::parse(json.dump()), "a file");
  EXPECT_EQ(comparison_to_json(got), json);
  ASSERT_EQ(got.lines.size(), 2u);
  EXPECT_EQ(got.lines[0].verdict, SpeedVerdict::slower);
  EXPECT_EQ(got.lines[0].interval.high, 1.75);
  EXPECT_TRUE(got.lines[1].disturbed);
  EXPECT_EQ(got.only_before, sample().only_before);
  EXPECT_EQ(got.now.commit, "def");
}

TEST(ComparisonJson, WhatIsMissingOrYoungerIsNamed) {
  const auto json = comparison_to_json(sample());
  for (const auto& [key, value] : json.items()) {
    if (key == "kind") continue;
    auto other = json;
    other.erase(key);
    const std::string message = message_of<UserError>([&] { comparison_from_json(other, "a file"); });
    EXPECT_EQ(message.find("a file: "), 0u);
    EXPECT_NE(message.find("\"" + key + "\""), std::string::npos) << message;
    other[key] = nullptr;
    EXPECT_THROW(comparison_from_json(other, "a file"), UserError) << key;
  }
  auto younger = json;
  younger["schema"] = 2;
  EXPECT_EQ(message_of<UserError>([&] { comparison_from_json(younger, "a file"); }),
            "a file: schema 2 of a newer attest; this one reads up to 1");
  auto wrong = json;
  wrong["cases"][1]["low"] = 0;
  EXPECT_EQ(message_of<UserError>([&] { comparison_from_json(wrong, "a file"); }),
            "a file: number 2 of \"cases\" has a ratio that is not above 0");
}

TEST(ComparisonJson, TooFewOrDisturbedSamplesAreAmbiguous) {
  ComparedCase one{{2, 1.9, 2.1, 0.99}, 9, 9, false};
  EXPECT_EQ(verdict_on(one, 0.99, 0.05), SpeedVerdict::slower);
  EXPECT_EQ(verdict_on(one, 0.999, 0.05), SpeedVerdict::ambiguous);
  one.disturbed = true;
  EXPECT_EQ(verdict_on(one, 0.99, 0.05), SpeedVerdict::ambiguous);
}

}  // namespace
}  // namespace attest
