// JSON Lines: a header, a line for each verdict, a summary.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "harness/base/machine.h"
#include "harness/report/verdict_json.h"
#include "tests/unit/report_run.h"

namespace attest {
namespace {

TEST(JsonLinesReport, IsOneObjectALine) {
  std::istringstream text(written_report(json_lines_report));
  std::vector<OrderedJson> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(OrderedJson::parse(line));
  ASSERT_EQ(lines.size(), 7u);
  const OrderedJson& header = lines.front();
  EXPECT_EQ(header["kind"], "run");
  EXPECT_EQ(header["schema"], kVerdictSchema);
  EXPECT_EQ(header["commit"], build_commit());
  EXPECT_EQ(header["backends"][1]["device"], "GPU");
  EXPECT_EQ(header["unavailable"][0]["reason"], "no device");
  EXPECT_EQ(header["command"], (std::vector<std::string>{"attest", "check"}));
  for (std::size_t n = 1; n < 5; ++n) EXPECT_TRUE(verdict_from_json(lines[n])) << lines[n];
  EXPECT_EQ(lines[1]["error_over_bound"], 0.5);
  EXPECT_EQ(lines[5]["kind"], "shrunk");
  EXPECT_EQ(lines[5]["smallest"], "seq=1 dim=1");
  const OrderedJson& summary = lines.back();
  EXPECT_EQ(summary["kind"], "summary");
  EXPECT_EQ(summary["pass"], 1);
  EXPECT_EQ(summary["fail"], 2);
  EXPECT_EQ(summary["refused"], 1);
  EXPECT_EQ(summary["seconds"], 1.5);
  EXPECT_EQ(summary["problems"][0], "good refuses what is not listed");
  EXPECT_EQ(summary["convention"], 0);
  EXPECT_EQ(summary["weak"], 0);
  EXPECT_EQ(summary["right_if"]["bad"]["statement"], "stored_weights=bf16 for calls in f32");
  EXPECT_EQ(summary["right_if"]["bad"]["code"], "arithmetic={\"stored_weights\": \"bf16\"}");
}

/// Text of a backend may hold anything.
TEST(JsonLinesReport, BytesThatAreNoTextAreReplaced) {
  const auto path = std::filesystem::temp_directory_path() / ("attest_bytes." + std::to_string(getpid()));
  const auto report = json_lines_report(path);
  report->begin({});
  EXPECT_NO_THROW(report->verdict(verdict_of("bad", Status::fail, "seq=4 dim=4", "threw", "\xff\xfe")));
  report->end({}, 0, {});
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) EXPECT_FALSE(OrderedJson::parse(line).empty());
  std::filesystem::remove(path);
}

/// On ranks: at once on disk as they come, and in order in the end.
TEST(JsonLinesReport, HoldsVerdictsInOrderThoughTheyComeOutOfIt) {
  const auto path = std::filesystem::temp_directory_path() / ("attest_order." + std::to_string(getpid()));
  const auto lines_of = [](const std::filesystem::path& file) {
    std::ifstream stream(file);
    std::vector<std::string> cases;
    for (std::string line; std::getline(stream, line);) {
      const OrderedJson json = OrderedJson::parse(line);
      cases.push_back(json["kind"] == "verdict" ? json["case"].get<std::string>() : json["kind"].get<std::string>());
    }
    return cases;
  };
  const Verdict first = verdict_of("good", Status::pass, "seq=1 dim=1", "", ""),
                second = verdict_of("good", Status::pass, "seq=2 dim=1", "", "");
  const auto report = json_lines_report(path);
  report->begin({});
  report->arrival(second);
  report->arrival(first);
  const auto part = path.string() + ".part" + std::to_string(getpid());
  EXPECT_EQ(lines_of(part), (std::vector<std::string>{"run", "seq=2 dim=1", "seq=1 dim=1"}));
  report->verdict(first);
  report->verdict(second);
  report->end({}, 0, {});
  EXPECT_EQ(lines_of(path), (std::vector<std::string>{"run", "seq=1 dim=1", "seq=2 dim=1", "summary"}));
  std::filesystem::remove(path);
}

TEST(JsonLinesReport, GoesToStandardOutput) {
  testing::internal::CaptureStdout();
  report_a_run(*json_lines_report("-"));
  std::istringstream text(testing::internal::GetCapturedStdout());
  std::vector<OrderedJson> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(OrderedJson::parse(line));
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines.back()["kind"], "summary");
  EXPECT_FALSE(std::filesystem::exists("-"));
}

}  // namespace
}  // namespace attest
