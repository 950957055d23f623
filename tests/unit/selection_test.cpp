// Filters find what an ECMAScript search finds, on lines of any length. Shards: check_run_test.cpp.
#include "harness/run/selection.h"

#include <gtest/gtest.h>

#include "harness/base/user_error.h"

namespace attest {
namespace {

TEST(Filter, SearchesAnywhere) {
  const std::string text = "eigen batch=2 seq=4x5 dim=4 causal";
  for (const char* found :
       {"", "causal", "^eigen", "causal$", "seq=[34]x", "^eigen .*dim=4 ", "opencl|causal", "\\bdim",
        "(?=.*causal)batch", "(a).*\\1", "(.)(.)=.*\\1", "^(?!opencl)", "e{0,1}igen", "x?"}) {
    EXPECT_TRUE(Filter(found).keeps(text)) << found;
  }
  for (const char* missing :
       {"opencl", "^batch", "seq=4$", "(?=.*opencl)batch", "(z).*\\1", "^(?!eigen)", "^$", "a^"}) {
    EXPECT_FALSE(Filter(missing).keeps(text)) << missing;
  }
  EXPECT_TRUE(Filter("^$").keeps(""));
}

TEST(Filter, WhatIsNoExpressionIsTheUsersError) {
  for (const char* nonsense : {"(", ")(", "a)|(?:b", "[", "*", "a{2", "(.)\\2"}) {
    EXPECT_THROW(Filter{nonsense}, UserError) << nonsense;
  }
  EXPECT_THROW(Filter(std::string(50000, '(') + std::string(50000, ')')), UserError);
}

TEST(Filter, LongLinesHaveAnAnswer) {
  std::string line = "eigen batch=64000 seq=1 dim=1 lengths=1";
  while (line.size() < 128000) line += ",1";
  EXPECT_FALSE(Filter("causal|(.)*x$").keeps(line));
  EXPECT_FALSE(Filter("(1+,?)+x").keeps(line));
  EXPECT_TRUE(Filter("(.)*1$").keeps(line));
  EXPECT_THROW(Filter("(.)\\1*x").keeps(line), UserError);
}

TEST(Filter, NestedRepetitionsHaveAnAnswer) {
  EXPECT_FALSE(Filter("(1+)+x").keeps("eigen seq=" + std::string(60, '1')));
}

}  // namespace
}  // namespace attest
