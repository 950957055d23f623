#include "harness/backends/plugin/plugin_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <new>

#include "backends/registry.h"
#include "harness/backends/plugin/plugin_library.h"
#include "harness/cases/inputs.h"
#include "harness/cases/suites.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/prepared_case.h"
#include "reference/options/case_line.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

const std::string kFolder = ATTEST_PLUGIN_FOLDER;

std::unique_ptr<Backend> answering(const std::string& name) {
  return make_plugin_backend(load_plugin(kFolder + "/libbroken_answers.so"), name, {1, ""});
}

const Call kCall = parse_case("seq=2 dim=2");

TEST(PluginBackend, WhatItSaysOfItselfKeepsTheRules) {
  const auto why = [](const char* name) { return complaint<BackendUnavailable>([&] { answering(name); }); };
  EXPECT_EQ(why("unavailable"), "no such device here");
  EXPECT_EQ(why("unavailable_for_no_reason"), "its create() says so, without a reason");
  EXPECT_EQ(why("create_returns_7"), "breaks the plug-in interface: create returned 7, which is no code for it");
  EXPECT_EQ(why("contract_0"),
            "breaks the plug-in interface: identity: contract is 0: state the version that the backend was written "
            "for, such as 9");
  EXPECT_EQ(why("library_null"), "breaks the plug-in interface: identity: library is NULL");
  EXPECT_EQ(why("library_empty"), "breaks the plug-in interface: identity: library is empty");
  EXPECT_EQ(why("library_long"), "breaks the plug-in interface: identity: library is longer than 200 bytes");
  EXPECT_EQ(why("convention_empty"), "breaks the plug-in interface: lse_base is empty");
}

TEST(PluginBackend, RefusesWithASentence) {
  EXPECT_EQ(answering("refuses")->refuse(kCall)->reason, "not today\\x0a");
  EXPECT_EQ(answering("writes_nothing")->refuse(kCall), std::nullopt);
  EXPECT_EQ(complaint<BackendError>([] { answering("refuses_silently")->refuse(kCall); }),
            "breaks the plug-in interface: refuse gave no sentence");
  EXPECT_EQ(complaint<BackendError>([] { answering("refuse_returns_9")->refuse(kCall); }),
            "breaks the plug-in interface: refuse returned 9, which is no code for it");
}

TEST(PluginBackend, ArithmeticIsInRange) {
  const auto why = [](const char* name) {
    return complaint<BackendError>([&] { answering(name)->arithmetic(kCall); });
  };
  const std::string start = "breaks the plug-in interface: arithmetic: ";
  EXPECT_EQ(why("exp_nan"), start + "exp_ulps is nan: it must be finite and not negative");
  EXPECT_EQ(why("tanh_negative"), start + "tanh_ulps is -1: it must be finite and not negative");
  EXPECT_EQ(why("accumulator_f16"), start + "accumulator must be f32 or f64");
  EXPECT_EQ(why("weights_77"), start + "stored_weights is 77, and not from 0 to 3");
  EXPECT_EQ(why("base2_5"), start + "base2 is 5, and not 0 or 1");
  EXPECT_EQ(why("folded"), start + "scale is folded_log2e without base2");
  EXPECT_EQ(why("block_negative"), start + "key_block is -4: it must not be negative");
  EXPECT_EQ(why("stores_99"), start + "score_stores is 99, and not from 0 to 16");
  EXPECT_EQ(answering("writes_nothing")->arithmetic(kCall), Arithmetic{})
      << "what a plug-in leaves alone is the default";
}

TEST(PluginBackend, OneResultMayBeRoundedOtherwise) {
  const Call with_lse = parse_case("seq=2 dim=2 out=o,lse");
  const Arithmetic stated = answering("lse_otherwise")->arithmetic(with_lse);
  EXPECT_EQ(stated.of(TensorId::lse).log_ulps, 10);
  EXPECT_EQ(stated.of(TensorId::out).log_ulps, Arithmetic{}.log_ulps) << "the others as before";
  EXPECT_EQ(answering("lse_otherwise")->arithmetic(kCall), Arithmetic{}) << "a call without that result";
  EXPECT_EQ(complaint<BackendError>([&] { answering("lse_negative")->arithmetic(with_lse); }),
            "breaks the plug-in interface: arithmetic: log_ulps is -10: it must be finite and not negative");
}

TEST(PluginBackend, PlansFailWithTheirSentence) {
  EXPECT_EQ(complaint<BackendError>([] { answering("no_plan")->prepare(kCall); }),
            "breaks the plug-in interface: prepare returned ATTEST_OK and no plan");
  EXPECT_EQ(complaint<BackendError>([] { answering("prepare_fails")->prepare(kCall); }), "the compiler is gone");
  EXPECT_EQ(complaint<BackendError>([] { answering("prepare_fails_silently")->prepare(kCall); }),
            "prepare failed without a sentence");
  EXPECT_THROW(answering("out_of_memory")->prepare(kCall), std::bad_alloc);
  const auto backend = answering("unterminated");
  const std::string text = complaint<BackendError>([&] { backend->prepare(kCall)->run(); });
  EXPECT_EQ(text, std::string(1023, 'y'));
  const auto huge = answering("workspace_huge");
  EXPECT_NE(
      complaint<BackendError>([&] { [[maybe_unused]] const auto bytes = huge->prepare(kCall)->workspace_bytes(); }),
      "");
}

/// What a plug-in's header doesn't know, and the version of its contract says nothing of, the host refuses for it.
TEST(PluginBackend, YoungerOptionsAreRefusedOnItsBehalf) {
  PluginTable older = *load_plugin(kFolder + "/libbroken_answers.so");
  static const char* const words[] = {"dtype=f32", "op=attention", "prefix"};
  older.plugin.known_features = words;
  older.plugin.known_feature_count = std::size(words);
  const auto index = older.backends.size() - 1;
  const PluginBackend backend(std::make_shared<const PluginTable>(older), index, {1, ""});
  EXPECT_EQ(backend.refuse(kCall), std::nullopt);
  EXPECT_EQ(backend.refuse(parse_case("seq=2 dim=2 prefix=1")), std::nullopt);
  const auto refusal = backend.refuse(parse_case("seq=2 dim=2 causal prefix=1:causal"));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "prefix=causal: younger than the attest_plugin.h that the plug-in was built with");
  EXPECT_EQ(refusal->cause, RefusalCause::younger_than_header);
}

/// The same kernel inside and outside gives the same verdicts.
TEST(PluginBackend, TheExampleIsAsRightFromOutside) {
  const auto outside = make_plugin_backend(load_plugin(kFolder + "/libfaulty_plugin.so"), "example_again", {1, ""});
  int passed = 0;
  for (const char* suite : {"smoke", "bugs", "linear"}) {
    for (const Case& one : load_suite(find_suite(suite))) {
      const Verdict verdict = PreparedCase(one, {outside.get()}, 1).check(*outside);
      EXPECT_FALSE(is_failure(verdict)) << one.label << ": " << verdict.reason;
      passed += verdict.status == Status::pass;
    }
  }
  EXPECT_GT(passed, 300);
}

TEST(PluginBackend, NeedsLessThanAMicrosecondACall) {
  const auto backend = answering("writes_nothing");
  const auto plan = backend->prepare(kCall);
  const CaseInputs made = make_inputs(parse_case("seq=2 dim=2"));
  const Inputs inputs = made.views();
  GuardedOutputs guarded(kCall);
  const Outputs outputs = guarded.views();
  const auto nanoseconds = [](const std::function<void()>& step) {
    constexpr int kCalls = 20000;
    double best = 1e30;  // of several: others have the processor, too
    for (int sample = 0; sample < 9; ++sample) {
      const auto begin = std::chrono::steady_clock::now();
      for (int n = 0; n < kCalls; ++n) step();
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
      best = std::min(best, took.count() / kCalls);
    }
    return best;
  };
  const double run = nanoseconds([&] { plan->run(); });
  const double all = nanoseconds([&] { plan->upload(inputs), plan->run(), plan->download(outputs); });
  std::printf("a plug-in's run: %.1f ns beyond the kernel's own; with upload and download: %.1f ns\n", run, all);
  EXPECT_LT(run, 1000);
  EXPECT_LT(all, 1000);
}

}  // namespace
}  // namespace attest
