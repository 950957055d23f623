// JUnit, for what shows test results.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <pugixml.hpp>
#include <string>

#include "harness/base/text.h"
#include "tests/unit/report_run.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

TEST(JunitReport, CountsAndNamesEveryVerdict) {
  const std::string text = written_report(junit_report);
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(text.c_str())) << text;
  const pugi::xml_node root = document.child("testsuites");
  EXPECT_EQ(root.attribute("tests").as_int(), 5);  // and what the run as a whole did wrong
  EXPECT_EQ(root.attribute("failures").as_int(), 3);
  EXPECT_EQ(root.attribute("skipped").as_int(), 1);
  int cases = 0, failures = 0, skipped = 0;
  for (const pugi::xml_node suite : root.children("testsuite")) {
    for (const pugi::xml_node one : suite.children("testcase")) {
      ++cases;
      EXPECT_NE(std::string(one.attribute("name").value()), "");
      failures += !one.child("failure").empty();
      skipped += !one.child("skipped").empty();
    }
  }
  EXPECT_EQ(cases, 5);
  EXPECT_EQ(failures, 3);
  EXPECT_EQ(skipped, 1);
  EXPECT_NE(text.find("o is &lt;wrong"), std::string::npos);
  EXPECT_EQ(text.find('\x01'), std::string::npos);  // XML forbids it, also escaped
  for (const pugi::xml_node one : root.child("testsuite").children("testcase")) {
    if (!one.child("failure")) continue;
    EXPECT_NE(
        std::string(one.child("failure").text().get()).find("bad would be right if it states stored_weights=bf16"),
        std::string::npos);
  }
}

TEST(JunitReport, AConventionAndAWeakOneAreTestsThatPassed) {
  const auto path = std::filesystem::temp_directory_path() / ("attest_convention." + std::to_string(getpid()));
  const auto report = junit_report(path);
  report->begin({});
  report->verdict(verdict_of("peer", Status::convention, "seq=4 dim=4", "", "as it states: hidden_nan=leaks"));
  report->verdict(verdict_of("peer", Status::weak, "seq=5 dim=4", "", "proves little"));
  report->end({}, 0, {});
  pugi::xml_document document;
  ASSERT_TRUE(document.load_file(path.c_str()));
  const pugi::xml_node root = document.child("testsuites"), test = root.child("testsuite").child("testcase");
  EXPECT_EQ(root.attribute("failures").as_int() + root.attribute("skipped").as_int(), 0);
  EXPECT_STREQ(test.child("system-out").text().get(), "as it states: hidden_nan=leaks");
  EXPECT_STREQ(test.next_sibling("testcase").child("system-out").text().get(), "proves little");
  std::filesystem::remove(path);
}

TEST(JunitReport, NamesThatAreNoUtf8LeaveItWellFormed) {
  const Folder folder;
  const fs::path path = folder / "a.xml";
  Verdict verdict;
  verdict.suite = "caf\xe9\x01";
  verdict.backend = "mine\xff";
  verdict.case_line = "\xff.safetensors";
  verdict.status = Status::fail;
  verdict.reason = "a \xc3 reason";
  verdict.repro = "attest check '\xff.safetensors'";
  const auto report = junit_report(path);
  report->verdict(verdict);
  report->end({}, 0, {"\xfe"});
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(text.c_str())) << text;
  EXPECT_EQ(printable(text), text);
}

}  // namespace
}  // namespace attest
