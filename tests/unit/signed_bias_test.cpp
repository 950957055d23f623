// Errors that lean to one side: kernels that cut off are told from those that round, though both are within the bound.
#include "harness/comparison/signed_bias.h"

#include <cmath>

#include "harness/comparison/compare.h"
#include "harness/comparison/expectation.h"
#include "harness/verdict/plan_execution.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Of what a backend computes, with the last `units` in the last place cut off.
SignedBias bias_of(const std::string& name, const std::string& line, int units) {
  const BackendSet backends(registered_backends(), {name}, {1, ""});
  Backend& backend = *backends.all().front();
  const Problem p = parse_case(line);
  const CaseInputs inputs = make_inputs(p);
  GuardedOutputs outputs(p);
  walk_once(backend, p, inputs.views(), outputs);
  const MutableTensor out = outputs.views().out();
  each_index(out.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    float& value = static_cast<float*>(out.data)[out.offset(b, h, l, d)];
    for (int n = 0; n < units; ++n) value = std::nextafterf(value, 0);
  });
  const Expectation e = expect(p, inputs.views(), {{backend.arithmetic(p), {}}}, 1);
  const Comparison comparison = compare_outputs(p, e, e.bounds.front(), outputs);
  EXPECT_FALSE(comparison.failed()) << "both are within the bound";
  return comparison.biases().at(0);
}

TEST(SignedBias, IsTheMeanOverWhatIndependentRoundingsGive) {
  ErrorSums sums;
  for (int n = 0; n < 100; ++n) sums.add(n % 2 == 0 ? 1.5 : 0.5, 1);
  EXPECT_EQ(sums.bias("o").up, 0);
  ErrorSums leaning;
  for (int n = 0; n < 100; ++n) leaning.add(n % 2 == 0 ? 0.5 : -0.5, n % 2 == 0 ? 1 : -1);
  EXPECT_EQ(leaning.bias("o").up, 0) << "half of them up, half down";
  EXPECT_EQ(leaning.bias("o").outward, -10) << "each towards zero: the square root of their number";
  leaning.add(kNaN, 1);
  leaning.add(1, kInfinity);
  EXPECT_EQ(leaning.bias("o").elements, 100);
  EXPECT_EQ(ErrorSums().bias("o").up, 0);
}

TEST(SignedBias, OfKernelsThatRoundIsSmallAndOfOneThatCutsOffLarge) {
  for (int seed = 1; seed <= 8; ++seed) {
    const std::string line = "heads=4 seq=32 dim=32 seed=" + std::to_string(seed);
    for (const char* name : {"example", "eigen"}) {
      const SignedBias honest = bias_of(name, line, 0), cut = bias_of(name, line, 2);
      EXPECT_EQ(honest.elements, 4 * 32 * 32);
      EXPECT_LT(std::fabs(honest.outward), 8) << name << " " << line;
      EXPECT_LT(std::fabs(honest.up), 8) << name << " " << line;
      EXPECT_LT(cut.outward, -20) << name << " " << line;
    }
  }
}

}  // namespace
}  // namespace attest
