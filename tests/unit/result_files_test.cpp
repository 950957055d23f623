// Files of results told apart, and what is none refused in one line.
#include "harness/page/result_files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "harness/base/user_error.h"
#include "tests/unit/report_run.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

fs::path written(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

std::string a_run() { return written_report(json_lines_report); }

const char* const kBench = R"({"context":{"cpu":"a cpu","date":"2026-01-01"},"benchmarks":[
  {"name":"eigen/seq=4 dim=4","label":"seq=4 dim=4","real_time":2,"time_unit":"ms","GFLOP/s":3}]})";

TEST(ResultFiles, AnyMixIsToldApart) {
  const Folder folder;
  const ResultFiles results = read_results({written(folder / "a.jsonl", a_run()), written(folder / "b.json", kBench)});
  ASSERT_EQ(results.checks.size(), 1u);
  ASSERT_EQ(results.benches.size(), 1u);
  const CheckResults& check = results.checks.front();
  EXPECT_EQ(check.name, "a.jsonl");
  EXPECT_EQ(check.verdicts.size(), 4u);
  EXPECT_EQ(check.verdicts[1].cause.kind, Cause::outside_bound);
  ASSERT_EQ(check.shrunk.size(), 1u);
  EXPECT_EQ(check.shrunk.front().smallest, "seq=1 dim=1");
  EXPECT_EQ(check.problems, (std::vector<std::string>{"good refuses what is not listed"}));
  EXPECT_EQ(check.seconds, 1.5);
  EXPECT_EQ(results.benches.front().file.all.front().numbers.at("GFLOP/s"), 3);
  EXPECT_EQ(results.benches.front().file.context.at("cpu"), "a cpu");
}

TEST(ResultFiles, AFileOfTheFirstSchemaIsRead) {
  const Folder folder;
  std::string text = a_run();
  text.replace(text.find("\"schema\":3"), 10, "\"schema\":1");
  for (std::size_t at; (at = text.find("\"cause\":\"outside the bound\",")) != std::string::npos;) text.erase(at, 28);
  const ResultFiles results = read_results({written(folder / "old.jsonl", text)});
  EXPECT_TRUE(results.checks.front().verdicts[1].cause.empty());
  EXPECT_EQ(results.checks.front().verdicts.size(), 4u);
}

TEST(ResultFiles, WhatIsNoWholeFileOfResultsIsOneLine) {
  const Folder folder;
  const std::string run = a_run(), before_summary = run.substr(0, run.find("{\"kind\":\"summary\""));
  std::string younger = run;
  younger.replace(younger.find("\"schema\":3"), 10, "\"schema\":9");
  const std::pair<std::string, std::string> wrong[] = {
      {"", "no complete file of results"},
      {"nonsense", "no complete file of results"},
      {"[1,2]", "no complete file of results"},
      {"{\"a\":1}", "no complete file of results"},
      {std::string(kBench).substr(0, 90), "no complete file of results"},
      {before_summary, "ends before its summary"},
      {before_summary.substr(0, before_summary.size() - 20), "no line of JSON"},
      {run + run, "goes on after its summary"},
      {younger, "schema 9 of a newer attest"},
      {before_summary + "{\"kind\":\"verdict\"}\n", "a verdict lacks a key"},
      {before_summary + "{\"kind\":\"surprise\"}\n", "unknown kind"},
      {"{\"kind\":\"compare\"}", "has no \"schema\""}};
  for (const auto& [text, complaint] : wrong) {
    const fs::path path = written(folder / "wrong", text);
    const std::string message = message_of<UserError>([&] { read_results({path}); });
    EXPECT_NE(message.find(complaint), std::string::npos) << message;
    EXPECT_EQ(message.find(path.string()), 0u) << "it says which: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_THROW(read_results({folder / "absent"}), UserError);
  EXPECT_THROW(read_results({folder / ""}), UserError) << "a folder";
}

}  // namespace
}  // namespace attest
