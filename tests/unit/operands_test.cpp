// Queries and keys that are normalised, rotated and scaled: what the reference makes of them, and their bounds.
#include "reference/softmax/operands.h"

#include <cmath>
#include <numbers>

#include "backends/registry.h"
#include "harness/backends/set/backend_set.h"
#include "harness/cases/case_file.h"
#include "harness/cases/rotation_tables.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/plan_execution.h"
#include "tests/unit/complaint.h"
#include "tests/unit/file_writer.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(RotationTables, HoldCosinesAndSines) {
  const RotationTables tables(10000, 8);
  for (const std::int64_t position : {0, 1, 2, 1000, 32768, 1000000}) {
    for (std::int64_t pair = 0; pair < 4; ++pair) {
      const double angle = static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(pair) / 8);
      EXPECT_NEAR(tables.cos(position, pair), std::cos(angle), 1e-15 * (10 + 4 * angle)) << position << " " << pair;
      EXPECT_NEAR(tables.sin(position, pair), std::sin(angle), 1e-15 * (10 + 4 * angle)) << position << " " << pair;
    }
  }
}

/// Scores of one head, row after row.
std::vector<double> raw_of(const Call& call, const Inputs& inputs) {
  std::vector<double> raw;
  for (const Row& row : attention(call, inputs).rows) raw.insert(raw.end(), row.raw.begin(), row.raw.end());
  return raw;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t n = 0; n < a.size(); ++n) EXPECT_NEAR(a[n], b[n], 1e-12) << n;
}

TEST(Rope, DependsOnTheDistanceAlone) {
  const Computed near("dtype=f64 seq=4x4 dim=6 rope=halves");
  const Computed far("dtype=f64 seq=4x4 dim=6 rope=halves rope.positions=100");
  Inputs shifted = near.inputs.views();
  const std::int32_t positions[] = {40, 41, 42, 43};
  for (const TensorId id : {TensorId::cos, TensorId::sin}) shifted.set(id, far.inputs.views().at(id));
  for (const TensorId id : {TensorId::q_positions, TensorId::k_positions})
    shifted.set(id, {positions, DType::i32, {1, 1, 4, 1}, {4, 4, 1, 1}});
  expect_near(raw_of(near.problem, near.inputs.views()), raw_of(far.problem, shifted));
}

TEST(Rope, StylesDifferInTheOrderOfFeatures) {
  const Computed halves("dtype=f64 seq=3x5 dim=7 rope=halves:6"), other("dtype=f64 seq=3x5 dim=7 rope=interleaved:6");
  Inputs moved = other.inputs.views();
  std::vector<std::vector<double>> rows;
  for (const TensorId id : {TensorId::q, TensorId::k}) {
    const ConstTensor from = halves.inputs.views().at(id);
    std::vector<double>& to = rows.emplace_back();
    for (std::int64_t l = 0; l < from.shape[2]; ++l) {
      for (const std::int64_t d : {0, 3, 1, 4, 2, 5, 6})
        to.push_back(load(from.data, from.dtype, from.offset(0, 0, l, d)));
    }
  }
  for (std::size_t n = 0; n < 2; ++n) {
    const TensorId id = n == 0 ? TensorId::q : TensorId::k;
    const std::int64_t count = n == 0 ? 3 : 5;
    moved.set(id, {rows[n].data(), DType::f64, {1, 1, count, 7}, {count * 7, count * 7, 7, 1}});
  }
  expect_near(raw_of(halves.problem, halves.inputs.views()), raw_of(other.problem, moved));
}

TEST(Rope, OfCachedKeysThatWereRotatedIsTheSame) {
  const Computed plain("dtype=f64 seq=2x5 dim=4 past=3 rope=halves norm=0.001");
  const Problem rotated = parse_case("dtype=f64 seq=2x5 dim=4 past=3 rope=halves norm=0.001 rope.cache=rotated");
  Inputs inputs = plain.inputs.views();
  const ConstTensor past = inputs.past_k();
  std::vector<double> rows;
  for (std::int64_t j = 0; j < 3; ++j) {
    std::vector<double> row;
    for (std::int64_t d = 0; d < 4; ++d) row.push_back(load(past.data, past.dtype, past.offset(0, 0, j, d)));
    prepare_row(plain.problem, inputs, Operand::key, 0, j, row);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  inputs.set(TensorId::past_k, {rows.data(), DType::f64, {1, 1, 3, 4}, {12, 12, 4, 1}});
  EXPECT_EQ(raw_of(plain.problem, plain.inputs.views()), raw_of(rotated, inputs));
}

TEST(Rope, ALaterQueryStandsAtItsDiagonal) {
  const Problem p = parse_case("batch=2 seq=1x9 dim=2 align=bottom-right lengths=q:1,1/k:9,4 rope=halves");
  EXPECT_EQ(position_of(p, {}, Operand::query, 0, 0), 8);
  EXPECT_EQ(position_of(p, {}, Operand::query, 1, 0), 3);
  EXPECT_EQ(position_of(p, {}, Operand::key, 1, 3), 3);
}

TEST(Norm, MakesRowsOfMeanSquareOne) {
  const Computed c("dtype=f64 seq=3 dim=8 norm=1e-20");
  const ConstTensor weights = c.inputs.views().at(TensorId::q_norm);
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::vector<double> row = Head(c.problem, c.inputs.views(), 0, 0).query_row(i);
    double squares = 0;
    for (std::size_t t = 0; t < row.size(); ++t) {
      const double w = load(weights.data, weights.dtype, static_cast<std::int64_t>(t));
      squares += row[t] / w * row[t] / w;
    }
    EXPECT_NEAR(squares, 8, 1e-12);
  }
}

TEST(Scales, MultiplyTheScale) {
  const Computed plain("dtype=f64 heads=2 seq=3x4 dim=4"), scaled("dtype=f64 heads=2 seq=3x4 dim=4 scales=both");
  const ConstTensor heads = scaled.inputs.views().at(TensorId::head_scales),
                    queries = scaled.inputs.views().at(TensorId::query_scales);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t i = 0; i < 3; ++i) {
      const double factor = load(heads.data, heads.dtype, heads.offset(0, h, 0, 0)) *
                            load(queries.data, queries.dtype, queries.offset(0, 0, i, 0));
      const auto n = static_cast<std::size_t>(h * 3 + i);
      for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(scaled.row(n).raw[j], factor * plain.row(n).raw[j], 1e-14);
    }
  }
}

TEST(Softcap, BeforeTheScaleIsALargerOneBehindIt) {
  const Computed before("dtype=f64 seq=3x4 dim=4 scale=-0.5 softcap=3:unscaled"),
      behind("dtype=f64 seq=3x4 dim=4 scale=-0.5 softcap=1.5");
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(before.row(i).capped[j], behind.row(i).capped[j], 1e-15);
  }
  const Computed zero("seq=1x2 dim=4 scale=0 softcap=3:unscaled out=o,capped");
  EXPECT_EQ(zero.row(0).capped[0], 0);
}

/// error/bound of raw scores of `example`, the largest of many seeds.
double largest_share(const std::string& line) {
  const BackendSet set(registered_backends(), {"example"}, {1, ""});
  Backend& example = *set.all().front();
  double largest = 0;
  for (int seed = 0; seed < 200; ++seed) {
    const Problem p = parse_case(line + " scale=1 out=raw seed=" + std::to_string(seed));
    const CaseInputs inputs = make_inputs(p);
    const Producer producer{example.arithmetic(p), {}};
    const Expectation expected = expect(p, inputs.views(), {producer}, 1, kInfinity);
    GuardedOutputs outputs(p);
    walk_once(example, p, inputs.views(), outputs);
    const std::vector<double>& bounds = expected.bounds_for(producer).of(TensorId::raw);
    for (std::size_t n = 0; n < bounds.size(); ++n) {
      const double got = outputs.at(TensorId::raw, 0, 0, 0, static_cast<std::int64_t>(n));
      largest = std::max(largest, std::fabs(got - expected.of(TensorId::raw)[n]) / bounds[n]);
    }
  }
  return largest;
}

TEST(PreparedBound, HoldsAndIsReached) {
  for (const char* line : {"seq=1x3 dim=2 rope=halves rope.positions=4000 fill=uniform",
                           "seq=1x3 dim=4 rope=interleaved norm=1e-06:after rope.positions=4000",
                           "seq=1x3 dim=4 rope=halves norm=1e-06 rope.positions=4000"}) {
    const double share = largest_share(line);
    EXPECT_LE(share, 1) << line;
    EXPECT_GE(share, 0.02) << line;
  }
}

TEST(PreparedBound, NothingIsProvedBeyondTheRange) {
  const Computed c("seq=1x2 dim=4 norm=1e-06 q.fill=constant(1e20)");
  const Producer in_f32{Arithmetic{}, {}};
  const Expectation expected = expect(c.problem, c.inputs.views(), {in_f32}, 1, kInfinity);
  EXPECT_TRUE(std::isfinite(expected.of(TensorId::out)[0]));
  // Squares of such queries overflow in f32, and not in the reference.
  EXPECT_EQ(expected.bounds_for(in_f32).of(TensorId::out)[0], kInfinity);
}

/// q, k, v of one head with 2 queries, 3 keys and 4 features.
TEST(AppendedKeys, AreRotatedAndRoundedBeforeTheyAreRead) {
  const Problem p = parse_case("heads=2/1 seq=2x5 dim=4 k.dtype=bf16 append rope=halves rope.cache=rotated");
  const CaseInputs made = make_inputs(p);
  const Inputs inputs = made.views();
  const Head head(p, inputs, 0, 1);
  int unsure = 0;
  for (std::int64_t j = 3; j < 5; ++j) {
    std::vector<double> row;
    for (std::int64_t d = 0; d < 4; ++d)
      row.push_back(load(inputs.new_k().data, DType::f32, inputs.new_k().offset(0, 0, j - 3, d)));
    std::vector<double> turned(4);
    for (std::size_t r = 0; r < 2; ++r) {
      const double angle = static_cast<double>(j) * std::pow(10000.0, -static_cast<double>(r) / 2);
      turned[r] = row[r] * std::cos(angle) - row[r + 2] * std::sin(angle);
      turned[r + 2] = row[r] * std::sin(angle) + row[r + 2] * std::cos(angle);
    }
    for (std::size_t d = 0; d < 4; ++d) {
      EXPECT_EQ(head.key_row(j)[d], as_stored(DType::bf16, head.key_row(j)[d])) << "a number of the cache's type";
      EXPECT_NEAR(head.key_row(j)[d], turned[d], std::fabs(turned[d]) * 0x1p-8) << j << " " << d;
      unsure += head.key_cost(j).stored[d] > 0;
    }
  }
  EXPECT_LE(unsure, 1);  // few numbers lie near the middle between two of bf16
  EXPECT_EQ(head.key_row(0)[0], load(inputs.k().data, DType::bf16, inputs.k().offset(0, 0, 0, 0)))
      << "was rotated before";
}

TEST(AppendedKeys, HaveABoundWhereRoundingIsUnsure) {
  // A norm whose result lies in the middle between two numbers of bf16: 1 + 2^-8.
  const Problem p = parse_case("seq=1x1 dim=2 k.dtype=bf16 append rope=halves rope.cache=rotated");
  CaseInputs made = make_inputs(p);
  made.at(TensorId::new_k).set(0, 0, 0, 0, 1 + 0x1p-8);
  made.at(TensorId::new_k).set(0, 0, 0, 1, 1);
  const Expectation expected = expect(p, made.views(), {{Arithmetic{}, {}}}, 1);
  const std::vector<double>& bound = expected.bounds.front().of(TensorId::cache_k);
  EXPECT_GE(bound[0], 0x1p-7);  // the next number
  EXPECT_EQ(bound[1], 0);

  const Problem wide = parse_case("dtype=f64 seq=1x2 dim=2 k.dtype=f32 append rope=halves rope.cache=rotated");
  const CaseInputs wide_inputs = make_inputs(wide);
  const auto largest = [&](DType accumulator) {
    Arithmetic declared;
    declared.accumulator = accumulator;
    const Expectation found = expect(wide, wide_inputs.views(), {{declared, {}}}, 1);
    return std::ranges::max(found.bounds.front().of(TensorId::cache_k));
  };
  EXPECT_LT(largest(DType::f64), 0x1p-10);
  EXPECT_EQ(largest(DType::f32), kInfinity) << "its steps may move any component to another number";
}

FileWriter rotated(const std::string& options) {
  FileWriter file;
  const auto list = [](std::size_t count) {
    std::vector<float> numbers;
    for (std::size_t n = 0; n < count; ++n) numbers.push_back(static_cast<float>(n * 7 % 5) - 2);
    return numbers;
  };
  file.add("q", {2, 4}, list(8));
  file.add("k", {3, 4}, list(12));
  file.add("v", {3, 4}, list(12));
  file.metadata("options", options);
  return file;
}
const std::vector<float> kTable = {1, 1, 0.5f, 0.25f, 0, 1, -1, 0};  // 4 positions

TEST(FilesOfRope, HaveTablesAndPositions) {
  FileWriter file = rotated("rope=halves rope.positions=4");
  file.add("cos", {4, 2}, kTable).add("sin", {4, 2}, kTable);
  file.add("q_positions", {2}, std::vector<std::int32_t>{3, 0})
      .add("k_positions", {3}, std::vector<std::int32_t>{0, 1, 2});
  const Case source = case_from_file(file.write());
  const Call& call = source.problem.call;
  EXPECT_EQ(position_of(call, source.inputs->views(), Operand::query, 0, 0), 3);
  EXPECT_EQ(Head(call, source.inputs->views(), 0, 0).query_row(0), (std::vector<double>{4, 0, 0, 0}));
}

TEST(FilesOfRope, AreChecked) {
  const auto complaint_of = [](FileWriter file) { return complaint([&] { case_from_file(file.write()); }); };
  EXPECT_NE(complaint_of(rotated("rope=halves")).find("tensor \"cos\" is missing; the options need it"),
            std::string::npos);
  FileWriter short_table = rotated("rope=halves");
  short_table.add("cos", {2, 2}, std::vector<float>(4)).add("sin", {2, 2}, std::vector<float>(4));
  EXPECT_NE(complaint_of(short_table).find("cos [2,2]"), std::string::npos) << complaint_of(short_table);
  FileWriter beyond = rotated("rope=halves rope.positions=4");
  beyond.add("cos", {4, 2}, kTable).add("sin", {4, 2}, kTable);
  beyond.add("q_positions", {2}, std::vector<std::int32_t>{4, 0})
      .add("k_positions", {3}, std::vector<std::int32_t>{0, 1, 2});
  EXPECT_NE(complaint_of(beyond).find("q_positions[0] = 4 is out of range: rope.positions=4"), std::string::npos)
      << complaint_of(beyond);
  FileWriter no_weights = rotated("norm=1e-06");
  EXPECT_NE(complaint_of(no_weights).find("\"q_norm\" is missing"), std::string::npos);
  FileWriter infinite = rotated("scales=head");
  infinite.add("head_scales", {1}, std::vector<float>{std::numeric_limits<float>::infinity()});
  EXPECT_NE(complaint_of(infinite).find("finite numbers are wanted"), std::string::npos) << complaint_of(infinite);
}

}  // namespace
}  // namespace attest
