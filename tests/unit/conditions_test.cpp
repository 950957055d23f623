// Under which conditions verdicts hold again.
#include "harness/report/conditions.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

const Conditions kThen = {{"program", "1a"}, {"libraries", "2b"}, {"threads", "2"}, {"backend.one", "1.0"}};

TEST(Conditions, TheSameHold) { EXPECT_FALSE(difference(kThen, kThen)); }

TEST(Conditions, TheFirstDifferenceIsASentence) {
  Conditions now = kThen;
  now["threads"] = "3";
  EXPECT_EQ(difference(kThen, now), "it was run with threads 2, not 3");
  now["program"] = "1c";  // from which others follow
  EXPECT_EQ(difference(kThen, now), "it comes from another build of attest (1a, not 1c)");
}

TEST(Conditions, ABackendThatOneRunHasDoesNotCount) {
  Conditions now = kThen;
  now["backend.two"] = "7";
  EXPECT_FALSE(difference(kThen, now));
  now["backend.one"] = "2.0";
  EXPECT_TRUE(difference(kThen, now));
}

TEST(Conditions, AFileThatSaysNothingIsNotGoneOnFrom) { EXPECT_TRUE(difference({}, kThen)); }

}  // namespace
}  // namespace attest
