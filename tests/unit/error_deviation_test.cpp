// The second tier: standard deviations of what independent roundings do, suspects, waivers.
#include "reference/softmax/bounds/error_deviation.h"

#include <cmath>
#include <numeric>

#include "harness/comparison/compare.h"
#include "harness/verdict/committed_lists.h"
#include "tests/faulty/around.h"
#include "tests/faulty/tampered.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(Deviation, OfACorrectKernelIsAboutOne) {
  const auto example = faulty::make_example();
  double squares = 0, largest = 0;
  int count = 0;
  for (int seed = 0; seed < 40; ++seed) {
    const Verdict v =
        check(*example, "heads=2 seq=24x" + std::to_string(40 + 17 * seed) + " dim=48/4 seed=" + std::to_string(seed) +
                            (seed % 2 ? " fill=spread(20)" : ""));
    ASSERT_EQ(v.status, Status::pass) << v.reason;
    ASSERT_TRUE(v.error_over_sigma);
    largest = std::max(largest, *v.error_over_sigma);
    squares += *v.error_over_sigma * *v.error_over_sigma;
    ++count;
  }
  // The largest of some hundred deviations: two or three of them, were the model exact.
  EXPECT_GT(std::sqrt(squares / count), 0.7);
  EXPECT_LT(largest, 5);
}

std::vector<double> deviations_of(const std::string& line, const Arithmetic& arithmetic = {}) {
  const Computed c(line);
  const Inputs inputs = c.inputs.views();
  const Head head(c.problem, inputs, 0, 0);
  std::vector<std::int64_t> columns(static_cast<std::size_t>(c.problem.call.value_dim));
  std::iota(columns.begin(), columns.end(), 0);
  return RowDeviation(head, c.row(0), 0, columns).of({arithmetic, c.problem.call.dtype});
}

TEST(Deviation, OfASinkUnderNoMaximumHasTheRoundingOfItsLogit) {
  // o is about exp(-30) times a mean of values. exp2(30 * log2(e)) divides it, off by up to 30 * 2^-24 of itself.
  Arithmetic a;
  a.fused_log2e = true;
  const std::string line = "seq=1x24 dim=16 sinks=30";
  const double under_maximum = deviations_of(line, a)[0];
  a.no_maximum = true;
  const double under_none = deviations_of(line, a)[0];
  const double rounding = 30 * 0x1p-24 / std::sqrt(3) * std::fabs(Computed(line).row(0).output[0]);
  EXPECT_GT(under_none, 1.7 * rounding);  // about sqrt(3): of log2(e), and with twice its variance of the product
  EXPECT_LT(under_none, 3 * rounding);
  EXPECT_GT(under_maximum, rounding / 2);  // the weights' distance from it is as large
}

/// The sum of `terms` as a kernel with so many accumulators takes it, every lanes-th term in the same one.
float sum_in_lanes(const std::vector<float>& terms, std::size_t lanes) {
  std::vector<float> sums(lanes, 0.0f);
  for (std::size_t j = 0; j < terms.size(); ++j) sums[j % lanes] += terms[j];
  return std::accumulate(sums.begin(), sums.end(), 0.0f);
}

TEST(Deviation, OfValuesThatCancelNeighboursIsRightInAnyNumberOfLanes) {
  for (const char* seed : {"1", "2", "3", "4", "5", "6"}) {
    const std::string line = std::string("seq=1x1000 dim=16/8 q.fill=uniform scale=0.01 v.fill=cancel seed=") + seed;
    const Computed c(line);
    const Row row = c.row(0);
    const ConstTensor v = c.inputs.at(TensorId::v).view();
    const std::vector<double> deviations = deviations_of(line);
    for (std::size_t column = 0; column < 8; ++column) {
      ASSERT_TRUE(std::isfinite(deviations[column]));
      std::vector<float> terms;
      for (std::int64_t j = 0; j < 1000; ++j) {
        const double value = load(v.data, v.dtype, v.offset(0, 0, j, static_cast<std::int64_t>(column)));
        terms.push_back(static_cast<float>(row.weights[static_cast<std::size_t>(j)]) * static_cast<float>(value));
      }
      for (std::size_t lanes = 1; lanes <= 64; lanes *= 2) {
        const double error = std::fabs(static_cast<double>(sum_in_lanes(terms, lanes)) - row.output[column]);
        EXPECT_LT(error, kSuspectDeviations * deviations[column]) << line << ", " << lanes << " lanes";
      }
    }
  }
}

TEST(Deviation, NoticesWhatTheBoundLetsPass) {
  const auto wrong = faulty::make_named(faulty::tampered_backends(), "scale_a_little_off");
  int suspects = 0;
  for (const char* line : {"seq=64x1024 dim=64", "seq=64x1024 dim=128", "seq=16x2048 dim=256"}) {
    const Verdict v = check(*wrong, line);
    EXPECT_TRUE(is_failure(v)) << line << ": " << name_of(v.status);
    if (v.status != Status::suspect) continue;
    ++suspects;
    EXPECT_LE(*v.error_over_bound, 1);
    EXPECT_GT(*v.error_over_sigma, 8);
    EXPECT_EQ(v.cause.kind, Cause::beyond_roundings);
  }
  EXPECT_GT(suspects, 0);
}

TEST(Deviation, ClaimsNothingWhereRoundingsAreNotIndependent) {
  EXPECT_TRUE(std::isfinite(deviations_of("seq=1x64 dim=8")[0]));
  EXPECT_EQ(deviations_of("seq=1x64 dim=8 fill=constant(0.25)")[0], kInfinity);
  EXPECT_EQ(deviations_of("seq=1x4 dim=64 q.fill=constant(0.1) k.fill=constant(0.1) sinks")[0], kInfinity);
  EXPECT_EQ(deviations_of("seq=1x64 dim=8 fill=denormal")[0], kInfinity);
  EXPECT_EQ(deviations_of("seq=1x65536 dim=1 q.fill=uniform scale=0.001")[0], kInfinity);  // weights that round alike
  EXPECT_TRUE(std::isfinite(deviations_of("seq=1x65536 dim=1 q.fill=constant(1)")[0]));
  EXPECT_EQ(deviations_of("seq=1x64 dim=8 mask=bool:11QK:none")[0], kInfinity);
  EXPECT_EQ(deviations_of("seq=1x64 dim=8 scale=100000")[0], kInfinity);  // scores too coarse for exp to be linear
}

TEST(Deviation, GrowsWithWhatIsDeclared) {
  const double plain = deviations_of("seq=1x64 dim=8")[0];
  const auto with = [](auto change) {
    Arithmetic a;
    change(a);
    return deviations_of("seq=1x64 dim=8", a)[0];
  };
  EXPECT_GT(with([](Arithmetic& a) { a.exp_ulps = 100; }), 10 * plain);
  EXPECT_GT(with([](Arithmetic& a) { a.stored_weights = DType::bf16; }), 1000 * plain);
  EXPECT_GT(with([](Arithmetic& a) { a.division = Division::opencl_reciprocal; }), plain);
  EXPECT_GT(with([](Arithmetic& a) { a.key_block = 8; }), plain);
  EXPECT_LT(with([](Arithmetic& a) { a.accumulator = a.stored_weights = a.stored_scores = DType::f64; }), plain);
}

TEST(Deviation, StoredScoresLoseWhatUnderflows) {
  // Scores near 1e-6 are subnormal in f16: what is lost of them is 2^-25, and of f32's relative roundoff nothing is
  // seen.
  Arithmetic a;
  a.stored_scores = DType::f16;
  a.score_stores = 1;
  const std::string line = "dtype=f64 seq=1x64 dim=8 scale=1e-6";
  Arithmetic wide = a;
  wide.accumulator = wide.stored_weights = DType::f64;
  EXPECT_GT(deviations_of(line, wide)[0], 0x1p-25 / 64);
}

TEST(Deviation, TermsThatASumSwallowsCountInFull) {
  // The sink takes all of the weight; the keys have a hundred-millionth each, too little for the last bit of the sum.
  const std::string line = "seq=1x64 dim=8/1 sinks=20";
  const Row row = Computed(line).row(0);
  const double all = std::accumulate(row.weights.begin(), row.weights.end(), 0.0);
  ASSERT_LT(all, 1e-6);
  EXPECT_GE(kSuspectDeviations * deviations_of(line)[0], all * std::fabs(row.output[0]));
}

TEST(Waivers, ASuspectThatIsListedIsNoFailure) {
  Verdict v;
  v.backend = "example";
  v.case_line = "seq=8 dim=4 fill=constant(1)";
  v.status = Status::suspect;
  EXPECT_TRUE(is_failure(v));
  apply_waiver(v, {{"seq=9 *", "another case"}});
  EXPECT_TRUE(is_failure(v));
  apply_waiver(v, {{"* fill=constant(*", "equal terms round alike"}});
  EXPECT_EQ(v.waiver, "equal terms round alike");
  EXPECT_FALSE(is_failure(v));
  v.waiver.clear();
  v.status = Status::fail;  // a result outside its bound can't be waived
  apply_waiver(v, {{"*", "never mind"}});
  EXPECT_TRUE(is_failure(v));
}

}  // namespace
}  // namespace attest
