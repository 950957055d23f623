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
  std::vector<double> run(const Problem& problem) {
    return run_backend(backend(), problem, make_inputs(problem).views());
  }
  std::vector<double> run(const std::string& line) { return run(parse_case(line)); }

 private:
  std::unique_ptr<BackendSet> set_;
};

TEST_P(EveryBackend, APlanServesOtherDataAfterwards) {
  const Problem first = parse_case("seq=40 dim=16 seed=1"), second = parse_case("seq=40 dim=16 seed=2");
  const CaseInputs a = make_inputs(first), b = make_inputs(second);
  const auto plan = backend().prepare(first);
  const auto walk = [&](const CaseInputs& inputs) {
    GuardedOutputs outputs(first);
    plan->upload(inputs.views());
    plan->run();
    plan->download(outputs.views());
    return outputs.out(0, 0, 39, 15);
  };
  const double from_a = walk(a), from_b = walk(b);
  EXPECT_NE(from_a, from_b);
  EXPECT_EQ(walk(a), from_a);
}

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

/// Every option that is accepted must matter: with it the answer is another one.
TEST_P(EveryBackend, EveryOptionChangesTheAnswer) {
  const std::vector<std::pair<std::string, std::string>> options = {
      {"seq=20 dim=8", "scale=0.1"},
      {"seq=20 dim=8", "scale=-0.353"},
      {"seq=20 dim=8", "causal"},
      {"seq=20x30 dim=8 causal align=top-left", "align=bottom-right"},
      {"seq=20 dim=8", "window=2:inf"},
      {"seq=20 dim=8", "window=inf:2"},
      {"seq=20 dim=8", "mask=bool:11QK:random(0.5)"},
      {"seq=20 dim=8", "mask=add:11QK:normal"},
      {"seq=20 dim=8", "softcap=0.2"},
      {"heads=2 seq=20 dim=8", "alibi"},
      {"heads=2 seq=20 dim=8", "alibi=0.1,0.3"},
      {"heads=2 seq=20 dim=8", "sinks"},
      {"heads=2 seq=20 dim=8", "sinks=1,2"},
      {"batch=2 seq=20 dim=8", "lengths=20,7"},
      {"batch=2 seq=20 dim=8", "lengths=q:20,7/k:20,20"},
      {"seq=20 dim=8", "segments=9,11"},
      {"seq=20 dim=8 causal", "prefix=5"},
      {"seq=20 dim=8", "blocks=4x4:random(0.5)"},
      {"seq=20 dim=8", "dropout=0.5"},
      {"seq=20 dim=8 causal", "past=3"},
      {"heads=4 seq=20 dim=8", "seed=1"},
      {"op=linear seq=20 dim=8", "scale=0.1"},
      {"op=linear seq=20 dim=8", "state"},
      {"op=gated seq=20 dim=8", "decay=head"},
      {"op=delta heads=2 seq=20 dim=8", "beta=one"}};
  if (!backend().refuse(parse_case("op=linear seq=20 dim=8"))) {
    EXPECT_NE(run("op=linear seq=20 dim=8"), run("seq=20 dim=8"));
  }
  for (const auto& [base, option] : options) {
    std::string without = base;
    if (option.starts_with("align")) without = "seq=20x30 dim=8 causal align=top-left";
    std::string with = option.starts_with("align") ? "seq=20x30 dim=8 causal " + option : base + " " + option;
    // Past keys move queries down the diagonal; the shape without them has as many keys.
    const Problem changed = parse_case(with);
    if (backend().refuse(changed)) continue;
    EXPECT_NE(run(without), run(changed)) << with;
  }
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
