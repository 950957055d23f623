// What a backend would have to state for its failing cases to be right: found where there is such a statement, and
// never for a wrong kernel.
#include "harness/probe/right_if.h"

#include <cstdio>

#include "harness/probe/restated.h"
#include "harness/trace/explanation.h"
#include "tests/emulator/declarations.h"
#include "tests/emulator/emulator.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"
#include "tests/unit/run_lines.h"

namespace attest {
namespace {

const std::vector<std::string> kLines16 = {
    "dtype=bf16 seq=24x40 dim=16", "dtype=bf16 heads=4/2 seq=33x65 dim=32 causal align=bottom-right",
    "dtype=bf16 seq=16x48 dim=8 scale=0.5 out=o,lse", "dtype=bf16 seq=64x200 dim=64 seed=3",
    "dtype=bf16 seq=8x300 dim=16 mask=bool:11QK:random(0.5)"};

/// How the emulator says of itself less than it does.
struct Case16 {
  std::function<void(Arithmetic&)> does;
  std::string statement;
};

std::vector<RightIfTold> told_of(const emulator::Emulated& emulated, const std::vector<std::string>& lines) {
  const BackendEntry entries[] = {
      {"emulator", [&](const Context&) { return std::make_unique<emulator::EmulatorBackend>(emulated); }, ""}};
  const BackendSet backends(entries, {"emulator"}, {1, ""});
  CheckSettings settings = without_shrinking();
  settings.explain_seconds = 600;  // on a slow machine, too
  const CheckOutcome outcome = run_lines(backends, lines, settings).outcome;
  EXPECT_GT(outcome.counts.failures(), 0u) << emulator::text_of(emulated.does);
  return outcome.right_if;
}

emulator::Emulated understated(const std::function<void(Arithmetic&)>& does, DType dtype = DType::bf16) {
  emulator::Emulated e;
  e.does = e.says = emulator::plain_arithmetic(dtype);
  does(e.does);
  e.seed = 5;
  return e;
}

TEST(RightIf, NamesTheSmallestStatementUnderWhichEveryCaseIsRight) {
  const std::vector<Case16> list = {
      {[](Arithmetic& a) {
         a.stored_weights = DType::bf16;
         a.normalised_before_storage = true;
       },
       "stored_weights=bf16, normalised_before_storage for calls in bf16"},
      {[](Arithmetic& a) {
         a.stored_weights = DType::bf16;
         a.sum_of_stored = true;
       },
       "stored_weights=bf16, sum_of_stored for calls in bf16"},
      {[](Arithmetic& a) { a.stored_weights = DType::bf16; }, "stored_weights=bf16 for calls in bf16"},
  };
  for (const Case16& one : list) {
    const std::vector<RightIfTold> told = told_of(understated(one.does), kLines16);
    ASSERT_EQ(told.size(), 1u) << one.statement;
    EXPECT_EQ(told[0].statement, one.statement);
    EXPECT_EQ(told[0].sentence(), "would be right if it states " + one.statement + ": " + told[0].code);
  }
}

TEST(RightIf, NamesStatementsOfSingleTypes) {
  const std::vector<std::string> lines = {"seq=24x40 dim=16", "seq=33x65 dim=32 causal align=bottom-right",
                                          "seq=16x48 dim=8 softcap=2 out=o,lse", "seq=8x300 dim=16 fill=spread(30)"};
  const auto exp = told_of(understated([](Arithmetic& a) { a.exp_ulps = 100; }, DType::f32), lines);
  ASSERT_EQ(exp.size(), 1u);
  EXPECT_EQ(exp[0].statement, "exp_ulps=128 for calls in f32");
}

TEST(RightIf, ExcusesNoWrongKernel) {
  int failing = 0;
  // Wrong in many cases, in one, by much, by little, and by numbers of a size that rounding has.
  for (const std::string name : {"finite_sentinel",
                                 "missing_scale",
                                 "scale_by_dim",
                                 "unshifted_softmax",
                                 "heads_tiled",
                                 "tail_keys_counted",
                                 "mask_by_key_head",
                                 "mask_clipped",
                                 "lse_in_base_2",
                                 "cap_after_mask",
                                 "alibi_for_powers_of_two",
                                 "sink_capped",
                                 "last_key_dropped",
                                 "last_feature_zero",
                                 "scale_a_little_off",
                                 "first_tile_minimum",
                                 "dropout_of_another_seed",
                                 "prefix_off_by_one",
                                 "row_of_the_run_before",
                                 "throws_now_and_then"}) {
    const BackendSet backends(faulty::faulty_backends(), {name}, {1, ""});
    const CheckOutcome outcome = run_cases(backends, load_cases({{"smoke"}, {}, {}}), without_shrinking()).outcome;
    failing += outcome.counts.failures() > 0;
    EXPECT_TRUE(outcome.right_if.empty()) << name << ": " << outcome.right_if.front().statement;
  }
  EXPECT_GE(failing, 10);
}

TEST(RightIf, IsToldByExplainAsWell) {
  emulator::EmulatorBackend backend(understated([](Arithmetic& a) {
    a.stored_weights = DType::bf16;
    a.normalised_before_storage = true;
  }));
  testing::internal::CaptureStdout();
  const Verdict verdict = explain(case_from_line("dtype=bf16 seq=64x200 dim=64 seed=3"), backend, 1, 1);
  std::fflush(stdout);
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(is_failure(verdict)) << text;
  EXPECT_NE(text.find("would be right if emulator states stored_weights=bf16, normalised_before_storage for calls in "
                      "bf16: arithmetic.stored_weights = DType::bf16; arithmetic.normalised_before_storage = true;"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace attest
