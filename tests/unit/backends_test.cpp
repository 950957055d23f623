// Facts that must hold for every backend, of paths that one case line can't say.
#include <cmath>

#include "harness/cases/fill.h"
#include "harness/probe/probe.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

class EveryBackend : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    set_ = std::make_unique<BackendSet>(registered_backends(), std::vector{GetParam()}, Context{2, ""});
  }
  Backend& backend() { return *set_->all().front(); }

 private:
  std::unique_ptr<BackendSet> set_;
};

TEST_P(EveryBackend, MaskOffsetsGoBeyond32Bits) {
  // pytorch#162588, by stride rather than by size. Devices whose largest allocation is smaller refuse.
  const Case one = case_from_line("batch=2 seq=4 dim=4 mask=bool:BHQK:random(0.5) mask.strides=2200000000,16,4,1");
  const auto refusal = backend().refuse(one.problem);
  EXPECT_EQ(refusal.has_value() && backend().identity().device.starts_with("CPU"), false);
  if (refusal) return;
  const PreparedCase prepared(one, {&backend()}, 2);
  const Verdict verdict = prepared.check(backend());
  EXPECT_EQ(verdict.status, Status::pass) << verdict.reason;
}

std::vector<std::string> built_backends() {
  std::vector<std::string> names;
  for (const BackendEntry& entry : registered_backends()) {
    // Those that span processes are tested under mpirun, tests/mpi/.
    const bool distributed =
        std::string(" " ATTEST_DISTRIBUTED " ").find(" " + std::string(entry.name) + " ") != std::string::npos;
    if (entry.make && !distributed) names.emplace_back(entry.name);
  }
  return names;
}

TEST_P(EveryBackend, WhatItSaysOfItsConventionsIsTrue) {
  const std::vector<ProbedStatement> findings = probe_conventions(backend());
  EXPECT_EQ(findings.size(), kConventionFields.size());
  for (const ProbedStatement& finding : findings) {
    EXPECT_EQ(finding.stated, finding.observed) << finding.name;
  }
}

TEST_P(EveryBackend, WhatItSaysOfItsArithmeticIsTrue) {
  const std::vector<ProbedStatement> findings = probe_arithmetic(backend());
  EXPECT_GE(findings.size(), 40u);
  for (const ProbedStatement& f : findings) EXPECT_TRUE(f.holds) << f.name << ": " << f.stated << ": " << f.verdict();
}

/// No case line puts these into do, queries or single features. Under a cap an infinite score is a finite one, so that
/// one feature of the gradients is NaN and others are not.
TEST_P(EveryBackend, GradientsSpreadWhatIsNotFiniteNoFurtherThanItReaches) {
  const double infinity = HUGE_VAL, nan = NAN;
  for (const auto& [id, number] :
       {std::pair(TensorId::dout, nan), std::pair(TensorId::dout, infinity), std::pair(TensorId::q, infinity),
        std::pair(TensorId::k, infinity), std::pair(TensorId::q, nan), std::pair(TensorId::v, infinity)}) {
    Case one = case_from_line("pass=backward heads=4/2 seq=7x9 dim=5/3 causal align=bottom-right softcap=3");
    one.inputs = make_inputs(one.problem);
    one.inputs->at(id).set(0, 1, 4, 1, number);
    save_forward(one.problem, *one.inputs);
    const PreparedCase prepared(one, {&backend()}, 2);
    const Verdict verdict = prepared.check(backend());
    EXPECT_EQ(verdict.status, Status::pass) << name_of(id) << " " << number << ": " << verdict.reason;
  }
}

TEST_P(EveryBackend, UnderACapAnInfiniteKeyIsALargeOne) {
  const auto results = [&](double number) {
    Case one = case_from_line("pass=both heads=4/2 seq=7x9 dim=5/3 causal align=bottom-right softcap=3 out=o,dv");
    one.inputs = make_inputs(one.problem);
    one.inputs->at(TensorId::k).set(0, 1, 4, 1, number);
    return run_backend(backend(), one.problem, one.inputs->views());
  };
  if (backend().refuse(parse_case("pass=both seq=1 dim=1"))) GTEST_SKIP();
  const std::vector<double> infinite = results(HUGE_VAL), large = results(1e30);
  ASSERT_EQ(infinite.size(), large.size());
  for (std::size_t n = 0; n < large.size(); ++n) EXPECT_NEAR(infinite[n], large[n], 1e-6) << n;
}

TEST_P(EveryBackend, TakesNoKernelsForSse3WhereThereIsMore) {
  bool more = true;
#if defined(__x86_64__)
  more = __builtin_cpu_supports("avx2");
#endif
  // What OpenBLAS falls back to on a processor younger than itself.
  const std::string library = backend().identity().library;
  EXPECT_FALSE(more && library.find("Prescott") != std::string::npos) << library;
}

INSTANTIATE_TEST_SUITE_P(Built, EveryBackend, testing::ValuesIn(built_backends()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace attest
