// Tensors that only some operators read or write.
#include "reference/operators/operator_tensors.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "harness/cases/inputs.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

std::map<std::string, Index4> stored_shapes(const std::string& line) {
  std::map<std::string, Index4> shapes;
  const Problem p = parse_case(line);
  for (const TensorId id : inputs_of(p)) {
    if (row_of(id).drawn) shapes[std::string(row_of(id).name)] = stored_shape(p, id);
  }
  return shapes;
}

TEST(OperatorTensors, AreThoseOfTheRule) {
  const std::string sizes = " batch=2 heads=4/2 seq=5 dim=6/3";
  EXPECT_TRUE(stored_shapes("op=attention" + sizes).empty());
  EXPECT_TRUE(stored_shapes("op=linear" + sizes).empty());
  using Shapes = std::map<std::string, Index4>;
  EXPECT_EQ(stored_shapes("op=gated" + sizes), (Shapes{{"decay", {2, 2, 5, 6}}}));
  EXPECT_EQ(stored_shapes("op=delta" + sizes), (Shapes{{"beta", {2, 2, 5, 1}}}));
  EXPECT_EQ(stored_shapes("op=gated_delta decay=head beta=one" + sizes),
            (Shapes{{"decay", {2, 2, 5, 1}}, {"beta", {2, 1, 5, 1}}}));
  EXPECT_EQ(stored_shapes("op=linear state" + sizes).size(), 1u);
  const Problem p = parse_case("op=gated_delta decay=head beta=one" + sizes);
  for (const TensorId id : inputs_of(p)) {
    const Index4 stored = stored_shape(p, id), seen = seen_shape(p, id);
    for (std::size_t axis = 0; axis < 4; ++axis) {
      EXPECT_TRUE(stored[axis] == seen[axis] || stored[axis] == 1) << name_of(id);
    }
  }
}

TEST(OperatorTensors, NoTwoTensorsHaveOneName) {
  std::map<std::string, int> names;
  for (const TensorRow& row : tensor_rows()) ++names[std::string(row.name)];
  for (const auto& [name, count] : names) EXPECT_EQ(count, 1) << name;
  for (const char* name : {"q", "decay", "beta", "past_state", "o"}) EXPECT_TRUE(names.contains(name)) << name;
}

TEST(OperatorTensors, KeysOfTheDeltaRulesHaveAboutUnitLength) {
  EXPECT_EQ(key_divisor(parse_case("op=attention seq=4 dim=64")), 1);
  EXPECT_EQ(key_divisor(parse_case("op=gated seq=4 dim=64")), 1);
  EXPECT_EQ(key_divisor(parse_case("op=delta seq=4 dim=64")), 8);
}

/// Cached keys stand in front of the new ones, bit for bit and without a bound.
TEST(OperatorTensors, PresentIsPastAndNew) {
  const Problem p = parse_case("heads=2/1 seq=2x5 dim=3/2 past=3 causal out=o,present");
  const CaseInputs inputs = make_inputs(p);
  const auto outputs = present_outputs(p);
  ASSERT_EQ(outputs.size(), 2u);
  const PresentValues keys = expect_present(p, inputs.views(), outputs[0], {{Arithmetic{}, DType::f32}});
  ASSERT_EQ(keys.values.size(), 5u * 3);
  const ConstTensor past = inputs.at(TensorId::past_k).view(), fresh = inputs.at(TensorId::k).view();
  EXPECT_EQ(keys.values[2 * 3 + 1], load(past.data, past.dtype, past.offset(0, 0, 2, 1)));
  EXPECT_EQ(keys.values[3 * 3 + 1], load(fresh.data, fresh.dtype, fresh.offset(0, 0, 0, 1)));
  for (const double bound : keys.bounds.at(0)) EXPECT_EQ(bound, 0);
  EXPECT_TRUE(present_outputs(parse_case("seq=2 dim=3")).empty());
  const auto state = present_outputs(parse_case("op=linear heads=2 seq=2 dim=3/4 out=present"));
  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(seen_shape(parse_case("op=linear heads=2 seq=2 dim=3/4 out=present"), state[0]), (Index4{1, 2, 3, 4}));
  EXPECT_FALSE(is_copied(state[0]));
}

}  // namespace
}  // namespace attest
