// Which runs of a sample are looked at is decided when they are over: nothing in memory and no seed can tell before.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/speed/timing/timed_plan.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Right; and keeps in mind which of its runs were followed by a download.
class Watching : public faulty::BackendAround {
 public:
  Watching() : BackendAround(faulty::faulty_backends().front().make({1, ""})) {}
  std::unique_ptr<Plan> prepare(const Call& p) override { return std::make_unique<Watch>(*this, inner_->prepare(p)); }

  int runs = 0;
  std::vector<int> looked;

 private:
  class Watch : public faulty::PlanAround {
   public:
    Watch(Watching& owner, std::unique_ptr<Plan> inner) : PlanAround(std::move(inner)), owner_(owner) {}
    void upload(const Inputs& inputs) override {
      inner_->upload(inputs);
      due_ = false;
    }
    void run() override {
      inner_->run();
      due_ = true;
      ++owner_.runs;
    }
    void download(const Outputs& outputs) override {
      inner_->download(outputs);
      if (due_) owner_.looked.push_back(owner_.runs);
      due_ = false;
    }

   private:
    Watching& owner_;
    bool due_ = false;
  };
};

constexpr int kSamples = 12, kRuns = 20;

/// Of each sample the runs that were looked at, the last one apart.
std::vector<std::vector<int>> looks(std::uint64_t seed) {
  Watching backend;
  const Case one = case_from_line("seq=8 dim=4");
  TimedCase shared(one, {&backend}, 1, seed);
  TimedPlan plan(backend, shared);
  std::vector<std::vector<int>> all;
  for (int sample = 0; sample < kSamples; ++sample) {
    plan.begin_sample(kRuns, 0);
    std::vector<int> runs;
    for (int n = 0; n < kRuns; ++n) {
      backend.looked.clear();
      plan.run_once();
      if (!backend.looked.empty()) runs.push_back(n);
    }
    plan.end_sample();
    EXPECT_EQ(plan.wrong().text, "");
    EXPECT_FALSE(runs.empty());
    EXPECT_EQ(runs.back(), kRuns - 1) << "the last run of each sample is always looked at";
    if (!runs.empty()) runs.pop_back();
    all.push_back(runs);
  }
  return all;
}

TEST(Looks, AreNotWhatTheSeedSays) { EXPECT_NE(looks(5), looks(5)); }

TEST(Looks, DoNotEndWithTheFirst) {
  int several = 0, any = 0, most = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const std::vector<int>& sample : looks(seed)) {
      any += !sample.empty();
      several += sample.size() > 1;
      most = std::max(most, static_cast<int>(sample.size()));
    }
  }
  EXPECT_GE(any, 25) << "of " << 4 * kSamples << " samples";
  EXPECT_GE(several, 5) << "whoever was looked at once may be looked at again in the same sample";
  EXPECT_LE(most, 10);
}

}  // namespace
}  // namespace attest
