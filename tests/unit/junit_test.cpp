// JUnit, for what shows test results.
#include <gtest/gtest.h>

#include <pugixml.hpp>
#include <string>

#include "tests/unit/report_run.h"

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
}

}  // namespace
}  // namespace attest
