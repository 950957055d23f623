#include "harness/speed/timing/timed_case.h"

#include "harness/base/user_error.h"
#include "harness/cases/memory.h"

namespace attest {
namespace {

/// The same call with its data made, from another seed where one is given.
Case with_inputs(const Case& source, const std::uint64_t* seed) {
  Case made = source;
  check_memory(source.problem, source.label);
  // Not set_seed: dropout's seed belongs to the call that the plans are made for.
  if (seed) made.problem.data.seed = *seed;
  made.inputs = make_inputs(made.problem);
  return made;
}

Case with_other_data(const Case& source, std::uint64_t seed) { return with_inputs(source, &seed); }

}  // namespace

void check_can_be_timed(const Case& one, std::size_t count, bool isolated) {
  // New data before every run would need another o and lse to go with them.
  if (one.problem.call.wants_gradients())
    throw UserError(one.label + ": gradients are checked, and not timed yet; leave pass out");
  // Two cases with inputs, of which memory_needed counts one; up to two sets of changing inputs, each kept twice; a
  // second set of outputs; and plans of all backends at once, each with inputs and outputs of its own, of which it
  // counts one.
  constexpr double kHere = 6;
  const auto all = static_cast<double>(count);
  check_memory(one.problem, one.label, isolated ? kHere * all : kHere + all - 1);
}

TimedCase::TimedCase(const Case& source, const std::vector<Backend*>& backends, int threads, std::uint64_t seed)
    : threads_(threads),
      random_(seed),
      source_(with_inputs(source, nullptr)),
      other_(with_other_data(source, random_())),
      asked_(ask_all(source_, backends)),
      as_written_(source_, asked_, threads),
      unseen_(other_, asked_, threads),
      changing_(*source_.inputs, random_()),
      outputs_(source_.problem),
      more_outputs_(source_.problem) {}

}  // namespace attest
