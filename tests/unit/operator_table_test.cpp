// What operators give: results and their bounds, tensors, work.
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

#include "harness/cases/inputs.h"
#include "reference/call/tensor_table.h"
#include "reference/operators/operator.h"
#include "reference/options/case_line.h"
#include "reference/softmax/softmax_operator.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

Producer producer(DType accumulator) {
  Arithmetic arithmetic;
  arithmetic.accumulator = arithmetic.stored_weights = accumulator;
  return {arithmetic, DType::f64};
}

Problem small(Op op, const std::string& more) {
  return parse_case("op=" + std::string(name_of(op)) + " dtype=f64 seq=6 " +
                    (traits_of(op).parts ? "heads=2 dim=2 " : "heads=2/1 dim=3/2 ") + more);
}

TEST(Operators, RowsOfSoftmaxAreThoseOfAttention) {
  const Problem p = parse_case(
      "dtype=f64 batch=2 heads=4/2 seq=3x5 dim=4 causal align=bottom-right softcap=3 out=o,weights,raw,biased");
  const CaseInputs inputs = make_inputs(p);
  const std::vector<ResultValues> rows = reference_rows(p, inputs.views());
  const Attention expected = attention(p, inputs.views());
  ASSERT_EQ(rows.size(), 2u * 4 * 3);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    EXPECT_EQ(rows[n].of(TensorId::out), expected.rows[n].output);
    EXPECT_EQ(rows[n].of(TensorId::lse), std::vector{expected.rows[n].lse});
    EXPECT_EQ(rows[n].of(TensorId::weights), expected.rows[n].weights);
    EXPECT_EQ(rows[n].of(TensorId::raw), expected.rows[n].raw);
    EXPECT_TRUE(rows[n].of(TensorId::capped).empty()) << "not asked for";
    for (std::size_t j = 0; j < 5; ++j)
      EXPECT_EQ(rows[n].of(TensorId::biased)[j] == -kInfinity, !expected.rows[n].seen[j]);
  }
}

TEST(Operators, AResultMayBeRoundedOtherwise) {
  const Producer plain = producer(DType::f32);
  Producer other = plain;
  Arithmetic of_lse = plain.arithmetic, of_state = plain.arithmetic;
  of_lse.log_ulps = 1000;
  of_state.accumulator = DType::f64;
  other.arithmetic.of_results = {{TensorId::lse, of_lse}, {TensorId::present_state, of_state}};
  const Problem p = parse_case("seq=3x9 dim=4 out=o,lse,weights");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const auto head = operator_of(p).head(p, views, 0, 0, {plain, other});
  ResultValues row, usual, own;
  for (std::int64_t i = 0; i < 3; ++i) {
    head->attend(i, row);
    head->bound(0, usual);
    head->bound(1, own);
    EXPECT_GT(own.of(TensorId::lse)[0], 50 * usual.of(TensorId::lse)[0]);
    EXPECT_EQ(own.of(TensorId::out), usual.of(TensorId::out));
    EXPECT_EQ(own.of(TensorId::weights), usual.of(TensorId::weights));
  }
  const Problem linear = parse_case("op=linear seq=6 dim=2 out=o,present");
  const CaseInputs tokens = make_inputs(linear);
  const TensorId state = TensorId::present_state;
  const WholeResults whole = operator_of(linear).whole(linear, tokens.views(), {state}, {plain, other}, {});
  for (std::size_t n = 0; n < whole.values.of(state).size(); ++n)
    EXPECT_LT(whole.bounds[1].of(state)[n], whole.bounds[0].of(state)[n] / 1000);
}

/// All that an operator can give comes with a bound for each producer, in the shape that the table of tensors says.
TEST(Operators, GiveEveryResultOfTheirsWithItsBounds) {
  for (const Op op : values_of<Op>()) {
    for (const Output output : values_of<Output>()) {
      const std::vector<Output> given = outputs_of(op);
      const bool gives = std::find(given.begin(), given.end(), output) != given.end();
      const std::string options = !is_gradient(output)   ? ""
                                  : traits_of(op).scores ? "pass=backward mask=add:BHQK:normal sinks "
                                                         : "pass=backward state dpresent ";
      const std::string line = options + "out=" + std::string(name_of(output));
      if (!gives) {
        EXPECT_THROW(small(op, line), CaseError) << name_of(op) << " " << line;
        continue;
      }
      const Problem p = small(op, line);
      const CaseInputs inputs = make_inputs(p);
      const Inputs views = inputs.views();
      const std::vector<Producer> producers = {producer(DType::f32), producer(DType::f64)};
      std::size_t found = 0;
      for (const TensorId id : outputs_of(p)) {
        if (row_of(id).result != output) continue;
        ++found;
        const Index4 n = seen_shape(p, id);
        if (index_space(id) != IndexSpace::query_rows) {
          const WholeResults whole = operator_of(p).whole(p, views, {id}, producers, {});
          EXPECT_EQ(whole.values.of(id).size(), static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3])) << name_of(id);
          ASSERT_EQ(whole.bounds.size(), 2u);
          for (std::size_t at = 0; at < whole.values.of(id).size(); ++at)
            EXPECT_EQ(whole.bounds[0].of(id)[at] > whole.bounds[1].of(id)[at], !is_copied(id)) << name_of(id);
          continue;
        }
        const auto head = operator_of(p).head(p, views, 0, 1, producers);
        ResultValues row, coarse, fine;
        for (std::int64_t i = 0; i < 6; ++i) {
          head->attend(i, row);
          head->bound(0, coarse);
          head->bound(1, fine);
          ASSERT_EQ(row.of(id).size(), static_cast<std::size_t>(n[3])) << name_of(op) << " " << name_of(id);
          for (std::size_t c = 0; c < row.of(id).size(); ++c) {
            EXPECT_GT(coarse.of(id)[c], fine.of(id)[c]) << name_of(op) << " " << name_of(id);
            EXPECT_GT(fine.of(id)[c], 0) << name_of(op) << " " << name_of(id);
          }
          const std::int64_t columns[] = {1};
          const auto deviations = head->deviations(id, columns);
          if (deviations.empty()) continue;  // none are claimed
          ASSERT_EQ(deviations.size(), 2u);  // a list for each producer
          EXPECT_EQ(deviations[0].size(), 1u);
        }
      }
      EXPECT_GT(found, 0u) << name_of(op) << " " << line;
    }
  }
}

TEST(Operators, LinearAttentionClaimsNoDeviation) {
  const Problem p = parse_case("op=linear seq=4 dim=2");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const auto head = operator_of(p).head(p, views, 0, 0, {producer(DType::f32)});
  ResultValues row;
  head->attend(0, row);
  EXPECT_TRUE(row.of(TensorId::lse).empty());
  const std::int64_t columns[] = {0, 1};
  EXPECT_TRUE(head->deviations(TensorId::out, columns).empty());
}

std::map<std::string, Index4> stored_shapes(const std::string& line) {
  std::map<std::string, Index4> shapes;
  const Problem p = parse_case(line);
  for (const TensorId id : inputs_of(p)) {
    if (row_of(id).drawn) shapes[std::string(row_of(id).name)] = stored_shape(p, id);
  }
  return shapes;
}

TEST(Operators, AreThoseOfTheRule) {
  const std::string sizes = " batch=2 heads=4/2 seq=5 dim=6/3";
  EXPECT_TRUE(stored_shapes("op=attention" + sizes).empty());
  EXPECT_TRUE(stored_shapes("op=linear" + sizes).empty());
  using Shapes = std::map<std::string, Index4>;
  EXPECT_EQ(stored_shapes("op=gated" + sizes), (Shapes{{"decay", {2, 2, 5, 6}}}));
  EXPECT_EQ(stored_shapes("op=delta" + sizes), (Shapes{{"beta", {2, 2, 5, 1}}}));
  EXPECT_EQ(stored_shapes("op=gated_delta decay=head beta=one" + sizes),
            (Shapes{{"decay", {2, 2, 5, 1}}, {"beta", {2, 1, 5, 1}}}));
  EXPECT_EQ(stored_shapes("op=linear state" + sizes).size(), 1u);
  EXPECT_EQ(stored_shapes("op=merge batch=2 heads=4 seq=5 dim=6 parts=3"),
            (Shapes{{"part_o", {6, 4, 5, 6}}, {"part_lse", {6, 4, 5, 1}}}));
  const Problem p = parse_case("op=gated_delta decay=head beta=one" + sizes);
  for (const TensorId id : inputs_of(p)) {
    const Index4 stored = stored_shape(p, id), seen = seen_shape(p, id);
    for (std::size_t axis = 0; axis < 4; ++axis) {
      EXPECT_TRUE(stored[axis] == seen[axis] || stored[axis] == 1) << name_of(id);
    }
  }
}

TEST(Operators, NoTwoTensorsHaveOneName) {
  std::map<std::string, int> names;
  for (const TensorRow& row : tensor_rows()) ++names[std::string(row.name)];
  for (const auto& [name, count] : names) EXPECT_EQ(count, 1) << name;
  for (const char* name : {"q", "decay", "beta", "past_state", "o"}) EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Operators, KeysOfTheDeltaRulesHaveAboutUnitLength) {
  const auto divisor = [](const char* line) {
    const Problem p = parse_case(line);
    return operator_of(p).key_divisor(p);
  };
  EXPECT_EQ(divisor("op=attention seq=4 dim=64"), 1);
  EXPECT_EQ(divisor("op=gated seq=4 dim=64"), 1);
  EXPECT_EQ(divisor("op=delta seq=4 dim=64"), 8);
}

/// Cached keys stand in front of the new ones, bit for bit and without a bound.
TEST(Operators, PresentIsPastAndNew) {
  const Problem p = parse_case("heads=2/1 seq=2x5 dim=3/2 past=3 causal out=o,present");
  const CaseInputs inputs = make_inputs(p);
  const WholeResults whole =
      operator_of(p).whole(p, inputs.views(), {TensorId::present_k}, {{Arithmetic{}, DType::f32}}, {});
  const std::vector<double>& keys = whole.values.of(TensorId::present_k);
  ASSERT_EQ(keys.size(), 5u * 3);
  const ConstTensor past = inputs.at(TensorId::past_k).view(), fresh = inputs.at(TensorId::k).view();
  EXPECT_EQ(keys[2 * 3 + 1], load(past.data, past.dtype, past.offset(0, 0, 2, 1)));
  EXPECT_EQ(keys[3 * 3 + 1], load(fresh.data, fresh.dtype, fresh.offset(0, 0, 0, 1)));
  for (const double bound : whole.bounds.at(0).of(TensorId::present_k)) EXPECT_EQ(bound, 0);
  EXPECT_FALSE(has_tensor(parse_case("seq=2 dim=3"), TensorId::present_k));
  const Problem linear = parse_case("op=linear heads=2 seq=2 dim=3/4 out=present");
  EXPECT_FALSE(has_tensor(linear, TensorId::present_k));
  EXPECT_TRUE(has_tensor(linear, TensorId::present_state));
  EXPECT_EQ(seen_shape(linear, TensorId::present_state), (Index4{1, 2, 3, 4}));
}

TEST(VisiblePairs, AgreeWithTheDefinition) {
  for (const char* line : {"heads=2 seq=9x13 dim=2 causal align=bottom-right",
                           "seq=13x9 dim=2 causal align=bottom-right", "seq=33x1 dim=8 align=bottom-right window=1:7",
                           "seq=20 dim=2 window=3:2", "seq=9 dim=2 mask=bool:11QK:random(0.5)"}) {
    const Computed c(line);
    double pairs = 0;
    for (const Row& row : c.attention.rows) pairs += static_cast<double>(row.visible_count);
    EXPECT_EQ(count_visible_pairs(c.problem, c.inputs.views()), pairs) << line;
  }
}

TEST(Work, OfDensePairsIsCountedWhole) {
  EXPECT_EQ(dense_multiply_adds(parse_case("batch=2 heads=4/2 seq=3x5 dim=6/7")), 2.0 * 4 * 3 * 5 * (6 + 7));
}

/// A benchmark counts what was asked for: pairs that nobody sees are none of it.
TEST(Work, ThatIsUsefulIsThatOfVisiblePairs) {
  const Computed whole("heads=2 seq=8 dim=16"), causal("heads=2 seq=8 dim=16 causal");
  const double all = operator_of(whole.problem).useful_operations(whole.problem, whole.inputs.views());
  EXPECT_EQ(all, 2 * dense_multiply_adds(whole.problem));  // a multiplication and an addition
  EXPECT_EQ(operator_of(causal.problem).useful_operations(causal.problem, causal.inputs.views()), all * 36 / 64);
}

TEST(Work, OfARowGrowsWithItsKeys) {
  const auto row_operations = [](const char* line) {
    const Problem p = parse_case(line);
    return operator_of(p).row_operations(p);
  };
  EXPECT_GT(row_operations("seq=1x200 dim=8"), 1.9 * row_operations("seq=1x100 dim=8"));
  EXPECT_GT(row_operations("op=delta seq=4 dim=8"), 0);
}

}  // namespace
}  // namespace attest
