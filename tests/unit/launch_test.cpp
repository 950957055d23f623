// Lengths that are data of a run, and caches that a call appends to: what a plan is told, what the reference sees, and
// what must lie in the cache behind a call.
#include "reference/call/launch.h"

#include <cstring>

#include "harness/cases/other_launch.h"
#include "harness/comparison/cache_check.h"
#include "harness/relate/derived_call.h"
#include "reference/options/find_fault.h"
#include "reference/softmax/key_place.h"
#include "tests/unit/complaint.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(Launch, APlanIsNotToldLengthsThatAreData) {
  const Problem p = parse_case("batch=2 seq=3x7 dim=4 dynamic lengths=q:3,1/k:7,4");
  const CaseInputs inputs = make_inputs(p);
  const Call plan = planned(p);
  EXPECT_FALSE(plan.lengths);
  EXPECT_EQ(plan.key_count(1), 7);
  EXPECT_EQ(launched(plan, inputs.views()), p.call);
  const Problem fixed = parse_case("batch=2 seq=3x7 dim=4 lengths=7,4");
  EXPECT_EQ(planned(fixed), fixed.call);
  EXPECT_EQ(launched(fixed, {}), fixed.call);
}

TEST(Launch, PagesSufficeForTheLongestLengths) {
  EXPECT_EQ(page_count(parse_case("batch=3 seq=1x9 dim=4 dynamic paged=4 lengths=9,0,1")), 9);
  EXPECT_EQ(page_count(parse_case("batch=3 seq=1x9 dim=4 paged=4 lengths=9,0,1")), 4);
}

TEST(Launch, AnotherRunOfThePlanHasAnEmptySequence) {
  for (const char* line : {"batch=3 seq=3x7 dim=4 dynamic lengths=q:3,1,2/k:7,4,0", "seq=5 dim=4 dynamic append",
                           "batch=2 seq=2x9 dim=4 dynamic append paged=4 lengths=q:2,0/k:2,9 dropout=0.5 seed=3"}) {
    const Problem p = parse_case(line), other = other_launch(p);
    EXPECT_EQ(planned(p), planned(other)) << line;
    EXPECT_FALSE(find_fault(other)) << line;
    EXPECT_EQ(other.call.key_count(p.call.batch - 1), 0) << line;
    EXPECT_NE(other.call.lengths, p.call.lengths) << line;
    for (std::int64_t b = 0; b < p.call.batch; ++b) EXPECT_LE(other.call.key_count(b), p.call.key_length) << line;
  }
}

TEST(Launch, DataGiveTheSameAsACallThatSaysItsLengths) {
  const char* line = "batch=3 heads=4/2 seq=3x9 dim=4 causal align=bottom-right lengths=q:3,0,2/k:9,0,4";
  const Computed told(line), data(std::string(line) + " dynamic");
  ASSERT_EQ(told.attention.rows.size(), data.attention.rows.size());
  for (std::size_t n = 0; n < told.attention.rows.size(); ++n) EXPECT_EQ(told.row(n).output, data.row(n).output) << n;
}

TEST(Append, EqualsACacheThatHasTheKeysAlready) {
  for (const char* line :
       {"heads=2 seq=3x8 dim=4 causal align=bottom-right append",
        "batch=3 heads=4/2 seq=3x9 dim=4/2 append lengths=q:3,0,1/k:3,7,9 paged=2",
        "batch=2 seq=3x9 dim=4 append dynamic layout=thd paged=4 lengths=q:3,1/k:9,6 causal align=bottom-right",
        "dtype=f32 k.dtype=bf16 v.dtype=f16 batch=2 seq=2x5 dim=4 append lengths=5,2"}) {
    const Computed c(line);
    const Arrangement there = Arrangement::same(c.problem);
    EXPECT_FALSE(there.call.append);
    const CaseInputs inputs = inputs_of_part(there, c.problem, c.inputs.views());
    const Attention expected = attention(there.call, inputs.views());
    ASSERT_EQ(expected.rows.size(), c.attention.rows.size());
    for (std::size_t n = 0; n < expected.rows.size(); ++n) {
      EXPECT_EQ(expected.rows[n].output, c.row(n).output) << line << " row " << n;
      EXPECT_EQ(expected.rows[n].raw, c.row(n).raw) << line << " row " << n;
    }
  }
}

/// With one query and one key the output is the value, as the cache holds it.
TEST(Append, RoundsToTheTypeOfTheCacheFirst) {
  const Computed c("seq=1 dim=1 v.dtype=bf16 append");
  const ConstTensor fresh = c.inputs.views().new_v();
  const double value = load(fresh.data, fresh.dtype, 0);
  EXPECT_EQ(c.row(0).output[0], as_stored(DType::bf16, value));
  EXPECT_NE(c.row(0).output[0], value);
  EXPECT_EQ(as_stored(DType::bf16, 1 + 0x1p-8), 1);  // halfway: to the even one
}

TEST(Append, NeedsAKeyOfEachQuery) {
  EXPECT_EQ(complaint<CaseError>([] { parse_case("batch=2 seq=3x5 dim=4 append lengths=5,2"); }),
            "append: each query brings a key, and sequence 1 has 3 queries and 2 keys");
}

class Cache : public testing::Test {
 protected:
  Cache()
      : problem_(parse_case("batch=2 heads=2 seq=2x7 dim=3 append paged=4 lengths=q:2,1/k:7,2")),
        inputs_(make_inputs(problem_)),
        outputs_(problem_) {
    BackendSet set(registered_backends(), {"example"}, {1, ""});
    walk_once(*set.all().front(), problem_, inputs_.views(), outputs_);
  }
  OutputFault fault() { return find_cache_fault(problem_, inputs_.views(), outputs_); }
  void set(TensorId id, const Index4& at, double value) {
    const MutableTensor cache = outputs_.views().at(id);
    store(cache.data, cache.dtype, cache.offset(at[0], at[1], at[2], at[3]), value);
  }
  /// Of key j of sequence b.
  Index4 place(std::int64_t b, std::int64_t j) const {
    const KeyPlace place = place_in_cache(inputs_.views(), b, j);
    return {place.batch, 1, place.row, 2};
  }

  Problem problem_;
  CaseInputs inputs_;
  GuardedOutputs outputs_;
};

TEST_F(Cache, HoldsTheNewRowsAndWhatItHeld) {
  EXPECT_TRUE(fault().empty()) << fault().reason;
  set(TensorId::cache_k, place(0, 5), 3);  // a new row: for the comparison of results
  EXPECT_TRUE(fault().empty()) << fault().reason;
}

TEST_F(Cache, MayNotChangeBesideThem) {
  set(TensorId::cache_v, place(0, 4), 3);
  EXPECT_EQ(fault().cause.text(), "cache_v: changed the cache beside its new rows");
  EXPECT_NE(fault().reason.find("= 3 is in no new row, and was "), std::string::npos) << fault().reason;
}

TEST_F(Cache, KeepsTheBitsOfRowsThatNobodyReads) {
  Index4 behind = place(1, 0);
  behind[2] = 3;  // of two keys in a page of four
  set(TensorId::cache_k, behind, kNaN);
  EXPECT_EQ(fault().cause.kind, Cause::changed_cache) << "another NaN";
}

}  // namespace
}  // namespace attest
