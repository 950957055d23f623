// The second tier of gradients: standard deviations of what independent roundings do to dq, dk and dv.
#include "reference/softmax/bounds/gradient_deviation.h"

#include <cmath>

#include "harness/comparison/compare.h"
#include "tests/faulty/around.h"
#include "tests/faulty/tampered.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// What the expectation of a line samples of one result, for an arithmetic.
std::vector<double> deviations_of(const std::string& line, TensorId result, const Arithmetic& arithmetic = {}) {
  const Problem p = parse_case(line);
  const CaseInputs inputs = make_inputs(p);
  const Expectation e = expect(p, inputs.views(), {{arithmetic, {}}}, 1);
  std::vector<double> list;
  for (std::size_t n = 0; n < e.sampled.size(); ++n) {
    if (e.sampled[n].result == result) list.push_back(e.deviations[0][n]);
  }
  return list;
}

bool claims(const std::string& line, TensorId result, const Arithmetic& arithmetic = {}) {
  return std::ranges::any_of(deviations_of(line, result, arithmetic), [](double x) { return std::isfinite(x); });
}

TEST(GradientDeviation, OfACorrectKernelIsAboutOne) {
  const auto example = faulty::make_example();
  for (const char* result : {"dq", "dk", "dv"}) {
    double squares = 0, largest = 0;
    int count = 0;
    for (int seed = 0; seed < 24; ++seed) {
      const Verdict v = check(*example, "pass=backward heads=2 seq=" + std::to_string(40 + 9 * seed) + "x" +
                                            std::to_string(50 + 17 * seed) + " dim=48/40 out=" + result +
                                            " seed=" + std::to_string(seed) + (seed % 2 ? " fill=spread(20)" : ""));
      ASSERT_EQ(v.status, Status::pass) << v.reason;
      ASSERT_TRUE(v.error_over_sigma);
      largest = std::max(largest, *v.error_over_sigma);
      squares += *v.error_over_sigma * *v.error_over_sigma;
      ++count;
    }
    EXPECT_GT(std::sqrt(squares / count), 0.5) << result;
    EXPECT_LT(largest, 5) << result;
  }
}

TEST(GradientDeviation, NoticesWhatTheBoundLetsPass) {
  const auto wrong = faulty::make_named(faulty::tampered_backends(), "scale_a_little_off");
  int suspects = 0;
  for (const char* line : {"pass=backward seq=64x1024 dim=64 out=dq", "pass=backward seq=512x64 dim=64 out=dk",
                           "pass=backward seq=512x64 dim=64 out=dv"}) {
    const Verdict v = check(*wrong, line);
    EXPECT_TRUE(is_failure(v)) << line << ": " << name_of(v.status);
    suspects += v.status == Status::suspect;
  }
  EXPECT_GT(suspects, 0);
}

TEST(GradientDeviation, WhatWasSavedIsNoChance) {
  // A saved o of few bits makes D wrong in the same way for everyone: the reference's dq is that far off.
  const auto example = faulty::make_example();
  const Verdict v = check(*example, "pass=backward seq=32x64 dim=16 saved_o.dtype=bf16 out=dq,dk");
  ASSERT_EQ(v.status, Status::pass) << v.reason;
  ASSERT_TRUE(v.error_over_sigma);
  EXPECT_LE(*v.error_over_sigma, kSuspectDeviations);
  const double exact = deviations_of("pass=backward seq=32x64 dim=16", TensorId::dq)[0];
  EXPECT_GT(deviations_of("pass=backward seq=32x64 dim=16 saved_o.dtype=bf16", TensorId::dq)[0], 20 * exact);
}

TEST(GradientDeviation, ClaimsNothingWhereRoundingsAreNotIndependent) {
  for (const TensorId result : {TensorId::dq, TensorId::dk, TensorId::dv}) {
    EXPECT_TRUE(claims("pass=backward seq=64 dim=8", result)) << name_of(result);
    EXPECT_FALSE(claims("pass=backward seq=64 dim=8 fill=constant(0.25)", result)) << name_of(result);
    EXPECT_FALSE(claims("pass=backward seq=64 dim=8 mask=bool:11QK:none", result)) << name_of(result);
    EXPECT_FALSE(claims("pass=backward seq=64 dim=8 scale=100000", result)) << name_of(result);
    EXPECT_FALSE(claims("pass=both seq=64 dim=8 out=o,dq,dk,dv", result)) << name_of(result);
  }
  EXPECT_FALSE(claims("pass=backward seq=64 dim=8 do.fill=constant(0.5)", TensorId::dk));
  // A sum over all keys of the row that is known for whole rows alone.
  Arithmetic of_weights;
  of_weights.delta_from_weights = true;
  EXPECT_TRUE(claims("pass=backward seq=64 dim=8", TensorId::dq, of_weights));
  EXPECT_FALSE(claims("pass=backward seq=64 dim=8", TensorId::dk, of_weights));
  EXPECT_TRUE(claims("pass=backward seq=64 dim=8", TensorId::dv));
}

TEST(GradientDeviation, GrowsWithWhatIsDeclared) {
  const auto with = [](TensorId result, auto change) {
    Arithmetic a;
    change(a);
    return deviations_of("pass=backward seq=64 dim=16", result, a)[0];
  };
  const auto plain = [](Arithmetic&) {};
  for (const TensorId result : {TensorId::dq, TensorId::dk, TensorId::dv}) {
    const double of_plain = with(result, plain);
    EXPECT_GT(with(result, [](Arithmetic& a) { a.exp_ulps = 100; }), 10 * of_plain);
    const auto wide = [](Arithmetic& a) {
      a.accumulator = a.stored_weights = a.stored_scores = DType::f64;
      a.stored_score_gradients = a.stored_head_gradients = DType::f64;
    };
    EXPECT_LT(with(result, wide), of_plain);
  }
  const auto stored_gradients = [](Arithmetic& a) { a.stored_score_gradients = DType::bf16; };
  EXPECT_GT(with(TensorId::dq, stored_gradients), 1000 * with(TensorId::dq, plain));
  EXPECT_GT(with(TensorId::dk, stored_gradients), 1000 * with(TensorId::dk, plain));
  EXPECT_GT(with(TensorId::dv, [](Arithmetic& a) { a.stored_weights = DType::bf16; }),
            1000 * with(TensorId::dv, plain));
  EXPECT_GT(with(TensorId::dv, [](Arithmetic& a) { a.stored_head_gradients = DType::bf16; }),
            1000 * with(TensorId::dv, plain));
}

}  // namespace
}  // namespace attest
