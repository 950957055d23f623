#include "harness/speed/timing/timed_case.h"

#include "harness/cases/memory.h"

namespace attest {
namespace {

/// The same call with its data made, from another seed where one is given.
Case with_inputs(const Case& source, int threads, const std::uint64_t* seed) {
  Case made = source;
  check_memory(source.problem, source.label);
  // Not set_seed: dropout's seed belongs to the call that the plans are made for.
  if (seed) made.problem.data.seed = *seed;
  made.inputs = make_inputs(made.problem, threads);
  return made;
}

Case with_other_data(const Case& source, int threads, std::uint64_t seed) {
  return with_inputs(source, threads, &seed);
}

/// Of a case of gradients: the same call with other data, drawn from its own.
std::optional<Case> known_besides(const Case& source, int threads, std::mt19937_64& random) {
  if (!source.problem.call.wants_gradients()) return std::nullopt;
  Case other = source;
  other.problem.data.seed = random();  // of the rows and keys that are checked
  other.inputs = redrawn(source.problem, *source.inputs, random(), threads);
  return other;
}

ChangingInputs changing_from(const Case& source, const std::optional<Case>& other, std::uint64_t seed) {
  if (!other) return {*source.inputs, seed};
  return {source.problem, {&*source.inputs, &*other->inputs}, seed};
}

}  // namespace

void check_memory_to_time(const Case& one, std::size_t count, bool isolated) {
  // Two cases with inputs, of gradients three, of which memory_needed counts one; up to two sets of changing inputs,
  // each kept twice; a second set of outputs; and plans of all backends at once, each with inputs and outputs of its
  // own, of which it counts one. What is shared with a process is there once more.
  const double here = one.problem.call.wants_gradients() ? 7 : 6;
  const auto all = static_cast<double>(count);
  check_memory(one.problem, one.label, here + (isolated ? 2 : 1) * all - 1);
}

TimedCase::TimedCase(const Case& source, const std::vector<Backend*>& backends, int threads, std::uint64_t seed)
    : threads_(threads),
      random_(seed),
      source_(with_inputs(source, threads, nullptr)),
      other_(with_other_data(source, threads, random_())),
      asked_(ask_all(source_, backends)),
      as_written_(source_, asked_, threads),
      unseen_(other_, asked_, threads),
      other_known_(known_besides(source_, threads, random_)),
      changing_(changing_from(source_, other_known_, random_())),
      outputs_(source_.problem),
      more_outputs_(source_.problem) {
  if (other_known_) also_known_.emplace(*other_known_, asked_, threads);
}

SampleRows TimedCase::expected_rows(const Standard& standard, std::uint64_t draw) {
  // Of what the plan was given, wherever it may write.
  const Inputs given = changing_.kept().views();
  if (!also_known_) return {problem(), given, standard, draw};
  const PreparedCase& known = changing_.known() == 0 ? as_written_ : *also_known_;
  return {problem(), given, known.expectation(), standard, changing_.signs()};
}

}  // namespace attest
