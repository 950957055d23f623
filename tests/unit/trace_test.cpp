// What a trace shows: every head, what a mask hides, the numbers that enter a sum, and pictures of the weights.
#include "harness/trace/trace.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/base/data_folder.h"
#include "harness/cases/case_file.h"
#include "tests/unit/complaint.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

Case walkthrough(const std::string& name) {
  return case_from_file(data_folder("golden") / "walkthroughs" / (name + ".safetensors"));
}

Trace trace_line(const std::string& line, const TraceSettings& settings = {}) {
  return trace_case(case_from_line(line), settings);
}

const Stage& stage(const HeadTrace& head, const std::string& name) {
  for (const Stage& one : head.stages) {
    if (one.name == name) return one;
  }
  throw std::runtime_error("no stage " + name);
}

bool has_stage(const HeadTrace& head, const std::string& name) {
  return std::any_of(head.stages.begin(), head.stages.end(), [&](const Stage& one) { return one.name == name; });
}

std::string printed(const auto& print) {
  testing::internal::CaptureStdout();
  print();
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

TEST(Trace, EveryHeadOfEveryBatch) {
  const std::string line = "dtype=f64 batch=2 heads=4/2 seq=3x5 dim=4 causal align=bottom-right";
  const Trace trace = trace_line(line);
  const Computed computed(line);
  ASSERT_EQ(trace.heads.size(), 8u);
  for (std::size_t n = 0; n < 8; ++n) {
    EXPECT_EQ(trace.heads[n].batch * 4 + trace.heads[n].head, static_cast<std::int64_t>(n));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(stage(trace.heads[n], "weights").values[i], computed.row(3 * n + i).weights);
      EXPECT_EQ(stage(trace.heads[n], "output").values[i], computed.row(3 * n + i).output);
    }
  }
  const Trace one = trace_line(line, {false, 1, 2});
  ASSERT_EQ(one.heads.size(), 1u);
  EXPECT_EQ(stage(one.heads[0], "weights").values, stage(trace.heads[6], "weights").values);
}

TEST(Trace, DropoutOfRowsThatSeeNothing) {
  const HeadTrace head = trace_line("seq=4x5 dim=2 dropout=0.4 causal align=bottom-right lengths=q:4/k:2").heads[0];
  EXPECT_TRUE(stage(head, "dropout").values.front().empty());
  EXPECT_EQ(stage(head, "dropout").values.back().size(), 5u);
  EXPECT_EQ(stage(head, "dropped_weights").values.front(), std::vector<double>(5, 0.0));
}

TEST(Trace, GradientsGoOnFromTheWeights) {
  for (const char* line :
       {"pass=backward dtype=f64 batch=2 heads=4/2 seq=3x5 dim=4/3 causal align=bottom-right softcap=2 dlse",
        "pass=both dtype=f64 heads=2 seq=4x6 dim=3 dropout=0.4 lengths=q:3/k:5 poison=hidden:do"}) {
    const Case one = case_from_line(line);
    const Call& p = one.problem.call;
    const Trace trace = trace_case(one, {});
    const CaseInputs inputs = make_inputs(one.problem);
    const Expectation expected = expect(one.problem, inputs.views(), {}, 1);
    const auto heads = static_cast<std::size_t>(p.query_heads), group = static_cast<std::size_t>(p.heads_per_group());
    for (const auto& [name, id, columns] :
         {std::tuple{"dk", TensorId::dk, p.key_dim}, {"dv", TensorId::dv, p.value_dim}}) {
      std::size_t at = 0;
      for (std::size_t first = 0; first < trace.heads.size(); first += group) {
        for (std::size_t j = 0; j < static_cast<std::size_t>(p.key_length); ++j) {
          for (std::size_t d = 0; d < static_cast<std::size_t>(columns); ++d) {
            double sum = 0;
            for (std::size_t h = first; h < first + group; ++h) sum += stage(trace.heads[h], name).values[j][d];
            EXPECT_NEAR(sum, expected.of(id)[at++], 1e-14) << line << " " << name << " " << j;
          }
        }
      }
    }
    std::size_t at = 0;
    for (const HeadTrace& head : trace.heads) {
      for (const std::vector<double>& row : stage(head, "dq").values) {
        for (const double value : row) EXPECT_NEAR(value, expected.of(TensorId::dq)[at++], 1e-14) << line;
      }
      EXPECT_EQ(has_stage(head, "dT"), p.softcap.has_value());
      EXPECT_EQ(has_stage(head, "dlse"), p.dlse);
      // Weights that can't change their sum have derivatives whose sum is that of the row's lse.
      for (std::size_t i = 0; i < stage(head, "dS").values.size(); ++i) {
        double sum = 0, visible = 0;
        for (const double value : stage(head, "dS").values[i]) sum += value;
        for (const double weight : stage(head, "weights").values[i]) visible += weight;
        EXPECT_NEAR(sum, p.dlse && visible > 0 ? stage(head, "dlse").values[i][0] : 0, 1e-14);
      }
    }
    EXPECT_EQ(trace.heads.size(), heads * static_cast<std::size_t>(p.batch));
  }
  EXPECT_FALSE(has_stage(trace_line("seq=3 dim=2").heads[0], "dP"));
}

TEST(Trace, CachedAndPagedKeysAreTheOnesThatAreRead) {
  for (const char* line : {"seq=2x6 dim=4 past=4 causal", "seq=2x6 dim=4 lengths=6 paged=4"}) {
    const HeadTrace head = trace_line(line).heads[0];
    const Stage &q = stage(head, "q"), &k = stage(head, "k");
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t j = 0; j < 6; ++j) {
        double product = 0;
        for (std::size_t d = 0; d < 4; ++d) product += q.values[i][d] * k.values[j][d];
        EXPECT_NEAR(stage(head, "scaled_scores").values[i][j], product / 2, 1e-12) << line;
      }
    }
  }
}

TEST(Trace, AxesHaveTheirOwnNames) {
  const Trace trace = trace_line("seq=2x3 dim=4", {true, {}, {}});
  EXPECT_EQ(trace.queries, (std::vector<std::string>{"query 0", "query 1"}));
  EXPECT_EQ(trace.keys, (std::vector<std::string>{"key 0", "key 1", "key 2"}));
  EXPECT_EQ(trace_case(walkthrough("the_cat_sat_on_mat"), {}).keys.back(), "mat");
}

/// -1e9 hides a key as well as -inf does: the count of keys and the list of positions say so.
TEST(Trace, AnAdditiveMaskHidesKeys) {
  const Trace trace = trace_case(walkthrough("three_tokens"), {});
  const HeadTrace& head = trace.heads[0];
  EXPECT_EQ(stage(head, "hidden").values, (std::vector<std::vector<double>>{{0, 1, 1}, {0, 0, 1}, {0, 0, 0}}));
  EXPECT_EQ(stage(head, "seen_keys").values, (std::vector<std::vector<double>>{{0}, {0, 1}, {0, 1, 2}}));
  // A constant added to a whole row hides nothing, however low.
  Case low = walkthrough("three_tokens");
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) low.inputs->at(TensorId::mask).set(0, 0, i, j, -1e9);
  }
  EXPECT_EQ(stage(trace_case(low, {}).heads[0], "seen_keys").values[0].size(), 3u);
}

TEST(Trace, AMaskThatAddsAndHides) {
  const HeadTrace head = trace_case(walkthrough("first_principles_causal"), {}).heads[0];
  EXPECT_EQ(stage(head, "added").values[1], (std::vector<double>{1, 1, -kInfinity, -kInfinity}));
  EXPECT_FALSE(has_stage(trace_line("seq=3 dim=4").heads[0], "hidden"));
}

TEST(Trace, DroppedWeightsTimesValuesAreTheOutput) {
  const HeadTrace head = trace_line("dtype=f64 seq=6 dim=3 dropout=0.5").heads[0];
  const Stage &dropped = stage(head, "dropped_weights"), &v = stage(head, "v"), &output = stage(head, "output");
  double from_weights = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      double sum = 0, other = 0;
      for (std::size_t j = 0; j < 6; ++j) {
        sum += dropped.values[i][j] * v.values[j][c];
        other += stage(head, "weights").values[i][j] * v.values[j][c];
      }
      EXPECT_NEAR(sum, output.values[i][c], 1e-14);
      from_weights = std::max(from_weights, std::fabs(other - output.values[i][c]));
    }
  }
  EXPECT_GT(from_weights, 0.01);  // without the stage the output could not be told from the weights
}

TEST(Trace, SumsAndStatistics) {
  const HeadTrace head = trace_case(walkthrough("first_principles"), {}).heads[0];
  const auto json = stage_json(stage(head, "scaled_scores"));
  EXPECT_NEAR(json["row_sums"][0].get<double>(), -1.15008343, 5e-9);
  EXPECT_NEAR(json["column_sums"][3].get<double>(), 1.69492447, 5e-9);
  EXPECT_EQ(stage(head, "statistics").values[0][0], -0.014059075471320182);
  EXPECT_EQ(stage(head, "statistics").values[2][1], 1.3269897497216636);
}

/// A file's embeddings and projections are shown; that they give its q, k and v is checked with its results.
TEST(Trace, ShowsEmbeddingsAndProjectionsOfAFile) {
  Case source = case_from_line("dtype=f64 seq=3 dim=4/5");
  source.golden.emplace();
  const auto tensor = [](std::int64_t rows, std::int64_t columns) {
    return FileTensor{"F64", {rows, columns}, std::vector<std::byte>(static_cast<std::size_t>(rows * columns) * 8)};
  };
  source.golden->stages = {{"X", tensor(3, 7)}, {"W_Q", tensor(7, 4)}, {"W_V", tensor(7, 5)}};
  const Trace trace = trace_case(source, {});
  std::vector<std::string> names;
  for (const Stage& one : trace.stages) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"shapes", "X", "parameters", "W_Q", "W_V"}));
  EXPECT_EQ(trace.stages[0].values[0], (std::vector<double>{1, 1, 3, 7}));
  EXPECT_EQ(trace.stages[1].values, (std::vector<std::vector<double>>(3, std::vector<double>(7))));
  EXPECT_EQ(trace.stages[2].values, (std::vector<std::vector<double>>{{7, 4, 28}, {7, 5, 35}}));
}

TEST(Trace, WrongRequestsAreNamed) {
  const Case cat = walkthrough("the_cat_sat_on_mat");
  EXPECT_EQ(complaint([&] { trace_case(cat, {false, 1, {}}); }), "--batch 1: this case has 0 to 0");
  EXPECT_EQ(complaint([&] { trace_case(cat, {false, {}, -1}); }), "--head -1: this case has 0 to 0");
}

TEST(Trace, JsonHoldsEveryStageThatIsPrinted) {
  const Trace trace = trace_line("batch=2 seq=3 dim=4 heads=2 causal softcap=5 sinks dropout=0.2 alibi");
  const std::string text = printed([&] { print_trace(trace, 4); });
  const nlohmann::json json = nlohmann::json::parse(trace_json(trace));
  std::size_t stages = json["stages"].size(), titles = 0;
  for (const auto& head : json["heads"]) stages += head["stages"].size();
  for (std::size_t at = text.find("  ["); at != std::string::npos; at = text.find("  [", at + 1)) ++titles;
  EXPECT_EQ(stages, titles);
  EXPECT_GT(stages, 60u);
}

}  // namespace
}  // namespace attest
