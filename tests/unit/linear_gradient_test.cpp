// Gradients of linear attention: against differences of the forward reference under every rule, by hand, and what is
// known of their bounds.
#include "reference/linear/linear_gradient.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "reference/call/tensor_table.h"
#include "reference/operators/operator.h"
#include "tests/faulty/linear_gradients.h"
#include "tests/unit/helpers.h"
#include "tests/unit/loss.h"

namespace attest {
namespace {

/// Every gradient of the call, each dense in the order of its axes.
ResultValues gradients_of(const Problem& problem, const Inputs& views) {
  std::vector<TensorId> whole = outputs_of(problem.call);
  std::erase_if(whole, [](TensorId id) { return index_space(id) == IndexSpace::query_rows; });
  ResultValues all = operator_of(problem).whole(problem, views, whole, {}, {}).values;
  for (const ResultValues& row : reference_rows(problem, views)) {
    const std::vector<double>& dq = row.of(TensorId::dq);
    all.of(TensorId::dq).insert(all.of(TensorId::dq).end(), dq.begin(), dq.end());
  }
  return all;
}

TEST(LinearGradient, IsTheLimitOfDifferences) {
  const std::string sizes = "batch=2 heads=4/2 seq=5 dim=3/2 state dpresent ";
  for (const std::string& line :
       {"op=linear " + sizes + "out=o,present,dq,dk,dv,dstate seed=1",
        "op=gated " + sizes + "out=o,present,dq,dk,dv,ddecay,dstate seed=2",
        "op=gated decay=head scale=-0.7 " + sizes + "out=o,present,dq,dk,dv,ddecay,dstate seed=3",
        "op=delta " + sizes + "out=o,present,dq,dk,dv,dbeta,dstate seed=4",
        "op=delta beta=one " + sizes + "out=o,present,dq,dk,dv,dbeta,dstate seed=5",
        "op=gated_delta " + sizes + "out=o,present,dq,dk,dv,ddecay,dbeta,dstate seed=6",
        "op=gated_delta decay=head beta=one " + sizes + "out=o,present,dq,dk,dv,ddecay,dbeta,dstate seed=7",
        std::string("op=gated_delta seq=1 dim=2 state out=o,dq,dk,dv,ddecay,dbeta seed=8"),
        std::string("op=gated_delta heads=2/1 seq=7 dim=2 out=o,dq,dk,dv,ddecay,dbeta seed=9")}) {
    Loss loss(line);
    const ResultValues all = gradients_of(loss.problem, loss.inputs.views());
    for (const auto& [of, input] :
         {std::pair{TensorId::dq, TensorId::q}, std::pair{TensorId::dk, TensorId::k},
          std::pair{TensorId::dv, TensorId::v}, std::pair{TensorId::ddecay, TensorId::decay},
          std::pair{TensorId::dbeta, TensorId::beta}, std::pair{TensorId::dstate, TensorId::state}}) {
      if (!has_tensor(loss.problem, of)) continue;
      std::size_t n = 0;
      double largest = 0;
      for (const double value : all.of(of)) largest = std::max(largest, std::fabs(value));
      EXPECT_GT(largest, 0) << line << " " << name_of(of);
      const TensorId id = input;
      const TensorId gradient = of;
      each_index(loss.inputs.at(id).shape(), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        EXPECT_NEAR(all.of(gradient)[n++], loss.difference(id, {b, h, l, d}), 1e-7 * (1 + largest))
            << line << " " << name_of(gradient) << " " << b << " " << h << " " << l << " " << d;
      });
      EXPECT_EQ(n, all.of(gradient).size()) << line << " " << name_of(gradient);
    }
  }
}

TEST(LinearGradient, OfOneTokenByHand) {
  // S = 2 * 5 = 10, o = 3 * 10; do = 0.5, so that G = 1.5.
  const std::vector<double> q = {3}, k = {2}, v = {5}, loss = {0.5};
  const Problem p = parse_case("op=linear dtype=f64 pass=backward seq=1 dim=1");
  Inputs inputs;
  for (const auto& [id, data] : {std::pair{TensorId::q, &q}, std::pair{TensorId::k, &k}, std::pair{TensorId::v, &v},
                                 std::pair{TensorId::dout, &loss}})
    inputs.set(id, {data->data(), DType::f64, {1, 1, 1, 1}, {1, 1, 1, 1}});
  const ResultValues all = gradients_of(p, inputs);
  EXPECT_EQ(all.of(TensorId::dq), std::vector<double>{5});
  EXPECT_EQ(all.of(TensorId::dk), std::vector<double>{7.5});
  EXPECT_EQ(all.of(TensorId::dv), std::vector<double>{3});
}

/// What there is of an empty sequence is the loss of its state alone.
TEST(LinearGradient, OfNoTokenIsTheLossOfTheState) {
  const Problem p = parse_case("op=gated dtype=f64 pass=backward seq=0 dim=2 state dpresent out=dk,dstate");
  const CaseInputs inputs = make_inputs(p);
  const ResultValues all = gradients_of(p, inputs.views());
  EXPECT_TRUE(all.of(TensorId::dk).empty());
  ASSERT_EQ(all.of(TensorId::dstate).size(), 4u);
  for (std::size_t n = 0; n < 4; ++n)
    EXPECT_EQ(all.of(TensorId::dstate)[n], number_at(*inputs.views().dpresent(), 0, 0, static_cast<std::int64_t>(n / 2),
                                                     static_cast<std::int64_t>(n % 2)));
}

/// Elementwise magnitudes alone would double with every token; and chunks prove nothing.
TEST(LinearGradientBound, OfTheDeltaRuleStaysUseful) {
  const Problem p = parse_case("op=delta pass=backward seq=512 dim=32 out=dq,dk,dv,dbeta");
  const CaseInputs inputs = make_inputs(p);
  Arithmetic chunks;
  chunks.state_chunk = 64;
  for (const TensorId id : {TensorId::dk, TensorId::dv, TensorId::dbeta}) {
    const WholeResults whole =
        operator_of(p).whole(p, inputs.views(), {id}, {{Arithmetic{}, DType::f32}, {chunks, DType::f32}}, {});
    double largest = 0;
    for (const double value : whole.values.of(id)) largest = std::max(largest, std::fabs(value));
    for (const double bound : whole.bounds[0].of(id)) {
      EXPECT_GT(bound, 0) << name_of(id);
      EXPECT_LT(bound, 0.02 * largest) << name_of(id);
    }
    for (const double bound : whole.bounds[1].of(id)) EXPECT_EQ(bound, kInfinity) << name_of(id);
  }
}

TEST(LinearGradient, MistakesAreCaughtByTheirLines) {
  const std::map<std::string, std::string> lines = {
      {"decay_forgets_later_tokens", "op=gated pass=backward seq=3 dim=1 out=ddecay"},
      {"linear_dk_of_first_head", "op=linear pass=backward heads=2/1 seq=2 dim=1"},
      {"state_gradient_of_chunk", "op=linear pass=backward seq=65 dim=1"}};
  EXPECT_EQ(lines.size(), faulty::linear_gradient_backends().size());
  for (const auto& [name, own] : lines) {
    const BackendSet set(faulty::linear_gradient_backends(), {name}, {1, ""});
    for (const auto& [other, line] : lines) {
      const Case source = case_from_line(line);
      const Verdict verdict = PreparedCase(source, set.all(), 1).check(*set.all().front());
      EXPECT_EQ(verdict.status, name == other ? Status::fail : Status::pass) << name << " " << line;
    }
  }
}

}  // namespace
}  // namespace attest
