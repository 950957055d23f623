// What a plan may not count on: each kind of kept state is found, by its own name, and right backends never are.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "harness/backends/isolation/file_space.h"
#include "harness/base/junk_memory.h"
#include "harness/cases/fill.h"
#include "harness/cases/other_data.h"
#include "harness/verdict/interleaved_plans.h"
#include "harness/verdict/plan_execution.h"
#include "harness/verdict/state_check.h"
#include "reference/options/find_fault.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"
#include "tests/faulty/stateful.h"
#include "tests/unit/helpers.h"
#include "tests/unit/run_lines.h"

namespace attest {
namespace {

Verdict check(const std::string& line, const std::string& name) {
  const BackendSet set(faulty::faulty_backends(), {name}, {1, ""});
  const Case source = case_from_line(line);
  return PreparedCase(source, set.all(), 1).check(*set.all().front());
}

/// A line of 3 million multiply-adds whose seed is the first for which `wanted` holds.
template <class Wanted>
std::string large_line(const Wanted& wanted) {
  for (int seed = 1;; ++seed) {
    const std::string line = "heads=2 seq=64x192 dim=64 mask=bool:BHQK:random(0.5) seed=" + std::to_string(seed);
    if (wanted(state_steps(parse_case(line)))) return line;
  }
}

struct Kept {
  const char *backend, *line;
  Cause cause;
  const char* state = "";  ///< which of the states that a fresh plan is free of
};

TEST(State, EachKindIsFoundByItsName) {
  constexpr Cause fresh = Cause::fresh_plan_only;
  const char *before = "in one that ran before with other data", *beside = "beside other plans of this backend";
  const char* line = "heads=2 seq=5x7 dim=4";
  for (const Kept& kept : {
           Kept{"packs_once_per_address", line, fresh, before},
           Kept{"keeps_first_mask", "seq=5x7 dim=4 mask=bool:BHQK:random(0.5)", fresh, before},
           Kept{"keeps_first_mask", "seq=5x7 dim=4 mask=bool:BHQK:all", fresh, before},
           Kept{"keeps_first_mask", "seq=5x7 dim=4 mask=add:1H1K:neginf(0.3) mask.dtype=f64", fresh, before},
           Kept{"keeps_first_page_table", "batch=2 seq=3x11 dim=4 lengths=11,4 paged=4", fresh, before},
           Kept{"keeps_first_blocks", "seq=9x12 dim=4 blocks=4x3:random(0.5)", fresh, before},
           Kept{"keeps_first_sinks", "heads=2 seq=5 dim=4 sinks", fresh, before},
           Kept{"adds_to_workspace", line, fresh, before},
           Kept{"wrong_the_second_time", line, fresh, before},
           Kept{"uses_last_plan", line, fresh, beside},
           Kept{"shared_result", line, fresh, beside},
           Kept{"keeps_first_slopes", "heads=2 seq=5 dim=4 alibi", Cause::outside_bound},
           Kept{"keeps_first_slopes", "heads=2 seq=5 dim=4 alibi=0.5,2", Cause::outside_bound},
           Kept{"keeps_first_lengths", "batch=2 seq=5x7 dim=4 lengths=7,4", Cause::outside_bound},
           Kept{"keeps_first_seed", "seq=5x7 dim=4 dropout=0.5 seed=3", Cause::outside_bound},
           Kept{"adds_to_output", line, Cause::counts_on_zeros},
           Kept{"scales_at_each_download", line, Cause::second_download},
           Kept{"thread_of_prepare", line, Cause::another_thread},
       }) {
    SCOPED_TRACE(std::string(kept.backend) + ": " + kept.line);
    const Verdict verdict = check(kept.line, kept.backend);
    EXPECT_EQ(verdict.status, Status::fail);
    EXPECT_EQ(verdict.cause.kind, kept.cause) << verdict.reason;
    EXPECT_NE(verdict.reason.find(kept.state), std::string::npos) << verdict.reason;
    // By itself the case is right: nothing else would find it.
    const BackendSet set(faulty::stateful_backends(), {kept.backend}, {1, ""});
    const Case source = case_from_line(kept.line);
    const PreparedCase prepared(source, set.all(), 1);
    GuardedOutputs outputs(source.problem);
    if (std::string(kept.backend) == "adds_to_output") outputs.reset_to_zeros();
    walk_once(*set.all().front(), source.problem, prepared.inputs(), outputs);
    if (std::string(kept.backend) == "adds_to_output") continue;  // its zeros are no guards
    EXPECT_NO_THROW(prepared.require_right(prepared.answers_of(*set.all().front()), source.problem, prepared.inputs(),
                                           outputs, Cause::run_again));
  }
}

TEST(State, MemoryThatMustBeZeroIsFound) {
#if defined(__GLIBC__)
  if (kSanitized) GTEST_SKIP() << "the sanitizer has an allocator of its own";
  const Verdict verdict = check("seq=5x7 dim=4", "needs_zeroed_memory");
  EXPECT_EQ(verdict.cause.kind, Cause::fresh_plan_only);
  EXPECT_NE(verdict.reason.find("in memory that held no zeros"), std::string::npos) << verdict.reason;
#else
  GTEST_SKIP() << "only glibc fills memory on request";
#endif
}

TEST(State, LargeCasesAreARuleOfTheirLine) {
  const std::string warmed_up = large_line([](StateSteps s) { return s.warm_up && !s.interleaved; });
  const std::string accompanied = large_line([](StateSteps s) { return s.interleaved; });
  const std::string plain = large_line([](StateSteps s) { return s == StateSteps{}; });
  for (const char* name : {"keeps_first_mask_of_large", "wrong_the_second_time_large"}) {
    for (const std::string& line : {warmed_up, accompanied}) {
      const Verdict verdict = check(line, name);
      EXPECT_EQ(verdict.cause.kind, Cause::fresh_plan_only) << name << " " << line << " " << verdict.reason;
      EXPECT_EQ(verdict.reason, check(line, name).reason);  // it repeats
    }
    EXPECT_EQ(check(plain, name).status, Status::pass);
  }
  EXPECT_EQ(check(accompanied, "shared_result").status, Status::fail);
  EXPECT_EQ(check(accompanied, "thread_of_prepare").status, Status::fail);
  EXPECT_EQ(check(accompanied, "correct").status, Status::pass);
}

TEST(State, OneLargeCaseInEightIsWarmedUpAndEverySmallOne) {
  int warmed_up = 0, accompanied = 0;
  Problem large = parse_case("heads=2 seq=64x192 dim=64"), small = parse_case("seq=5x7 dim=4");
  for (std::uint64_t seed = 0; seed < 1024; ++seed) {
    large.set_seed(seed);
    small.set_seed(seed);
    const StateSteps steps = state_steps(large);
    EXPECT_TRUE(steps.warm_up || !steps.interleaved);
    warmed_up += steps.warm_up;
    accompanied += steps.interleaved;
    EXPECT_TRUE(state_steps(small).warm_up && state_steps(small).interleaved);
  }
  EXPECT_NEAR(warmed_up, 128, 40);
  EXPECT_NEAR(accompanied, 32, 20);
  // Several copies of such tensors might not fit.
  EXPECT_EQ(state_steps(parse_case("batch=64 heads=8 seq=1024 dim=64")), StateSteps{});
}

std::vector<std::byte> copy_of(const TensorBytes& memory) { return {memory.data(), memory.data() + memory.size()}; }

TEST(OtherData, ChangesAllThatAnUploadBringsWhereItLies) {
  for (const char* line :
       {"batch=2 heads=4/2 seq=5x9 dim=8/4 mask=bool:BHQK:all blocks=2x3:none sinks alibi align=top-left",
        "dtype=f64 seq=4 dim=3 past=2",
        "batch=2 heads=2 seq=4x11 dim=8 lengths=11,3 paged=4 mask=add:BHQK:neginf(0.5) dtype=f16",
        "dtype=bf16 seq=6 dim=4 mask=add:11QK:normal mask.dtype=f32 q.offset=3",
        "batch=2 seq=7 dim=4 lengths=7,3 layout=thd", "op=gated_delta batch=2 heads=2 seq=5 dim=3 state"}) {
    SCOPED_TRACE(line);
    const Problem p = parse_case(line);
    const CaseInputs data = make_inputs(p);
    CaseInputs other = data;
    const Inputs before = other.views();
    change_data(p, other);
    const Inputs after = other.views();
    for (const TensorId id : data.list()) {
      EXPECT_EQ(before.at(id).data, after.at(id).data) << name_of(id);
      const auto was = copy_of(data.at(id).memory()), is = copy_of(other.at(id).memory());
      if (id == TensorId::slopes) {
        EXPECT_EQ(was, is);  // the call says them
      } else if (!was.empty()) {
        EXPECT_NE(was, is) << name_of(id);
      }
      if (id == TensorId::page_table) {
        EXPECT_TRUE(std::is_permutation(was.begin(), was.end(), is.begin()));
      }
    }
    copy_data(data, other);
    EXPECT_TRUE(same_data(data, other));
  }
}

TEST(OtherData, ListedSinksBelongToTheCall) {
  const Problem p = parse_case("heads=2 seq=4 dim=4 sinks=1,2");
  CaseInputs inputs = make_inputs(p);
  change_data(p, inputs);
  EXPECT_EQ(list_numbers(inputs.views().sinks()), (std::vector<double>{1, 2}));
}

TEST(OtherData, ShowsWhatWasHiddenAndTogglesNaN) {
  const Problem p = parse_case("heads=2 seq=9 dim=4 mask=bool:BHQK:random(0.5) poison=hidden:v");
  const CaseInputs data = make_inputs(p);
  CaseInputs other = data;
  change_data(p, other);
  int hidden_now = 0;
  for (std::size_t n = 0; n < data.at(TensorId::mask).bytes(); ++n) {
    const bool before = data.at(TensorId::mask).memory().data()[n] != std::byte{0},
               after = other.at(TensorId::mask).memory().data()[n] != std::byte{0};
    EXPECT_TRUE(before || after);
    hidden_now += !after;
  }
  EXPECT_GT(hidden_now, 10);
  const auto first_value = [](const CaseInputs& inputs) {
    return load(inputs.at(TensorId::v).view().data, DType::f32, 0);
  };
  EXPECT_NE(std::isnan(first_value(data)), std::isnan(first_value(other)));
}

TEST(InterleavedPlans, SayOtherNumbersForTheSameSizes) {
  const Problem p = parse_case(
      "batch=2 heads=2 seq=5x8 dim=4 lengths=8,4 alibi align=top-left sinks=1,2 softcap=3 dropout=0.5 seed=7");
  const Problem other = same_sizes_other_values(p);
  EXPECT_FALSE(find_fault(other));
  EXPECT_EQ(other.call.query_length, p.call.query_length);
  EXPECT_EQ(other.call.key_length, p.call.key_length);
  EXPECT_NE(other.call.lengths, p.call.lengths);
  EXPECT_NE(make_slopes(other), make_slopes(p));
  EXPECT_NE(other.call.sink_values, p.call.sink_values);
  EXPECT_NE(other.call.dropout_seed, p.call.dropout_seed);
  EXPECT_NE(other.call.scale_value(), p.call.scale_value());
  EXPECT_NE(other.call.softcap, p.call.softcap);
  const Problem none = same_sizes_other_values(parse_case("heads=2 seq=5 dim=4 sinks=1,-inf"));
  EXPECT_EQ(none.call.sink_values, (std::vector<double>{0, -std::numeric_limits<double>::infinity()}));
  const Problem small = other_sizes(p);
  EXPECT_FALSE(find_fault(small));
  EXPECT_NE(small.call.key_length, p.call.key_length);
}

constexpr std::int64_t kQueries = 3;

/// The example, which hands out the number that lies before its queries; where there are `kQueries`, as in the case and
/// not in a plan beside it, something is there.
class ReadsBeside : public faulty::BackendAround {
 public:
  ReadsBeside() : BackendAround(faulty::make_example()) {}
  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<ReadingPlan>(inner_->prepare(call), call.query_length == kQueries);
  }

 private:
  struct ReadingPlan : faulty::PlanAround {
    ReadingPlan(std::unique_ptr<Plan> inner, bool has_padding) : PlanAround(std::move(inner)), padded(has_padding) {}
    void upload(const Inputs& inputs) override {
      q = inputs.q();
      PlanAround::upload(inputs);
    }
    void download(const Outputs& outputs) override {
      PlanAround::download(outputs);
      if (!padded) return;
      const std::size_t size = size_of(q.dtype);
      std::memcpy(outputs.out().data, static_cast<const std::byte*>(q.data) - size, size);
    }
    ConstTensor q;
    bool padded;
  };
};

TEST(Padding, ReadBesideAnInputIsNoOutputLeftUnwritten) {
  for (const char* type : {"f64", "f32", "f16", "bf16"}) {
    ReadsBeside backend;
    const Case source = case_from_line("seq=" + std::to_string(kQueries) + " dim=2 q.offset=5 dtype=" + type);
    const Verdict verdict = PreparedCase(source, {&backend}, 1).check(backend);
    EXPECT_EQ(verdict.cause, (FailureCause{Cause::not_finite, "o"})) << verdict.reason;
  }
}

std::vector<Verdict> run(const BackendSet& backends, const std::vector<BackendSet>& others, bool bitwise,
                         const std::string& line) {
  CheckSettings settings = without_shrinking();
  settings.bitwise = bitwise;
  return run_lines(backends, {line}, settings, others).verdicts;
}

TEST(Threads, MoreThanCoresAreTried) {
  const std::vector<BackendEntry> registry = {faulty::oversubscribed_backend()};
  const BackendSet one(registry, {}, {1, ""});
  std::vector<BackendSet> oversubscribed;
  oversubscribed.emplace_back(registry, std::vector<std::string>{}, Context{100'000, ""});
  for (const bool bitwise : {false, true}) {
    const std::vector<Verdict> verdicts = run(one, oversubscribed, bitwise, "seq=5x7 dim=4");
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].status, Status::fail);
    EXPECT_EQ(verdicts[0].cause.kind, bitwise ? Cause::other_threads : Cause::more_threads_than_cores);
  }
  EXPECT_EQ(run(one, {}, false, "seq=5x7 dim=4")[0].status, Status::pass);
}

/// The example, one element of whose result is moved by `move` when a sequence is alone.
class OtherAlone : public faulty::BackendAround {
 public:
  explicit OtherAlone(double (*move)(double)) : BackendAround(faulty::make_example()), move_(move) {}
  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<MovingPlan>(inner_->prepare(call), call.batch == 1 ? move_ : nullptr);
  }

 private:
  struct MovingPlan : faulty::PlanAround {
    MovingPlan(std::unique_ptr<Plan> inner, double (*by)(double)) : PlanAround(std::move(inner)), move(by) {}
    void download(const Outputs& outputs) override {
      PlanAround::download(outputs);
      const MutableTensor& o = outputs.out();
      if (move) store(o.data, o.dtype, 0, move(load(o.data, o.dtype, 0)));
    }
    double (*move)(double);
  };
  double (*move_)(double);
};

TEST(Bitwise, ResultsThatDifferAreJudgedByTheBound) {
  const auto registry_of = [](std::unique_ptr<Backend> (*make)(const Context&)) {
    return std::vector<BackendEntry>{{"example", make, ""}};
  };
  const std::vector<BackendEntry> rounding = registry_of([](const Context&) -> std::unique_ptr<Backend> {
    return std::make_unique<OtherAlone>([](double x) { return std::nextafter(static_cast<float>(x), 9.0f) * 1.0; });
  });
  const std::vector<BackendEntry> wrong = registry_of([](const Context&) -> std::unique_ptr<Backend> {
    return std::make_unique<OtherAlone>([](double x) { return x + 0.125; });
  });
  const std::string line = "batch=3 seq=4 dim=3 lengths=4,2,3 out=o,lse";
  const Verdict within = run(BackendSet(rounding, {}, {1, ""}), {}, true, line)[0];
  EXPECT_EQ(within.status, Status::pass) << within.reason;
  ASSERT_TRUE(within.bitwise && within.bitwise->batch);
  EXPECT_FALSE(*within.bitwise->batch);
  const Verdict beyond = run(BackendSet(wrong, {}, {1, ""}), {}, true, line)[0];
  EXPECT_EQ(beyond.status, Status::fail);
  EXPECT_EQ(beyond.cause.kind, Cause::without_batch);
  EXPECT_NE(beyond.reason.find("o[0,0,0,0]"), std::string::npos) << beyond.reason;
}

TEST(FileSpace, RangesOfLivingPlansNeverOverlap) {
  FileSpace space(100);
  FileRange first(space), second(space);
  EXPECT_EQ(first.resize(10), 100u);
  EXPECT_EQ(second.resize(5), 110u);
  EXPECT_EQ(first.resize(10), 100u);  // the same again stays
  EXPECT_EQ(first.resize(20), 115u);
  FileRange third(space);
  EXPECT_EQ(third.resize(11), 135u);  // the gap of 10 is too small
  EXPECT_EQ(FileRange(space).resize(10), 100u);
  EXPECT_EQ(FileRange(space).resize(10), 100u);  // given back by the one before
}

}  // namespace
}  // namespace attest
