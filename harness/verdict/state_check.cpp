#include "harness/verdict/state_check.h"

#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "backends/refusal.h"
#include "harness/base/junk_memory.h"
#include "harness/base/stopwatch.h"
#include "harness/base/user_error.h"
#include "harness/cases/fill.h"
#include "harness/cases/memory.h"
#include "harness/cases/other_data.h"
#include "harness/cases/other_launch.h"
#include "harness/verdict/interleaved_plans.h"
#include "reference/call/call.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

/// Up to here a run costs next to nothing beside the reference.
constexpr double kSmallMultiplyAdds = 20'000;
/// Of the larger cases, one in so many; those with interleaved plans are warmed up, too.
constexpr std::uint64_t kWarmedUpOneIn = 8, kAccompaniedOneIn = 32;
/// One case in so many has an interleaved plan that differs in its strides, as many one in its mask, and in its type.
constexpr std::uint64_t kOfOneThing = 6;
/// Three plans take random steps in one small case of six, and in one larger case of 96.
constexpr std::uint64_t kLivesOneIn = 6, kLargeLivesOneIn = 96, kShareStream = 9002;
/// The steps hold the tensors of a case some five times.
constexpr double kMostBytes = 64 << 20;

std::uint64_t number_of(const Problem& problem) {
  constexpr std::uint64_t kStream = 9000;
  std::uint64_t number = 0;
  for (const char c : print_case(problem)) number = hash_words(number, kStream, static_cast<unsigned char>(c));
  return number;
}

}  // namespace

StateSteps state_steps(const Problem& problem, std::uint64_t run_seed) {
  if (storage_bytes(problem) > kMostBytes) return {};
  const double work = dense_multiply_adds(problem);
  const std::uint64_t drawn = hash_words(life_seed(problem, run_seed), kShareStream, 0);
  // Without a key there is little to mix up.
  if (work <= kSmallMultiplyAdds) return {true, true, work > 0, work > 0 && drawn % kLivesOneIn == 0};
  const std::uint64_t number = number_of(problem);
  const bool warmed_up = number % kWarmedUpOneIn == 0;
  return {warmed_up, warmed_up, number % kAccompaniedOneIn == 0, drawn % kLargeLivesOneIn == 0};
}

std::uint64_t life_seed(const Problem& problem, std::uint64_t run_seed) {
  constexpr std::uint64_t kStream = 9001;
  return hash_words(number_of(problem), kStream, run_seed);
}

/// A plan of another call with the data and outputs that it uses.
struct StateCheck::InterleavedPlan {
  Problem problem;
  CaseInputs data;
  GuardedOutputs outputs;
  std::unique_ptr<Plan> plan;

  explicit InterleavedPlan(const Problem& p) : problem(p), data(make_inputs(p)), outputs(p) {}
  void upload() { plan->upload(data.views()); }
  void run() { plan->run(); }
};

StateCheck::StateCheck(Backend& backend, const Problem& problem, const CaseInputs& data, StateSteps steps)
    : backend_(backend), problem_(problem), data_(data), steps_(steps) {}

StateCheck::~StateCheck() = default;

std::unique_ptr<StateCheck::InterleavedPlan> StateCheck::interleaved_plan(const Problem& problem) {
  try {
    if (refusal_of(backend_, problem)) return nullptr;
    auto other = std::make_unique<InterleavedPlan>(problem);
    other->plan = make_plan(backend_, problem);
    attest::execute(*other->plan, other->data.views(), &other->outputs);
    return other;
  } catch (const CaseFault& fault) {
    const std::string reason = std::string(fault.what()) + " of a plan for '" + print_case(problem) + "'";
    interleaved_.clear();  // their process may be gone
    interleaved_fault_ = std::make_exception_ptr(CaseFault(fault.status(), fault.cause(), reason));
    return nullptr;
  } catch (...) {
    return nullptr;  // it isn't the case in question: a line of its own would tell
  }
}

void StateCheck::accompany(const Problem& problem) {
  if (interleaved_fault_) return;
  if (std::unique_ptr<InterleavedPlan> other = interleaved_plan(problem)) interleaved_.push_back(std::move(other));
}

void StateCheck::interleaved_do(void (InterleavedPlan::*step)()) {
  for (auto& one : interleaved_) {
    if (one) (*one.*step)();
  }
}

/// Once on other data, which then give way to the case's own; and where lengths are data, with others before.
void StateCheck::warm_up_plan(GuardedOutputs& outputs) {
  if (problem_.call.dynamic) {
    const Problem before = other_launch(problem_);
    bool can_hold = true;
    try {
      launched_before_ = make_inputs(before);
    } catch (const UserError&) {
      can_hold = false;  // a number that the next seed draws is beyond the range of a tensor's type
    }
    GuardedOutputs others(before);
    if (can_hold) attest::execute(*plan_, launched_before_.views(), &others);
  }
  staged_ = data_;
  change_data(problem_, staged_);
  attest::execute(*plan_, staged_.views(), &outputs);
  copy_data(data_, staged_);
  outputs.reset();
}

StepSeconds StateCheck::execute(GuardedOutputs& outputs) {
  // Before the plan and after it: what a backend keeps of its first plan and of its last is then another's.
  if (steps_.interleaved) {
    const std::uint64_t which = number_of(problem_) / kAccompaniedOneIn % kOfOneThing;
    constexpr OneThing kThings[] = {OneThing::strides, OneThing::mask, OneThing::type};
    std::optional<Problem> other;
    if (which < std::size(kThings)) other = same_but_one_thing(problem_, kThings[which]);
    accompany(same_sizes_other_values(problem_));
    if (other) accompany(*other);
  }
  double prepare = 0;
  {
    std::optional<JunkMemory> junk;
    if (steps_.junk_memory) junk.emplace();
    prepare = timed([&] { plan_ = make_plan(backend_, problem_); });
    if (steps_.warm_up) warm_up_plan(outputs);
  }
  if (steps_.interleaved) accompany(other_sizes(problem_));
  BetweenSteps between;
  if (steps_.interleaved) {
    between.after_upload = [this] { interleaved_do(&InterleavedPlan::upload); };
    between.after_run = [this] { interleaved_do(&InterleavedPlan::run); };
  }
  StepSeconds seconds = attest::execute(*plan_, (steps_.warm_up ? staged_ : data_).views(), &outputs, between);
  seconds.prepare = prepare;
  return seconds;
}

void StateCheck::require_interleaved() const {
  if (interleaved_fault_) std::rethrow_exception(interleaved_fault_);
}

void StateCheck::download_again(GuardedOutputs& outputs) { plan_->download(outputs.views()); }

void StateCheck::execute_in_another_thread(GuardedOutputs& outputs) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      attest::execute(*plan_, (steps_.warm_up ? staged_ : data_).views(), &outputs);
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace attest
