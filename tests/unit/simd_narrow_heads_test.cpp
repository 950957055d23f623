// Heads of few features that backends/simd attends with rows as lanes: which, and that they are right at the edges of
// vectors, blocks of rows and chunks of keys, for each instruction set that this processor has.
#if defined(ATTEST_HAS_SIMD)
#include <gtest/gtest.h>

#include <string>

#include "backends/simd/narrow_heads.h"
#include "tests/unit/helpers.h"
#include "tests/unit/simd_targets.h"

namespace attest::simd {
namespace {

struct Taken : HeldCall<NarrowHeads<float>> {
  Taken(const std::string& line, const Target& target) : HeldCall(line, target) {}
  bool takes_all() {
    for (std::int64_t unit = 0; unit < heads.units(); ++unit) heads.attend(inputs, unit, results, worker);
    return !heads.failed(0, 0);
  }
};

TEST(SimdNarrowHeads, FewFeaturesAndPlainScoresAreTaken) {
  for (const Target& target : targets()) {
    const Kernels<float>& kernels = kernels_of<float>(target);
    for (const char* line :
         {"seq=300 dim=8", "seq=300 dim=28 causal", "seq=40x200 dim=15/4 window=9:3 align=top-left",
          "seq=200 dim=8 lengths=100", "heads=4/2 seq=200 dim=8 paged=16", "dtype=f16 seq=200 dim=8"})
      EXPECT_EQ(NarrowHeads<float>::takes(parse_case(line).call, kernels), kernels.narrow_dim > 0) << line;
    for (const char* line :
         {"seq=300 dim=29", "seq=300 dim=8/32", "seq=300 dim=8 softcap=3", "seq=300 dim=8 alibi", "seq=300 dim=8 sinks",
          "seq=300 dim=8 mask=add:11QK:normal", "seq=300 dim=8 dropout=0.5", "seq=300 dim=8 blocks=16x16:random(0.5)",
          "seq=300 dim=8 out=o,weights", "seq=300 dim=8 pass=backward", "seq=300 dim=8 k.dtype=i8 k.scale=token"})
      EXPECT_FALSE(NarrowHeads<float>::takes(parse_case(line).call, kernels)) << line;
  }
}

TEST(SimdNarrowHeads, FewRowsAndWhatIsNotFiniteAreLeftToTiles) {
  for (const Target& target : targets()) {
    if (kernels_of<float>(target).narrow_dim == 0) continue;
    EXPECT_FALSE(Taken("seq=15x200 dim=8", target).heads.takes_any());
    for (const char* line : {"seq=300 dim=8 causal", "seq=300 dim=8 window=20:20", "seq=300 dim=8"}) {
      EXPECT_TRUE(Taken(line, target).takes_all()) << line;
      for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v}) {
        Taken poisoned(line, target);
        poisoned.data.at(id).set(0, 0, 150, 3, kNaN);
        EXPECT_FALSE(poisoned.takes_all()) << target.name << ": " << line;
      }
    }
  }
  with_each_target([](Backend& backend, const Target& target) {
    for (const char* line :
         {"heads=2 seq=200 dim=16 causal poison=hidden:kv", "heads=2 seq=40x600 dim=15 lengths=300 poison=hidden:kv",
          "heads=2 seq=200 dim=16 poison=visible:k", "heads=2 seq=200 dim=16 causal poison=visible:v",
          "heads=2 seq=200 dim=16 q.fill=spread(88)", "seq=200 dim=8 window=3:3 poison=hidden:kv"})
      EXPECT_FALSE(is_failure(check(backend, line))) << target.name << ": " << line << check(backend, line).reason;
  });
}

TEST(SimdNarrowHeads, RightAtTheEdges) {
  with_each_target([](Backend& backend, const Target& target) {
    for (const int rows : {16, 31, 33, 256, 257}) {
      for (const int keys : {129, 136, 137, 520}) {
        for (const char* rest :
             {"dim=8", "dim=15/3 causal align=top-left", "dim=4/28 scale=-0.7 window=40:9 align=bottom-right",
              "dim=20 layout=blhd dtype=f16", "dim=1 dtype=f64 causal align=bottom-right"}) {
          const std::string line =
              "heads=2/1 seq=" + std::to_string(rows) + "x" + std::to_string(keys) + " out=o,lse " + rest;
          const Verdict verdict = check(backend, line);
          EXPECT_FALSE(is_failure(verdict)) << target.name << ": " << line << ": " << verdict.reason;
          EXPECT_NE(verdict.status, Status::refused) << line;
        }
      }
    }
    for (const char* line :
         {"batch=3 heads=2 seq=200 dim=8 lengths=q:200,20,3/k:200,0,150",
          "batch=2 heads=4/2 seq=150 dim=8 paged=16 lengths=150,20",
          "batch=2 seq=200 dim=12 causal lengths=180,60 layout=thd", "heads=2 seq=40x300 past=260 dim=8 causal"})
      EXPECT_FALSE(is_failure(check(backend, line))) << target.name << ": " << line << check(backend, line).reason;
  });
}

}  // namespace
}  // namespace attest::simd
#endif
