// Versions of files.
#include "harness/base/schema.h"

#include <gtest/gtest.h>

#include "tests/unit/complaint.h"

namespace attest {
namespace {

std::string complaint_about(const std::string& schema) {
  return complaint([&] { require_schema("a file", schema, 3); });
}

TEST(Schema, OlderAndOwnVersionsAreRead) {
  for (const char* schema : {"1", "2", "3", "003"}) EXPECT_NO_THROW(require_schema("a file", schema, 3)) << schema;
}

TEST(Schema, NewerOnesAreRefusedInOneLine) {
  EXPECT_EQ(complaint_about("4"), "a file: schema 4 of a newer attest; this one reads up to 3");
  EXPECT_EQ(complaint_about("99999999999999999999999"),
            "a file: schema 99999999999999999999999 of a newer attest; this one reads up to 3");
}

TEST(Schema, WhatIsNoVersionIsSaid) {
  for (const char* schema : {"", "0", "-1", "two", "1.5", " 2"})
    EXPECT_EQ(complaint_about(schema),
              "a file: schema \"" + std::string(schema) + "\"; a number from 1 to 3 is wanted");
  EXPECT_EQ(complaint_about("2\n\x1b"), "a file: schema \"2\\x0a\\x1b\"; a number from 1 to 3 is wanted");
}

}  // namespace
}  // namespace attest
