// The first line of a file of verdicts: what is written is read again, and nonsense is nothing.
#include "harness/report/run_header.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(RunHeader, IsReadAsItWasWritten) {
  RunInfo info;
  info.command = {"attest", "check"};
  info.conditions = {{"program", "1a"}};
  info.backends = {{"good", "loops", "CPU"}};
  info.unavailable = {{"absent", "no device"}};
  info.selection = {"f1", 7, {{"good", 6}, {"reference", 1}}, "2/3"};
  info.origin = {"9.9", "c0ffee", {"a cpu", 3, 1.5, "a system", "a build"}};
  info.parts = {{"a.jsonl", "1/3", info.origin, 3, 0.5}, {"b.jsonl", "", info.origin, 4, 1.5}};
  const OrderedJson json = run_header_to_json(info);
  EXPECT_TRUE(is_run_header(json));
  const RunInfo again = run_header_from_json(json);
  EXPECT_EQ(run_header_to_json(again).dump(), json.dump());
  EXPECT_EQ(again.selection.verdicts.at("good"), 6u);
  EXPECT_EQ(again.parts[1].verdicts, 4u);
  EXPECT_EQ(again.origin.machine.cores, 3);
  EXPECT_EQ(again.parts[0].origin.commit, "c0ffee");
}

TEST(RunHeader, IsOfThisProgramWhenItIsNotSaid) {
  EXPECT_EQ(run_header_to_json({})["commit"], build_commit());
  EXPECT_FALSE(run_header_to_json({})["machine"]["build"].get<std::string>().empty());
  EXPECT_FALSE(run_header_to_json({})["selection"].contains("shard"));
  EXPECT_FALSE(run_header_to_json({}).contains("parts"));
}

/// A file may hold anything.
TEST(RunHeader, WhatIsOfAnotherTypeIsNothing) {
  for (const char* text : {"1", "[]", "{}", "null", R"({"selection":3,"machine":[],"parts":{"a":1},"backends":"x"})",
                           R"({"selection":{"cases":-1,"verdicts":{"a":"b","c":-2}},"parts":[1,[],{"verdicts":1e300}],
                              "machine":{"cores":"two","cpu":4},"command":[3],"conditions":[1],"unavailable":[[]]})"}) {
    const RunInfo info = run_header_from_json(OrderedJson::parse(text));
    EXPECT_EQ(info.selection.fingerprint, "") << text;
    EXPECT_EQ(info.selection.cases, 0u) << text;
    EXPECT_TRUE(info.conditions.empty()) << text;
    EXPECT_EQ(info.origin.machine.cores, 0) << text;
    for (const auto& [backend, count] : info.selection.verdicts) EXPECT_EQ(count, 0u) << backend;
  }
}

}  // namespace
}  // namespace attest
