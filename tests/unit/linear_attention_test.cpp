// Linear attention: values known by hand, relations that any implementation keeps, and the growth of its bound.
#include "reference/linear/linear_attention.h"

#include <cmath>

#include "reference/operators/operator.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

std::vector<double> outputs_of(const Problem& problem, const Inputs& inputs) {
  std::vector<double> values;
  for (const ResultValues& row : reference_rows(problem, inputs)) {
    values.insert(values.end(), row.of(TensorId::out).begin(), row.of(TensorId::out).end());
  }
  return values;
}

/// Rows [from, from + count) of a tensor.
ConstTensor rows_of(ConstTensor t, std::int64_t from, std::int64_t count) {
  t.data = static_cast<const std::byte*>(t.data) + static_cast<std::size_t>(from * t.strides[2]) * size_of(t.dtype);
  t.shape[2] = count;
  return t;
}

ConstTensor dense(const std::vector<double>& values, const Index4& n) {
  return {values.data(), DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}};
}

Inputs of_three(const ConstTensor& q, const ConstTensor& k, const ConstTensor& v) {
  Inputs inputs;
  inputs.set(TensorId::q, q);
  inputs.set(TensorId::k, k);
  inputs.set(TensorId::v, v);
  return inputs;
}

TEST(LinearAttention, OneDimensionByHand) {
  const std::vector<double> q = {1, 2, 3}, k = {2, 1, 4}, v = {5, 3, 1}, decay = {0, std::log(0.5), 0},
                            beta = {1, 0.5, 1};
  const Index4 n = {1, 1, 3, 1};
  const auto run = [&](const std::string& op) {
    const Problem p = parse_case("op=" + op + " dtype=f64 seq=3 dim=1");
    Inputs inputs = of_three(dense(q, n), dense(k, n), dense(v, n));
    inputs.set(TensorId::decay, dense(decay, n));
    inputs.set(TensorId::beta, dense(beta, n));
    return outputs_of(p, inputs);
  };
  // State: 10, then 10 + 3, then 13 + 4.
  EXPECT_EQ(run("linear"), (std::vector<double>{10, 26, 51}));
  // 10, 10/2 + 3 = 8, 8 + 4.
  EXPECT_EQ(run("gated"), (std::vector<double>{10, 16, 36}));
  // 2*5 = 10; 10 + 1*0.5*(3 - 10) = 6.5; 6.5 + 4*(1 - 4*6.5) = -93.5.
  EXPECT_EQ(run("delta"), (std::vector<double>{10, 13, -280.5}));
  // 10; 5 + 0.5*(3 - 5) = 4; 4 + 4*(1 - 16) = -56.
  EXPECT_EQ(run("gated_delta"), (std::vector<double>{10, 8, -168}));
}

/// The element (b, h, l, d) of o as reference_rows gives it.
double element_of(const Call& p, const std::vector<double>& outputs, std::int64_t b, std::int64_t h, std::int64_t l,
                  std::int64_t d) {
  return outputs[static_cast<std::size_t>(((b * p.query_heads + h) * p.query_length + l) * p.value_dim + d)];
}

TEST(LinearAttention, PackedSequencesAreEachByThemselves) {
  const std::string sizes = " dtype=f64 batch=3 heads=4/2 seq=7 dim=3 state seed=5 lengths=7,0,4";
  for (const std::string op : {"op=linear", "op=gated", "op=delta", "op=gated_delta"}) {
    const Problem packed = parse_case(op + sizes + " layout=thd gap=2"), padded = parse_case(op + sizes);
    const CaseInputs of_packed = make_inputs(packed), of_padded = make_inputs(padded);
    const std::vector<double> values = outputs_of(padded, of_padded.views());
    const std::vector<double> without_padding = outputs_of(packed, of_packed.views());
    const std::int64_t counts[] = {7, 0, 4};
    std::size_t next = 0;
    Problem one = parse_case(op + " dtype=f64 heads=4/2 seq=7 dim=3 state");
    for (std::int64_t b = 0; b < 3; ++b) {
      Inputs alone = of_padded.views();
      one.call.query_length = one.call.key_length = counts[b];
      for (const TensorRow& row : tensor_rows()) {
        if (!alone.has(row.id)) continue;
        ConstTensor& t = alone.change(row.id);
        t.data = static_cast<const std::byte*>(t.data) + static_cast<std::size_t>(b * t.strides[0]) * size_of(t.dtype);
        t.shape[0] = 1;
        if (row.id != TensorId::state) t.shape[2] = counts[b];
      }
      const std::vector<double> own = outputs_of(one, alone);
      each_index({1, 4, 7, 3}, [&](auto, auto h, auto l, auto d) {
        const double wanted = l < counts[b] ? element_of(one, own, 0, h, l, d) : 0;
        if (l < counts[b]) {
          EXPECT_EQ(without_padding[next++], wanted) << op;
        }
        EXPECT_EQ(element_of(padded, values, b, h, l, d), wanted) << op << ' ' << b << ' ' << h << ' ' << l << ' ' << d;
      });
    }
  }
}

TEST(LinearAttention, WhatLiesBehindASequenceIsNotRead) {
  const Problem p = parse_case("op=gated_delta dtype=f64 batch=2 heads=2 seq=5 dim=3 lengths=5,2 out=o,present");
  CaseInputs inputs = make_inputs(p);
  const std::vector<double> values = outputs_of(p, inputs.views());
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::decay, TensorId::beta}) {
    TensorStorage& storage = inputs.at(id);
    for (std::int64_t h = 0; h < storage.shape()[1]; ++h) {
      for (std::int64_t l = 2; l < 5; ++l) {
        for (std::int64_t d = 0; d < storage.shape()[3]; ++d) storage.set(1, h, l, d, kNaN);
      }
    }
  }
  EXPECT_EQ(outputs_of(p, inputs.views()), values);
  const WholeResults states = operator_of(p).whole(p, inputs.views(), {TensorId::present_state}, {}, {});
  for (const double x : states.values.of(TensorId::present_state)) EXPECT_TRUE(std::isfinite(x));
}

TEST(LinearAttention, SharedHeadsAreHeadsRepeated) {
  const Problem shared = parse_case("op=gated_delta dtype=f64 batch=2 heads=6 qk_heads=2 seq=5 dim=3/2 seed=3");
  const CaseInputs inputs = make_inputs(shared);
  Problem repeated = shared;
  repeated.call.qk_heads = 0;
  CaseInputs more = make_inputs(repeated);
  const Inputs few = inputs.views();
  for (const TensorId id : {TensorId::q, TensorId::k}) {
    const ConstTensor& from = few.at(id);
    EXPECT_EQ(from.shape[1], 2);
    each_index({2, 6, 5, 3}, [&](auto b, auto h, auto l, auto d) {
      more.at(id).set(b, h, l, d, load(from.data, from.dtype, from.offset(b, h / 3, l, d)));
    });
  }
  Inputs views = few;
  for (const TensorId id : {TensorId::q, TensorId::k}) views.set(id, more.views().at(id));
  EXPECT_EQ(outputs_of(shared, few), outputs_of(repeated, views));
}

/// Without decay and delta, output i is the sum of raw causal scores times values: the other operator's first stage.
TEST(LinearAttention, PlainRuleIsCausalAttentionWithoutSoftmax) {
  const std::string sizes = "dtype=f64 batch=2 heads=4/2 seq=17 dim=8/5 seed=3";
  const Problem p = parse_case("op=linear " + sizes);
  const CaseInputs inputs = make_inputs(p);
  const std::vector<double> got = outputs_of(p, inputs.views());
  const Problem softmax = parse_case(sizes + " causal");
  std::size_t at = 0;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 4; ++h) {
      const Inputs views = inputs.views();
      const Head head(softmax, views, b, h);
      Row row;
      for (std::int64_t i = 0; i < 17; ++i) {
        head.attend(i, row);
        for (std::int64_t c = 0; c < 5; ++c, ++at) {
          double sum = 0;
          for (std::int64_t j = 0; j <= i; ++j) sum += row.raw[static_cast<std::size_t>(j)] * head.value_row(j)[c];
          EXPECT_NEAR(got[at], sum, 1e-12);
        }
      }
    }
  }
}

/// With unit vectors as keys and beta = 1, the delta rule is a table: reading a key gives what was written last.
TEST(LinearAttention, DeltaRuleOverwritesWhatAKeyHeld) {
  const Problem p = parse_case("op=delta dtype=f64 seq=3 dim=2 scale=1");
  const std::vector<double> k = {1, 0, 0, 1, 1, 0}, v = {7, -2, 5, 5, 3, 4}, q = {1, 0, 0, 1, 1, 0}, beta = {1, 1, 1};
  const Index4 n = {1, 1, 3, 2};
  Inputs inputs = of_three(dense(q, n), dense(k, n), dense(v, n));
  inputs.set(TensorId::beta, dense(beta, {1, 1, 3, 1}));
  EXPECT_EQ(outputs_of(p, inputs), v);
}

class LinearRules : public testing::TestWithParam<std::string> {};

/// The state after the first part, given to the second, makes the whole: for the reference and each backend.
TEST_P(LinearRules, AStateCarriesOn) {
  const std::string line = "op=" + GetParam() + " dtype=f64 heads=4/2 seq=LENGTH dim=6/5 out=o,present seed=9";
  const auto with = [&](const std::string& length, const std::string& more) {
    std::string text = line;
    return parse_case(text.replace(text.find("LENGTH"), 6, length) + more);
  };
  const Problem whole = with("12", ""), first = with("7", ""), second = with("5", " state");
  const CaseInputs made = make_inputs(whole);
  const Inputs all = made.views();
  const auto part = [&](std::int64_t from, std::int64_t count) {
    Inputs inputs = all;
    for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::decay, TensorId::beta}) {
      if (inputs.has(id)) inputs.set(id, rows_of(inputs.at(id), from, count));
    }
    return inputs;
  };
  const std::vector<double> expected = outputs_of(whole, all);
  const TensorId last = TensorId::present_state;
  const std::vector<double> state = operator_of(first).whole(first, part(0, 7), {last}, {}, {}).values.of(last);
  Inputs rest = part(7, 5);
  rest.set(TensorId::state, dense(state, {1, 2, 6, 5}));
  const std::vector<double> tail = outputs_of(second, rest);
  for (std::int64_t h = 0; h < 4; ++h) {
    for (std::int64_t i = 0; i < 5 * 5; ++i) {
      EXPECT_NEAR(tail[static_cast<std::size_t>(h * 25 + i)], expected[static_cast<std::size_t>(h * 60 + 35 + i)],
                  1e-12);
    }
  }
  const BackendSet backends(registered_backends(), {}, {2, ""});
  for (Backend* backend : backends.all()) {
    if (backend->refuse(second)) continue;
    EXPECT_EQ(run_backend(*backend, second, rest).size(), tail.size());
    const std::vector<double> got = run_backend(*backend, second, rest);
    for (std::size_t n = 0; n < tail.size(); ++n) EXPECT_NEAR(got[n], tail[n], 1e-12) << backend->identity().name;
  }
}
INSTANTIATE_TEST_SUITE_P(Each, LinearRules, testing::Values("linear", "gated", "delta", "gated_delta"),
                         [](const auto& one) { return one.param; });

/// Magnitudes alone double with every token under the delta rule; the norm does not.
TEST(LinearBound, OfTheDeltaRuleStaysUseful) {
  const Problem p = parse_case("op=delta seq=512 dim=32");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const auto head = operator_of(p).head(p, views, 0, 0, {{Arithmetic{}, DType::f32}});
  ResultValues row;
  ResultValues bound;
  head->attend(511, row);
  head->bound(0, bound);
  for (double b : bound.of(TensorId::out)) {
    EXPECT_GT(b, 0);
    EXPECT_LT(b, 0.02);
  }
}

TEST(LinearBound, GrowsWithTheArithmetic) {
  const Problem p = parse_case("op=gated_delta seq=16 dim=8");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const auto bound_of = [&](const Arithmetic& a, DType stored) {
    const std::vector<Producer> producers = {{a, stored}};
    const auto head = operator_of(p).head(p, views, 0, 0, producers);
    ResultValues row;
    ResultValues bound;
    head->attend(15, row);
    head->bound(0, bound);
    return bound.of(TensorId::out)[0];
  };
  Arithmetic a;
  const double plain = bound_of(a, DType::f32);
  EXPECT_GT(bound_of(a, DType::bf16), plain);
  a.exp_ulps = 100;
  EXPECT_GT(bound_of(a, DType::f32), plain);
  a.exp_ulps = 2;
  a.accumulator = DType::f64;
  EXPECT_LT(bound_of(a, DType::f64), plain * 1e-6);
}

TEST(LinearBound, OverflowProvesNothing) {
  const Problem p = parse_case("op=linear seq=16 dim=8 fill=constant(1e25)");
  const CaseInputs inputs = make_inputs(p);
  const Inputs views = inputs.views();
  const std::vector<Producer> producers = {{Arithmetic{}, DType::f32}};
  const auto head = operator_of(p).head(p, views, 0, 0, producers);
  ResultValues row;
  ResultValues bound;
  head->attend(0, row);
  head->bound(0, bound);
  EXPECT_EQ(bound.of(TensorId::out)[0], kInfinity);
}

}  // namespace
}  // namespace attest
