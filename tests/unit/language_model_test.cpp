// The small language model: blocks stacked, losses added, any backend as its core.
#include "harness/trace/language_model.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/unit/helpers.h"

namespace attest {
namespace {

TEST(LanguageModel, BlocksAreStackedAndLossesAdded) {
  LanguageModelSettings settings;
  const LanguageModelTrace one = trace_language_model(settings, nullptr);
  settings.blocks = 3;
  const LanguageModelTrace three = trace_language_model(settings, nullptr);
  EXPECT_EQ(three.stages.size(), one.stages.size() + 8);
  EXPECT_NEAR(three.loss_sum, 5 * three.loss_mean, 1e-12);
  EXPECT_NE(three.loss_mean, one.loss_mean);
  const auto find = [&](const LanguageModelTrace& trace, const std::string& name) {
    for (const Stage& stage : trace.stages) {
      if (stage.name == name) return stage.values;
    }
    throw std::runtime_error(name);
  };
  // The first block is the same; the second adds to what it left (pre-norm).
  EXPECT_EQ(find(one, "block_1_output"), find(three, "block_1_output"));
  const auto before = find(three, "block_1_output"), attended = find(three, "block_2_attention"),
             after = find(three, "block_2_after_attention");
  EXPECT_NEAR(after[2][3], before[2][3] + attended[2][3], 1e-14);
  double sum = 0;
  for (const auto& row : find(three, "losses")) sum += row[0];
  EXPECT_NEAR(sum, three.loss_sum, 1e-12);
  EXPECT_EQ(nlohmann::json::parse(language_model_json(three))["stages"].size(), three.stages.size());
}

TEST(LanguageModel, ABackendRunsEveryBlock) {
  LanguageModelSettings settings;
  settings.blocks = 2;
  const BackendSet set(registered_backends(), {"example"}, {2, ""});
  const LanguageModelTrace trace = trace_language_model(settings, set.all().front());
  ASSERT_TRUE(trace.backend);
  EXPECT_NEAR(trace.backend->loss_mean, trace.loss_mean, 1e-6);
  EXPECT_NE(trace.backend->loss_mean, trace.loss_mean);  // f32 against f64
}

}  // namespace
}  // namespace attest
