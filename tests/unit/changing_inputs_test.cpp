// No element of a benchmark's data is what it was in the run before, so that nothing of an earlier run helps.
#include "harness/speed/trust/changing_inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "harness/cases/other_data.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Of a tensor, by place: its elements as numbers.
std::map<std::size_t, double> elements(const ConstTensor& t) {
  std::map<std::size_t, double> values;
  for (std::int64_t b = 0; b < t.shape[0]; ++b) {
    const std::int64_t rows = t.starts ? t.starts[b + 1] - t.starts[b] : t.shape[2];
    for (std::int64_t h = 0; h < t.shape[1]; ++h) {
      for (std::int64_t l = 0; l < rows; ++l) {
        for (std::int64_t d = 0; d < t.shape[3]; ++d) {
          const std::int64_t at = t.offset(b, h, l, d);
          values[static_cast<std::size_t>(at)] = load(t.data, t.dtype, at);
        }
      }
    }
  }
  return values;
}

using Tensors = std::map<std::string, std::map<std::size_t, double>>;

Tensors tensors_of(const Inputs& inputs) {
  return {{"q", elements(inputs.q())}, {"k", elements(inputs.k())}, {"v", elements(inputs.v())}};
}

TEST(ChangingInputs, EveryElementIsAnotherThanInTheRunBefore) {
  for (const char* line : {"heads=4/2 seq=33x65 dim=24", "dtype=f16 heads=2 seq=20 dim=16", "dtype=bf16 seq=40 dim=8",
                           "dtype=f64 seq=17 dim=5", "heads=2 seq=16 dim=8 k.strides=0,0,8,1",
                           "batch=2 seq=9x21 dim=8 lengths=q:9,4/k:21,7 layout=thd", "seq=12 dim=8 fill=mixed",
                           "seq=12 dim=8 fill=onehot"}) {
    const Case one = case_from_line(line);
    ChangingInputs changing(make_inputs(one.problem), 7);
    Tensors before = tensors_of(make_inputs(one.problem).views());
    double changed_signs = 0, count = 0;
    const double near = one.problem.call.dtype == DType::bf16  ? 0.025
                        : one.problem.call.dtype == DType::f16 ? 0.008
                                                               : 0.001;
    for (int run = 0; run < 6; ++run) {
      const Tensors now = tensors_of(changing.next());
      for (const auto& [name, values] : now) {
        for (const auto& [at, value] : values) {
          const double earlier = before.at(name).at(at);
          if (std::fabs(earlier) < 1e-37 || !std::isfinite(earlier)) {  // no number, or none with a whole mantissa
            EXPECT_TRUE(std::fabs(value) == std::fabs(earlier) || std::isnan(earlier))
                << line << " " << name << "[" << at << "]";
            continue;
          }
          ASSERT_NE(std::fabs(value), std::fabs(earlier))
              << line << ": run " << run << ", " << name << "[" << at << "]";
          EXPECT_NEAR(std::fabs(value) / std::fabs(earlier), 1, near) << line;
          changed_signs += (value < 0) != (earlier < 0);
          ++count;
        }
      }
      EXPECT_TRUE(changing.intact()) << line;
      before = now;
    }
    EXPECT_NEAR(changed_signs / count, 0.5, 0.15) << line;
    EXPECT_TRUE(changing.all_intact()) << line;
  }
}

TEST(ChangingInputs, KnowsWhoWroteToThemAndPutsThemBack) {
  const Case one = case_from_line("heads=2 seq=20 dim=16");
  ChangingInputs changing(make_inputs(one.problem), 3);
  for (int run = 0; run < 5; ++run) changing.next();
  const Inputs& shown = changing.next();
  auto* element = static_cast<float*>(const_cast<void*>(shown.k().data)) + 5;
  const float right = *element;
  *element = 2 * right;
  EXPECT_FALSE(changing.intact());
  changing.restore();
  EXPECT_TRUE(changing.all_intact());
  EXPECT_EQ(*element, right);
}

TEST(ChangingInputs, ASeedRepeatsThem) {
  const Case one = case_from_line("seq=20 dim=16");
  ChangingInputs first(make_inputs(one.problem), 3), second(make_inputs(one.problem), 3),
      other(make_inputs(one.problem), 4);
  const Tensors run = tensors_of(first.next());
  EXPECT_EQ(run, tensors_of(second.next()));
  EXPECT_NE(run, tensors_of(other.next()));
}

/// What is given to a backward pass is right for each run.
void expect_saved_results_of(const Problem& problem, ChangingInputs& changing, const std::string& what) {
  CaseInputs again = changing.kept();
  EXPECT_TRUE(changing.all_intact()) << what;
  save_forward(problem, again);
  EXPECT_TRUE(same_data(again, changing.kept())) << what;
}

TEST(ChangingInputs, SavedResultsAreThoseOfTheRunsOwnData) {
  const double cache = last_level_cache_bytes();
  const std::string one_set = "pass=backward dim=64 seq=1x" + std::to_string(std::llround(0.75 * cache / 512));
  for (const std::string& line :
       {std::string("pass=backward heads=4/2 seq=9x13 dim=8 dlse"),
        std::string("pass=backward dtype=bf16 seq=12 dim=4"),
        std::string("pass=backward batch=2 seq=9x21 dim=8 lengths=q:9,4/k:21,7 layout=thd"), one_set}) {
    const Case one = case_from_line(line);
    const CaseInputs first = make_inputs(one.problem), second = redrawn(one.problem, first, 5);
    EXPECT_FALSE(same_data(first, second));
    ChangingInputs changing(one.problem, {&first, &second}, 7);
    EXPECT_EQ(changing.sets(), line == one_set && cache > 0 ? 1u : 2u);
    std::set<std::size_t> known;
    std::set<double> scores;
    for (int run = 0; run < 12; ++run) {
      const Inputs& inputs = changing.next();
      known.insert(changing.known());
      scores.insert(load(inputs.saved_lse().data, inputs.saved_lse().dtype, 0));
      expect_saved_results_of(one.problem, changing, line);
    }
    EXPECT_EQ(known.size(), 2u) << line;
    EXPECT_EQ(scores.size(), 2u) << line << ": scores are others, too";
    changing.stage(first);
    changing.restore();
    expect_saved_results_of(one.problem, changing, line);
  }
}

TEST(ChangingInputs, GradientsGetOthersInEachRun) {
  const Case one = case_from_line("pass=both heads=2 seq=20 dim=16");
  const CaseInputs first = make_inputs(one.problem), second = redrawn(one.problem, first, 5);
  ChangingInputs changing(one.problem, {&first, &second}, 7);
  std::set<std::map<std::size_t, double>> met;
  for (int run = 0; run < 40; ++run) {
    const Inputs& inputs = changing.next();
    for (const ConstTensor& t : {inputs.q(), inputs.k(), inputs.v(), inputs.dout()})
      EXPECT_TRUE(met.insert(elements(t)).second) << run;
  }
}

}  // namespace
}  // namespace attest
