// Rows of q and k that linear attention divides by their lengths: values by hand, lines and files, and the bound.
#include <cmath>

#include "backends/refusal.h"
#include "backends/registry.h"
#include "harness/backends/set/backend_set.h"
#include "harness/cases/case_file.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/plan_execution.h"
#include "reference/linear/linear_attention.h"
#include "reference/linear/linear_chunk.h"
#include "reference/linear/linear_rows.h"
#include "reference/operators/operator.h"
#include "tests/unit/complaint.h"
#include "tests/unit/file_writer.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

ConstTensor dense(const std::vector<double>& values, const Index4& n) {
  return {values.data(), DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}};
}

/// o of two tokens with one value each: the rows' squares and eps = 1 add up to 4, 9 and 9 in q and 9, 1 in k.
std::vector<double> of_two_tokens(const std::string& options) {
  const std::vector<double> q = {1, 1, 1, 2, 2, 0}, k = {2, 2, 0, 0, 0, 0}, v = {6, 5}, beta = {0.5, 1};
  const Problem p = parse_case(options + " dtype=f64 seq=2 dim=3/1");
  Inputs inputs;
  inputs.set(TensorId::q, dense(q, {1, 1, 2, 3}));
  inputs.set(TensorId::k, dense(k, {1, 1, 2, 3}));
  inputs.set(TensorId::v, dense(v, {1, 1, 2, 1}));
  inputs.set(TensorId::beta, dense(beta, {1, 1, 2, 1}));
  std::vector<double> values;
  for (const ResultValues& row : reference_rows(p, inputs)) values.push_back(row.of(TensorId::out)[0]);
  return values;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t n = 0; n < got.size(); ++n) EXPECT_NEAR(got[n], wanted[n], 1e-14) << n;
}

TEST(LinearNorm, DividesByTheRootOfSumAndEps) {
  // The first key is (2/3, 2/3, 0), the second 0: the state stays (4, 4, 0).
  expect_near(of_two_tokens("op=linear scale=1 l2norm=1"), {0.5 * 4 + 0.5 * 4, 2 * 4 * 2.0 / 3});
  // Before the scale, whatever it is.
  expect_near(of_two_tokens("op=linear scale=-3 l2norm=1"), {-3 * 4.0, -3 * 16.0 / 3});
  // beta = 1/2 writes half of the value.
  expect_near(of_two_tokens("op=delta scale=1 l2norm=1"), {2, 8.0 / 3});
  expect_near(of_two_tokens("op=linear scale=1"), {4 * 6, 8 * 6});
}

TEST(LinearNorm, OfARowOfZerosIsZero) {
  for (const char* line :
       {"op=linear seq=2 dim=3 l2norm q.fill=constant(0)", "op=delta seq=2 dim=3 l2norm fill=constant(0)"}) {
    const Problem p = parse_case(line);
    const CaseInputs inputs = make_inputs(p);
    for (const ResultValues& row : reference_rows(p, inputs.views())) {
      for (const double o : row.of(TensorId::out)) EXPECT_EQ(o, 0) << line;
    }
  }
}

TEST(LinearNorm, IsAFlagWithANumber) {
  EXPECT_EQ(parse_case("op=linear seq=2 dim=2 l2norm").call.l2norm, 1e-6);
  EXPECT_EQ(print_case(parse_case("op=linear seq=2 dim=2 l2norm")), "op=linear seq=2 dim=2 l2norm=1e-06");
  EXPECT_EQ(print_case(parse_case("op=linear seq=2 dim=2 l2norm=0.25")), "op=linear seq=2 dim=2 l2norm=0.25");
  const auto complaint_of = [](const std::string& line) { return complaint<CaseError>([&] { parse_case(line); }); };
  EXPECT_NE(complaint_of("op=linear seq=2 dim=2 l2norm=0").find("eps of l2norm must lie in"), std::string::npos);
  EXPECT_NE(complaint_of("op=linear seq=2 dim=2 l2norm=2").find("eps of l2norm must lie in"), std::string::npos);
  EXPECT_NE(complaint_of("seq=2 dim=2 l2norm").find("softmax attention has no l2norm"), std::string::npos);
  const std::string undefined = complaint_of("op=delta pass=both seq=2 dim=2 l2norm");
  EXPECT_NE(undefined.find("l2norm: gradients through it are not defined yet; leave it out"), std::string::npos)
      << undefined;
}

TEST(LinearNorm, ComesWithAFile) {
  const auto file_with = [](const std::string& options) {
    FileWriter file;
    for (const char* name : {"q", "k", "v"}) file.add(name, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
    file.metadata("options", options);
    return case_from_file(file.write());
  };
  EXPECT_EQ(file_with("op=linear l2norm=0.001").problem.call.l2norm, 0.001);
  EXPECT_EQ(file_with("op=linear").problem.call.l2norm, std::nullopt);
}

TEST(LinearNorm, IsComputedByWhoTakesIt) {
  const BackendSet backends(registered_backends(), {}, {2, ""});
  int computed = 0;
  for (const std::string op : {"linear", "gated", "delta", "gated_delta"}) {
    const std::string line =
        "op=" + op + " batch=2 heads=4 qk_heads=2 seq=9 dim=7/3 l2norm=0.5 lengths=9,4 state out=o,present";
    for (Backend* backend : backends.all()) {
      if (refusal_of(*backend, parse_case(line))) continue;
      EXPECT_EQ(check(*backend, line).status, Status::pass) << backend->identity().name << ' ' << line;
      ++computed;
    }
  }
  EXPECT_GE(computed, 4);
}

/// error/bound of o of `example`, the largest of many seeds.
double largest_share(const std::string& line) {
  const BackendSet set(registered_backends(), {"example"}, {1, ""});
  Backend& example = *set.all().front();
  double largest = 0;
  for (int seed = 0; seed < 200; ++seed) {
    const Problem p = parse_case(line + " seed=" + std::to_string(seed));
    const CaseInputs inputs = make_inputs(p);
    const Producer producer{example.arithmetic(p), {}};
    const Expectation expected = expect(p, inputs.views(), {producer}, 1, kInfinity);
    GuardedOutputs outputs(p);
    walk_once(example, p, inputs.views(), outputs);
    const double got = outputs.out(0, 0, p.call.query_length - 1, 0);
    const auto last = static_cast<std::size_t>(p.call.query_length - 1);
    largest = std::max(largest, std::fabs(got - expected.of(TensorId::out)[last]) /
                                    expected.bounds_for(producer).of(TensorId::out)[last]);
  }
  return largest;
}

TEST(LinearNormBound, HoldsAndIsReached) {
  for (const char* line : {"op=linear seq=1 dim=2/1 l2norm", "op=gated_delta seq=3 dim=2/1 l2norm=0.1",
                           "op=delta seq=3 dim=3/1 l2norm k.fill=constant(0.001)"}) {
    const double share = largest_share(line);
    EXPECT_LE(share, 1) << line;
    EXPECT_GE(share, 0.02) << line;
  }
}

/// Rows of q or k as the call normalises them, each element off by all that f32 may cost it: to the side that `side`
/// says of row and element.
template <class Side>
std::vector<double> rows_off(const Call& p, const ConstTensor& t, const Side& side) {
  std::vector<double> rows, row;
  for (std::int64_t l = 0; l < t.shape[2]; ++l) {
    const double root = read_linear_row(p, t, 0, 0, l, row);
    const std::vector<double> error = linear_row_error(p, row, root, AccumulatorLimits{Arithmetic{}});
    for (std::size_t d = 0; d < row.size(); ++d) rows.push_back(row[d] + side(l, d) * error[d]);
  }
  return rows;
}

TEST(LinearNormBound, HoldsForRowsThatAreAsFarOffAsTheyMayBe) {
  for (const std::string op : {"linear", "gated", "delta", "gated_delta"}) {
    const std::string line = "op=" + op + " dtype=f64 seq=6 dim=4/3 seed=2";
    const Problem normalised = parse_case(line + " l2norm=0.01"), plain = parse_case(line);
    const CaseInputs inputs = make_inputs(normalised);
    const Producer in_f32{Arithmetic{}, {}};
    const Expectation expected = expect(normalised, inputs.views(), {in_f32}, 1, kInfinity);
    const std::vector<double>& bounds = expected.bounds_for(in_f32).of(TensorId::out);
    const auto share_of = [&](const auto& side) {
      Inputs moved = inputs.views();
      const std::vector<double> q = rows_off(normalised, moved.q(), side), k = rows_off(normalised, moved.k(), side);
      moved.set(TensorId::q, dense(q, {1, 1, 6, 4}));
      moved.set(TensorId::k, dense(k, {1, 1, 6, 4}));
      double largest = 0;
      std::size_t n = 0;
      for (const ResultValues& row : reference_rows(plain, moved)) {
        for (const double o : row.of(TensorId::out)) {
          largest = std::max(largest, std::fabs(o - expected.of(TensorId::out)[n]) / bounds[n]);
          ++n;
        }
      }
      return largest;
    };
    const double longer = share_of([](auto, auto) { return 1.0; });
    const double mixed =
        share_of([](auto l, auto d) { return (static_cast<std::size_t>(l) * 7 + d * 3) % 4 < 2 ? 1.0 : -1.0; });
    EXPECT_LE(longer, 1) << op;
    EXPECT_LE(mixed, 1) << op;
    EXPECT_GE(std::max(longer, mixed), 0.4) << op;
  }
}

TEST(LinearNormBound, CountsWhatAKeyReadsFromTheState) {
  const Problem p = parse_case("op=delta dtype=f64 seq=1 dim=4/1 state l2norm=0.01 seed=3");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  LinearState state(p, views, 0, 0, {Arithmetic{}});
  state.step();
  const std::vector<double> off =
      linear_row_error(p, state.token().key, state.token().root, AccumulatorLimits{Arithmetic{}});
  double moved = 0;
  for (std::int64_t d = 0; d < 4; ++d) {
    const double held = load(views.state().data, views.state().dtype, views.state().offset(0, 0, d, 0));
    moved += off[static_cast<std::size_t>(d)] * std::fabs(held);
  }
  EXPECT_GE(state.error(0).difference[0], moved);
  EXPECT_LE(state.error(0).difference[0], 2 * moved);
}

TEST(LinearNormBound, IsWorthTheRoundingsOfTheNorm) {
  const Problem p = parse_case("op=linear seq=1 dim=3 l2norm=1");
  const AccumulatorLimits limits{Arithmetic{}};
  const std::vector<double> row = {2.0 / 3, 2.0 / 3, 0};
  const std::vector<double> error = linear_row_error(p, row, 3, limits);
  // Half of 5 roundings of the sum of squares, and 12 of root and division.
  EXPECT_NEAR(error[0], 2.0 / 3 * 14.5 * 0x1p-24, 1e-12);
  EXPECT_GT(error[2], 0) << "underflow";
  EXPECT_LT(error[2], 1e-44);
  EXPECT_EQ(linear_row_error(parse_case("op=linear seq=1 dim=3"), row, 1, limits), (std::vector<double>{0, 0, 0}));
}

TEST(LinearNormBound, SquaresThatOverflowProveNothing) {
  for (const char* line :
       {"op=linear seq=2 dim=2 l2norm k.fill=constant(1e20)", "op=linear seq=2 dim=2 l2norm q.fill=constant(1e20)"}) {
    const Problem p = parse_case(line);
    const CaseInputs inputs = make_inputs(p);
    const Producer in_f32{Arithmetic{}, {}};
    const Expectation expected = expect(p, inputs.views(), {in_f32}, 1, kInfinity);
    EXPECT_TRUE(std::isfinite(expected.of(TensorId::out)[0])) << line;
    EXPECT_EQ(expected.bounds_for(in_f32).of(TensorId::out)[0], kInfinity) << line;
  }
}

TEST(LinearNormBound, OfChunksTakesErrorsOfKeysAndQueries) {
  Arithmetic a;
  a.state_chunk = 4;
  LinearChunk chunk(1, 1);
  chunk.begin({0.0}, {0.0});
  // A key of 1 +- 1/8 decays by a half: exp(-G) makes up for it, and exp(G) takes it back.
  chunk.add({1.125}, {2.0}, {std::log(0.5)}, {0.125});
  EXPECT_NEAR(chunk.state_bound(a)[0], 0.25, 1e-4);
  EXPECT_NEAR(chunk.read_bound(a, {4.0}, 1)[0], 1, 1e-4);
  // A query of 4 +- 1 reads up to 2.25, which is off by 0.25.
  EXPECT_NEAR(chunk.read_bound(a, {5.0}, 1, {1.0})[0], 5 * 0.25 + 2.25, 1e-4);
}

}  // namespace
}  // namespace attest
