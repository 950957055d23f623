// Merges as an operator: closed forms, the same row from the parts of its keys, and where elements of parts lie.
#include "reference/merge/merge_operator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/cases/inputs.h"
#include "reference/arithmetic/rounding.h"
#include "reference/options/case_line.h"
#include "reference/softmax/attention.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Parts of one head, given as lists: of part x and row i.
struct Parts {
  std::vector<double> o, lse;
  Inputs views(const Call& p) const {
    const Index4 n = {p.parts * p.batch, p.query_heads, p.query_length, p.value_dim};
    Inputs inputs;
    inputs.set(TensorId::part_o, {o.data(), DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
    inputs.set(TensorId::part_lse, {lse.data(), DType::f64, {n[0], n[1], n[2], 1}, {n[1] * n[2], n[2], 1, 1}});
    return inputs;
  }
};

std::vector<ResultValues> merged(const std::string& line, const Parts& parts) {
  const Problem p = parse_case(line);
  return reference_rows(p, parts.views(p));
}

TEST(MergeOperator, OfEqualPartsIsTheirMean) {
  const Parts two{{1, 10, 3, 20}, {5, 5}};  // part 0, part 1
  const std::vector<ResultValues> natural = merged("op=merge dtype=f64 seq=1 dim=2 out=o,lse", two);
  EXPECT_EQ(natural[0].of(TensorId::out), (std::vector<double>{2, 15}));
  EXPECT_DOUBLE_EQ(natural[0].of(TensorId::lse)[0], 5 + std::log(2.0));
  EXPECT_DOUBLE_EQ(merged("op=merge dtype=f64 seq=1 dim=2 base=2 out=o,lse", two)[0].of(TensorId::lse)[0], 6);
}

TEST(MergeOperator, WeighsPartsByTheirLogsumexp) {
  const Parts three{{8, 4, -100}, {std::log(3.0), 0, -1000}};
  const ResultValues row = merged("op=merge dtype=f64 seq=1 dim=1 parts=3 out=o,lse", three)[0];
  EXPECT_NEAR(row.of(TensorId::out)[0], 7, 1e-14);
  EXPECT_NEAR(row.of(TensorId::lse)[0], std::log(4.0), 1e-14);
}

/// Part x of batch b is number x * batch + b.
TEST(MergeOperator, FindsThePartsOfEachBatch) {
  const Parts two{{1, 100, 3, 300}, {0, 0, 0, 0}};  // part 0 of batches 0 and 1, then part 1
  const std::vector<ResultValues> rows = merged("op=merge dtype=f64 batch=2 seq=1 dim=1", two);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].of(TensorId::out)[0], 2);
  EXPECT_EQ(rows[1].of(TensorId::out)[0], 200);
}

/// Attention over all keys is the merge of that over the first keys and that over the others.
TEST(MergeOperator, GivesAttentionOverAllKeys) {
  const Problem p = parse_case("dtype=f64 seq=6x9 dim=4 out=o,lse");
  const CaseInputs inputs = make_inputs(p);
  const std::vector<ResultValues> whole = reference_rows(p, inputs.views());
  Call masked = p;
  masked.mask = MaskSpec{true, {false, false, false, true}};
  Inputs views = inputs.views();
  std::vector<double> mask(9, 0);
  Parts parts;
  for (const bool first : {true, false}) {
    for (std::size_t j = 0; j < 9; ++j) mask[j] = (j < 4) == first ? 0 : -kInfinity;
    views.set(TensorId::mask, {mask.data(), DType::f64, {1, 1, 6, 9}, {0, 0, 0, 1}});
    for (const ResultValues& row : reference_rows(masked, views)) {
      parts.o.insert(parts.o.end(), row.of(TensorId::out).begin(), row.of(TensorId::out).end());
      parts.lse.push_back(row.of(TensorId::lse)[0]);
    }
  }
  const auto again = merged("op=merge dtype=f64 seq=6 dim=4 out=o,lse", parts);
  ASSERT_EQ(again.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(again[i].of(TensorId::lse)[0], whole[i].of(TensorId::lse)[0], 1e-13);
    for (std::size_t c = 0; c < 4; ++c)
      EXPECT_NEAR(again[i].of(TensorId::out)[c], whole[i].of(TensorId::out)[c], 1e-13);
  }
}

/// A result in 16 bits is rounded once more; a row of nothing is exactly 0 and -inf.
TEST(MergeOperator, BoundsWhatIsStored) {
  const Problem p = parse_case("op=merge dtype=bf16 seq=2 dim=1 out=o,lse");
  const Parts parts{{1, 1, 1, 1}, {0, -kInfinity, 0, -kInfinity}};
  const Inputs views = parts.views(p);
  Producer narrow, wide;
  wide.stored = DType::f32;
  const auto head = operator_of(p).head(p, views, 0, 0, {narrow, wide});
  ResultValues row, bound;
  head->attend(0, row);
  head->bound(0, bound);
  EXPECT_NEAR(bound.of(TensorId::out)[0], unit_roundoff(DType::bf16), 1e-5);
  EXPECT_LT(bound.of(TensorId::lse)[0], 1e-6) << "in the accumulator's type";
  head->bound(1, bound);
  EXPECT_LT(bound.of(TensorId::out)[0], 1e-6);
  head->attend(1, row);
  head->bound(0, bound);
  EXPECT_EQ(row.of(TensorId::out)[0], 0);
  EXPECT_EQ(row.of(TensorId::lse)[0], -kInfinity);
  EXPECT_EQ(bound.of(TensorId::out)[0], 0);
  EXPECT_EQ(bound.of(TensorId::lse)[0], 0);
  EXPECT_TRUE(head->deviations(TensorId::out, std::vector<std::int64_t>{0}).empty());
}

}  // namespace
}  // namespace attest
