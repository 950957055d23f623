// Facts about bits: each is noticed when it is not so.
#include "harness/relate/bitwise.h"

#include <cmath>
#include <functional>

#include "tests/faulty/around.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// The example backend, one element of whose result moves by a rounding when `moves` says so.
class Wavering : public faulty::BackendAround {
 public:
  explicit Wavering(std::function<bool(const Call&)> moves)
      : BackendAround(faulty::make_example()), moves_(std::move(moves)) {}
  std::unique_ptr<Plan> prepare(const Call& p) override {
    return std::make_unique<WaveringPlan>(inner_->prepare(p), [this, p] { return moves_(p); });
  }

 private:
  class WaveringPlan : public faulty::PlanAround {
   public:
    WaveringPlan(std::unique_ptr<Plan> plan, std::function<bool()> moves)
        : PlanAround(std::move(plan)), moves_(std::move(moves)) {}
    void download(const Outputs& outputs) override {
      PlanAround::download(outputs);
      if (!moves_()) return;
      const MutableTensor& o = outputs.out();
      const std::int64_t last = o.offset(o.shape[0] - 1, 0, 0, 0);
      store(o.data, o.dtype, last, std::nextafter(static_cast<float>(load(o.data, o.dtype, last)), 9.0f));
    }

   private:
    std::function<bool()> moves_;
  };
  std::function<bool(const Call&)> moves_;
};

BitwiseFacts facts(const std::string& line, Backend& backend, Backend* other) {
  const Problem p = parse_case(line);
  const CaseInputs inputs = make_inputs(p);
  std::vector<Backend*> others;
  if (other) others.push_back(other);
  return bitwise_facts(backend, others, p, inputs.views());
}

TEST(Bitwise, EachFactIsNoticed) {
  const std::string line = "batch=3 seq=4 dim=3 lengths=4,2,3 out=o,lse";
  Wavering steady([](const Call&) { return false; }), always([](const Call&) { return true; });
  const BitwiseFacts all = facts(line, steady, &steady);
  EXPECT_TRUE(*all.runs && *all.threads && *all.batch);

  int runs = 0;
  Wavering sometimes([&](const Call&) { return ++runs % 5 == 0; });
  EXPECT_FALSE(*facts(line, sometimes, &steady).runs);

  const BitwiseFacts threads = facts(line, steady, &always);
  EXPECT_TRUE(*threads.runs && *threads.batch);
  EXPECT_FALSE(*threads.threads);

  Wavering alone([](const Call& p) { return p.batch == 1; });
  const BitwiseFacts batch = facts(line, alone, &steady);
  EXPECT_TRUE(*batch.runs && *batch.threads);
  EXPECT_FALSE(*batch.batch);
}

TEST(Bitwise, WhatCannotBeAskedIsLeftOut) {
  Wavering steady([](const Call&) { return false; });
  EXPECT_FALSE(facts("seq=4 dim=3", steady, nullptr).batch);
  EXPECT_FALSE(facts("seq=4 dim=3", steady, nullptr).threads);
  // The first sequence draws the same weights alone; the others would not.
  Wavering alone([](const Call& p) { return p.batch == 1; });
  EXPECT_FALSE(*facts("batch=2 seq=4 dim=3 dropout=0.5", alone, nullptr).batch);
  EXPECT_TRUE(*facts("batch=2 seq=4 dim=3 dropout=0.5", steady, nullptr).batch);
}

TEST(Bitwise, ASequenceAloneHasItsOwnRows) {
  // The example adds in one order whatever the batch: any difference is a slice taken from the wrong place.
  Wavering steady([](const Call&) { return false; });
  for (const char* line : {"batch=3 heads=4/2 seq=4x6 dim=3 causal align=bottom-right mask=add:BHQK:neginf(0.3)",
                           "batch=2 heads=2 seq=3x5 dim=4 mask=bool:B11K:random(0.5) layout=blhd k.offset=3",
                           "batch=2 seq=3x11 dim=4 lengths=11,4 paged=4", "batch=2 seq=4x8 dim=4 past=3 out=o,present",
                           "batch=2 seq=4 dim=3 lengths=4,2 layout=thd", "batch=2 seq=4x9 dim=4 past=5,2",
                           // What sums over the batch is another number for a sequence alone, and is not compared.
                           "pass=both batch=2 heads=2 seq=4 dim=3 sinks mask=add:1HQK:normal out=o,dk,dmask,dsinks",
                           "batch=2 heads=2 seq=9x12 dim=4 blocks=4x3:random(0.5)",
                           "op=gated_delta batch=2 heads=2 seq=5 dim=3 state out=o,present",
                           "batch=2 seq=4 dim=3 alibi sinks dtype=f16 out=o,lse,weights"}) {
    EXPECT_EQ(facts(line, steady, nullptr).batch, true) << line;
  }
}

}  // namespace
}  // namespace attest
