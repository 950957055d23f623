#include "harness/relate/bitwise.h"

#include "backends/refusal.h"
#include "harness/relate/differences.h"
#include "harness/relate/relations.h"
#include "harness/verdict/plan_execution.h"

namespace attest {

BitwiseFacts bitwise_facts(Backend& backend, std::span<Backend* const> others, const Problem& problem,
                           const Inputs& inputs, const Differing& differing) {
  const Call& p = problem.call;
  BitwiseFacts facts;
  GuardedOutputs whole(p);
  walk_once(backend, p, inputs, whole);
  // Whether a result of a part, or of the call again, has the bits of the whole; one that differs is told of.
  const auto same = [&](const Backend& whose, Plan& plan, const Arrangement& part, const Inputs& own, Cause cause) {
    GuardedOutputs outputs(part.call);
    execute(plan, own, &outputs);
    bool alike = true;
    each_common_element(p, whole, part, outputs, [&](TensorId, const Index4&, const Index4&, double one, double other) {
      alike = alike && have_same_bits(one, other);
    });
    if (!alike && differing) differing(whose, part.call, own, outputs, cause);
    return alike;
  };
  // All of them, also after one that differs: each may be wrong in its own way.
  Arrangement again = Arrangement::same(p);
  again.call = p;
  facts.runs = true;
  const auto plan = make_plan(backend, p);
  for (int run = 0; run < 5; ++run) facts.runs = same(backend, *plan, again, inputs, Cause::run_again) && *facts.runs;
  for (Backend* other : others) {
    facts.threads =
        same(*other, *make_plan(*other, p), again, inputs, Cause::other_threads) && facts.threads.value_or(true);
  }
  for (const Arrangement& one : relation_named("batch").derive(problem, inputs)) {
    if (refusal_of(backend, one.call)) continue;
    const CaseInputs own = inputs_of_part(one, p, inputs);
    facts.batch = same(backend, *make_plan(backend, one.call), one, own.views(), Cause::without_batch) &&
                  facts.batch.value_or(true);
  }
  return facts;
}

}  // namespace attest
