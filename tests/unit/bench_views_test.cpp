// What else a benchmark shows: sweeps, profiles, cold runs, memory; and the data that change.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/user_error.h"
#include "harness/speed/machine/memory_peak.h"
#include "harness/speed/machine/pinning.h"
#include "harness/speed/studies/profile.h"
#include "harness/speed/studies/sweep.h"
#include "harness/speed/timing/bench.h"
#include "harness/speed/trust/changing_inputs.h"
#include "reference/options/case_line.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(Sweep, DoublesAKeyInPlaceOrBehind) {
  const Sweep sweep = parse_sweep("seq=128..1000");
  EXPECT_EQ(sweep.values, (std::vector<long>{128, 256, 512, 1000}));
  EXPECT_EQ(sweep.line_with("heads=2 seq=4 dim=8", 256), "heads=2 seq=256 dim=8");
  EXPECT_EQ(sweep.line_with("heads=2 dim=8", 256), "heads=2 dim=8 seq=256");
  EXPECT_EQ(parse_sweep("seq=1x128..512").line_with("dim=4", 512), "dim=4 seq=1x512");
  for (const char* wrong : {"seq", "seq=4", "seq=8..4", "seq=0..4", "seq=a..b", ""}) {
    EXPECT_THROW(parse_sweep(wrong), UserError) << wrong;
  }
}

TEST(Sweep, LinesThatDifferInItsKeyAloneAreOneCurve) {
  const Sweep sweep = parse_sweep("seq=128..512");
  using Lines = std::vector<std::string>;
  EXPECT_EQ(sweep.curves({"seq=4 dim=8", "seq=8 dim=8", "dim=8", "seq=4 dim=16"}),
            (Lines{"seq=4 dim=8", "seq=4 dim=16"}));
}

TEST(Sweep, FindsTheExponent) {
  std::vector<Cost> costs;
  for (const double size : {128.0, 256.0, 1024.0}) costs.push_back({size, 3e-9 * size * size});
  EXPECT_NEAR(fitted_exponent(costs), 2, 1e-12);
  EXPECT_EQ(fitted_exponent({{128, 1}}), 0);
}

BenchCase timed_in(double seconds) {
  BenchCase result;
  BenchLine line;
  line.backend = "a";
  line.seconds = {seconds};
  line.steps.threads = {1.5};
  result.lines.push_back(line);
  return result;
}

TEST(Profile, HalvesSizesAndReadsShares) {
  const std::vector<AblatedCase> cases = ablated_cases(case_from_line("seq=64 dim=16/8"));
  ASSERT_EQ(cases.size(), 4u);
  EXPECT_EQ(cases[1].changed.label, "seq=64 dim=8");
  EXPECT_EQ(cases[2].changed.label, "seq=64 dim=16/4");
  EXPECT_EQ(cases[3].changed.label, "seq=32x64 dim=16/8");
  EXPECT_EQ(cases[3].operations, cases[0].operations / 2);
  // 10 ms: 5 of them grow with the keys' dimension, 3 with the values', and 1 doesn't grow with the queries.
  const auto shares = time_shares(cases, {timed_in(10e-3), timed_in(7.5e-3), timed_in(8.5e-3), timed_in(5.5e-3)}, 2);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_NEAR(shares[0].scores, 0.5, 1e-9);
  EXPECT_NEAR(shares[0].outputs, 0.3, 1e-9);
  EXPECT_NEAR(shares[0].rest, 0.2, 1e-9);
  EXPECT_NEAR(shares[0].fixed, 0.1, 1e-9);
  EXPECT_NEAR(shares[0].idle, 0.25, 1e-9);
}

TEST(Profile, LeavesOutWhatCantBeHalved) {
  const std::vector<AblatedCase> cases = ablated_cases(case_from_line("seq=7 dim=5/4 causal"));
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[1].which, Ablation::value_dim);
  EXPECT_LT(time_shares(cases, {timed_in(2), timed_in(1)}, 1).at(0).scores, 0);
}

TEST(Profile, SharesOfMoreThanTheWholeAreNone) {
  const std::vector<AblatedCase> cases = ablated_cases(case_from_line("seq=64 dim=16/8"));
  // Either half takes 60% less than it should: 1.2 of the whole together.
  const auto shares = time_shares(cases, {timed_in(10e-3), timed_in(7e-3), timed_in(7e-3), timed_in(5e-3)}, 2);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_LT(shares[0].scores, 0);
  EXPECT_LT(shares[0].outputs, 0);
  EXPECT_LT(shares[0].rest, 0);
  const auto nearly = time_shares(cases, {timed_in(10e-3), timed_in(7e-3), timed_in(7.75e-3), timed_in(5e-3)}, 2);
  EXPECT_NEAR(nearly.at(0).scores, 0.6, 1e-9) << "1.05 of the whole: noise";
  EXPECT_NEAR(nearly.at(0).rest, 0, 1e-9);
}

TEST(Profile, DisturbedTimesGiveNoShare) {
  const std::vector<AblatedCase> cases = ablated_cases(case_from_line("seq=64 dim=16/8"));
  BenchCase disturbed = timed_in(7.5e-3);
  disturbed.lines[0].disturbed = "other processes used 1.00 processors";
  const auto half = time_shares(cases, {timed_in(10e-3), disturbed, timed_in(8.5e-3), timed_in(5.5e-3)}, 2);
  EXPECT_LT(half.at(0).scores, 0);
  EXPECT_NEAR(half.at(0).outputs, 0.3, 1e-9);
  EXPECT_LT(half.at(0).rest, 0);
  disturbed.lines[0].seconds = {10e-3};
  const auto whole = time_shares(cases, {disturbed, timed_in(7.5e-3), timed_in(8.5e-3), timed_in(5.5e-3)}, 2);
  for (const double share : {whole.at(0).scores, whole.at(0).outputs, whole.at(0).rest, whole.at(0).fixed}) {
    EXPECT_LT(share, 0);
  }
}

TEST(Profile, ACaseWithoutAPairHasNone) {
  const std::vector<AblatedCase> cases = ablated_cases(case_from_line("seq=64 dim=16/8 lengths=0"));
  ASSERT_EQ(cases[0].operations, 0);
  EXPECT_TRUE(time_shares(cases, {timed_in(10e-3), timed_in(5e-3), timed_in(5e-3), timed_in(5e-3)}, 2).empty());
}

/// What the first set of q holds.
std::vector<double> values_of(const ConstTensor& t) {
  std::vector<double> values;
  each_index(t.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    values.push_back(load(t.data, t.dtype, t.offset(b, h, l, d)));
  });
  return values;
}

TEST(ChangingInputs, OverlappingKeysStayOneAnothersCopies) {
  const CaseInputs made = make_inputs(parse_case("heads=4/2 seq=8 dim=4 v.strides=0,0,4,1 poison=hidden:k causal"));
  ChangingInputs changing(made, 6);
  const Inputs& inputs = changing.next();
  const ConstTensor& v = inputs.v();
  for (std::int64_t l = 0; l < 8; ++l)
    EXPECT_EQ(load(v.data, v.dtype, v.offset(0, 0, l, 1)), load(v.data, v.dtype, v.offset(0, 1, l, 1)));
}

/// Rows that overlap in every way: each element changes once.
TEST(ChangingInputs, TheCopyHoldsWhatWasShown) {
  const CaseInputs made = make_inputs(parse_case("heads=4/2 seq=8 dim=4 v.strides=0,0,1,1 k.strides=0,0,4,1"));
  const CaseInputs others = make_inputs(parse_case("heads=4/2 seq=8 dim=4 v.strides=0,0,1,1 k.strides=0,0,4,1 seed=3"));
  ChangingInputs changing(made, 7);
  for (int n = 0; n < 50; ++n) {
    const Inputs& inputs = changing.next();
    if (n % 7 != 0) continue;
    EXPECT_TRUE(changing.all_intact());
    EXPECT_EQ(values_of(inputs.v()), values_of(changing.kept().views().v()));
    EXPECT_NE(inputs.v().data, changing.kept().views().v().data);
  }
  const Inputs& inputs = changing.stage(others);
  EXPECT_TRUE(changing.intact());
  EXPECT_EQ(values_of(inputs.q()), values_of(others.views().q()));
  *static_cast<float*>(const_cast<void*>(inputs.q().data)) = 9;
  EXPECT_FALSE(changing.intact());
  changing.restore();
  EXPECT_TRUE(changing.all_intact());
  EXPECT_NE(values_of(inputs.q()), values_of(others.views().q()));
  changing.next();
  *static_cast<float*>(const_cast<void*>(inputs.q().data)) = 9;
  EXPECT_TRUE(changing.intact()) << "it is the other set's";
  EXPECT_FALSE(changing.all_intact());
}

TEST(Bench, ColdRunsAreCheckedAndCounted) {
  const BackendSet set(faulty::faulty_backends(), {"correct"}, {1, ""});
  BenchSettings settings{1, 2, 0.001, 9};
  settings.cold = true;
  std::vector<std::string> told;
  settings.progress = [&](const std::string& what) { told.push_back(what); };
  const BenchCase result = bench_case(case_from_line("seq=16 dim=8"), set.all(), {100, 50, 10, 2}, settings);
  EXPECT_EQ(result.lines.at(0).wrong.text, "");
  EXPECT_EQ(result.lines.at(0).steps.cold.size(), 5u);
  EXPECT_GE(result.evicted_bytes, 6e7);
  EXPECT_GE(told.size(), 4u);
  EXPECT_EQ(told.back().substr(0, 12), "seq=16 dim=8");
}

TEST(Bench, TheTotalIsThatOfItsSteps) {
  const BackendSet set(faulty::faulty_backends(), {"correct"}, {1, ""});
  const BenchCase result = bench_case(case_from_line("seq=16 dim=8"), set.all(), {100, 50, 10, 2}, {1, 3, 0.002, 9});
  const BenchLine& line = result.lines.at(0);
  ASSERT_EQ(line.wrong.text, "");
  EXPECT_DOUBLE_EQ(line.total_seconds, line.median() + median(line.steps.upload) + median(line.steps.download));
}

TEST(MemoryPeak, SeesWhatWasTakenAndGivenBack) {
  const MemoryPeak peak;
  { const std::vector<char> taken(std::size_t{64} << 20, 1); }
  EXPECT_GE(peak.bytes(), 60e6);
  EXPECT_LE(peak.bytes(), 200e6);
}

TEST(MemoryPeak, SaysNothingWhereTheCountDoesNotStartAnew) {
  const MemoryPeak peak("/proc/self/nowhere/clear_refs");
  { const std::vector<char> taken(std::size_t{64} << 20, 1); }
  EXPECT_EQ(peak.bytes(), 0);
}

TEST(Pinning, AsksForNoMoreThanThereIs) { EXPECT_FALSE(pin_to_processors(1 << 20)); }

}  // namespace
}  // namespace attest
