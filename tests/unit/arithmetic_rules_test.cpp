#include "harness/backends/plugin/arithmetic_rules.h"

#include <gtest/gtest.h>

#include <limits>

namespace attest {
namespace {

std::string fault(const Arithmetic& arithmetic) { return fault_of(arithmetic).value_or("sound"); }

TEST(ArithmeticRules, TheDefaultIsSound) { EXPECT_EQ(fault({}), "sound"); }

TEST(ArithmeticRules, EachRuleIsNamed) {
  Arithmetic a;
  a.accumulator = DType::bf16;
  EXPECT_EQ(fault(a), "accumulator must be f32 or f64");
  a = {};
  a.exp_ulps = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(fault(a), "exp_ulps is nan: it must be finite and not negative");
  a = {};
  a.log_ulps = -1;
  EXPECT_EQ(fault(a), "log_ulps is -1: it must be finite and not negative");
  a = {};
  a.tanh_ulps = std::numeric_limits<double>::infinity();
  EXPECT_EQ(fault(a), "tanh_ulps is inf: it must be finite and not negative");
  a = {};
  a.lazy_threshold = -2;
  EXPECT_EQ(fault(a), "lazy_threshold is -2: it must be finite and not negative");
  a = {};
  a.key_block = -4;
  EXPECT_EQ(fault(a), "key_block is -4: it must not be negative");
  a = {};
  a.state_chunk = -1;
  EXPECT_EQ(fault(a), "state_chunk is -1: it must not be negative");
  a = {};
  a.score_stores = 17;
  EXPECT_EQ(fault(a), "score_stores is 17, and not from 0 to 16");
  a = {};
  a.scale = ScalePlacement::folded_log2e;
  EXPECT_EQ(fault(a), "scale is folded_log2e without base2");
  a.base2 = true;
  EXPECT_EQ(fault(a), "sound");
  a = {};
  a.parts = -1;
  EXPECT_EQ(fault(a), "parts is -1: it must not be negative");
  a = {};
  a.fused_log2e = true;
  EXPECT_EQ(fault(a), "sound");
  a.base2 = true;
  EXPECT_EQ(fault(a), "fused_log2e with base2: it takes scores in base e");
  a = {};
  a.no_maximum = true;
  EXPECT_EQ(fault(a), "sound");
  a.key_block = 16;
  EXPECT_EQ(fault(a),
            "no_maximum with key_block, lazy_threshold or parts: without a maximum nothing is rescaled or merged");
}

}  // namespace
}  // namespace attest
