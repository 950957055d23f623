// The table of tensors: which operators have which, and how the elements of results are numbered.
#include "reference/call/tensor_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "reference/options/case_line.h"

namespace attest {
namespace {

TEST(TensorTable, ResultsAreNumberedByQueriesByKeysOrOtherwise) {
  for (const TensorId id : {TensorId::out, TensorId::lse, TensorId::raw, TensorId::weights})
    EXPECT_EQ(index_space(id), IndexSpace::query_rows) << name_of(id);
  EXPECT_EQ(index_space(TensorId::present_k), IndexSpace::key_rows);
  EXPECT_EQ(index_space(TensorId::present_v), IndexSpace::key_rows);
  for (const TensorId id : {TensorId::present_state, TensorId::ddecay, TensorId::dbeta, TensorId::dstate})
    EXPECT_EQ(index_space(id), IndexSpace::other) << name_of(id);
}

TEST(TensorTable, OperatorsGiveTheResultsOfTheirTensors) {
  std::vector<Output> of_scores = outputs_of(Op::attention);
  EXPECT_EQ(of_scores.size() + 3, values_of<Output>().size());
  for (const Output output : {Output::ddecay, Output::dbeta, Output::dstate})
    EXPECT_EQ(std::ranges::count(of_scores, output), 0) << name_of(output);
  EXPECT_EQ(outputs_of(Op::gated), (std::vector<Output>{Output::o, Output::present, Output::dq, Output::dk, Output::dv,
                                                        Output::ddecay, Output::dstate}));
}

TEST(TensorTable, AMergeHasPartsAndNoTokens) {
  const Problem p = parse_case("op=merge batch=2 seq=4 dim=3 parts=5 out=o,lse");
  EXPECT_EQ(inputs_of(p), (std::vector<TensorId>{TensorId::part_o, TensorId::part_lse}));
  EXPECT_EQ(seen_shape(p, TensorId::part_o), (Index4{10, 1, 4, 3}));
  EXPECT_EQ(outputs_of(Op::merge), (std::vector<Output>{Output::o, Output::lse}));
  EXPECT_EQ(type_of(parse_case("op=merge dtype=bf16 seq=4 dim=3"), TensorId::part_lse), DType::f32);
}

TEST(TensorTable, EveryOutputHasAResultAndNoInputHasOne) {
  for (const TensorRow& row : tensor_rows()) {
    EXPECT_EQ(row.result.has_value(), is_output(row.id)) << row.name;
    EXPECT_TRUE(row.in || row.result) << row.name;
    EXPECT_EQ(find_row(row.name), &row);
  }
  EXPECT_EQ(find_row("a stage"), nullptr);
}

TEST(TensorTable, ATensorOfAnotherOperatorIsNotThere) {
  Problem p = parse_case("op=gated seq=4 dim=2 out=o,present");
  EXPECT_TRUE(has_tensor(p, TensorId::decay));
  EXPECT_TRUE(has_tensor(p, TensorId::present_state));
  EXPECT_FALSE(has_tensor(p, TensorId::beta));
  EXPECT_FALSE(has_tensor(p, TensorId::present_k));
  p.call.outputs = {Output::lse};  // no case
  EXPECT_FALSE(has_tensor(p, TensorId::lse));
}

}  // namespace
}  // namespace attest
