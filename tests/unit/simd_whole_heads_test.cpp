// Heads of a few keys that backends/simd takes whole: which, and that they are right at the edges of vectors, groups of
// rows and blocks of them, for each instruction set that this processor has.
#if defined(ATTEST_HAS_SIMD)
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backends/simd/whole_heads.h"
#include "tests/unit/helpers.h"
#include "tests/unit/simd_targets.h"

namespace attest::simd {
namespace {

struct Taken : HeldCall<WholeHeads<float>> {
  Taken(const std::string& line, const Target& target) : HeldCall(line, target) {}
  bool takes_first() {
    heads.attend(inputs, 0, 1, results, worker);
    return !heads.failed(0, 0);
  }
};

TEST(SimdWholeHeads, ScoresThatMoreIsDoneToAreLeft) {
  for (const char* line : {"seq=49 dim=32", "seq=49 dim=32 causal", "seq=128 dim=64 mask=add:11QK:normal",
                           "seq=20x128 dim=8 lengths=100", "heads=4/2 seq=64 dim=8 paged=16"})
    EXPECT_TRUE(WholeHeads<float>::takes(parse_case(line).call)) << line;
  for (const char* line :
       {"seq=20x129 dim=8", "seq=49 dim=32 softcap=3", "seq=49 dim=32 alibi", "seq=49 dim=32 sinks",
        "seq=49 dim=32 mask=bool:11QK:random(0.5)", "seq=49 dim=32 mask=add:11Q1:normal", "seq=49 dim=32 dropout=0.5",
        "seq=64 dim=32 blocks=16x16:random(0.5)", "seq=49 dim=32 out=o,weights", "seq=49 dim=32 pass=backward",
        "seq=49 dim=32 k.dtype=i8 k.scale=token", "seq=9x0 dim=4"})
    EXPECT_FALSE(WholeHeads<float>::takes(parse_case(line).call)) << line;
}

TEST(SimdWholeHeads, HeadsOfFewRowsOrOtherIntervalsAreLeft) {
  for (const Target& target : targets()) {
    EXPECT_TRUE(Taken("seq=9x30 dim=8", target).takes_first()) << target.name;
    EXPECT_TRUE(Taken("seq=40 dim=8 causal", target).takes_first()) << target.name;
    EXPECT_TRUE(Taken("seq=40 dim=8 lengths=q:20/k:11", target).takes_first()) << target.name;
    EXPECT_FALSE(Taken("seq=8x30 dim=8", target).heads.takes_any()) << target.name;
    EXPECT_FALSE(Taken("seq=40 dim=8 window=3:3", target).heads.takes_any()) << target.name;
    EXPECT_FALSE(Taken("seq=40x20 dim=8 causal align=bottom-right", target).heads.takes_any()) << target.name;
  }
}

/// A hidden value has the weight 0, and 0 * NaN would leak.
TEST(SimdWholeHeads, WhatIsNotFiniteIsLeftToTiles) {
  for (const Target& target : targets()) {
    for (const char* line : {"seq=40 dim=16 causal", "seq=40 dim=15 causal", "seq=40 dim=16"}) {
      for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v}) {
        Taken poisoned(line, target);
        poisoned.data.at(id).set(0, 0, 39, 3, kNaN);
        EXPECT_FALSE(poisoned.takes_first()) << target.name << ": " << line;
      }
    }
  }
  with_each_target([](Backend& backend, const Target& target) {
    for (const char* line :
         {"heads=2 seq=40 dim=16 causal poison=hidden:kv", "heads=2 seq=40x60 dim=15 lengths=30 poison=hidden:kv",
          "batch=2 heads=2 seq=60 dim=16 mask=add:11QK:neginf(0.3) poison=hidden:kv",
          "heads=2 seq=60 dim=16 poison=visible:k", "heads=2 seq=60 dim=16 causal poison=visible:v"})
      EXPECT_FALSE(is_failure(check(backend, line))) << target.name << ": " << line << check(backend, line).reason;
  });
}

TEST(SimdWholeHeads, RightAtTheEdges) {
  with_each_target([](Backend& backend, const Target& target) {
    for (const int rows : {9, 13, 24, 25, 49}) {
      for (const int keys : {1, 7, 16, 33, 64, 65, 128}) {
        for (const char* rest : {"dim=32", "dim=15/33 mask=add:1HQK:normal", "dim=8/80 causal align=top-left",
                                 "dim=4/64 scale=-0.7", "dim=20 layout=blhd dtype=f16"}) {
          const std::string line =
              "heads=2 seq=" + std::to_string(rows) + "x" + std::to_string(keys) + " out=o,lse " + rest;
          const Verdict verdict = check(backend, line);
          EXPECT_FALSE(is_failure(verdict)) << target.name << ": " << line;
          EXPECT_NE(verdict.status, Status::refused) << line;
        }
      }
    }
  });
}

}  // namespace
}  // namespace attest::simd
#endif
