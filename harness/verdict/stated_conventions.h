// Wrong results that are right by what their backend states of its conventions (backends/conventions.h).
//
// Where the field disagrees a backend may do otherwise than attest, if it says so. What it says is applied to the
// elements that it is about and to no other: NaN in a hidden key may reach a row that hides it, and only that row.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/conventions.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/known_mistakes.h"
#include "reference/call/problem.h"
#include "reference/call/tensors.h"

namespace attest {

/// "hidden_nan=leaks, empty_row=nan": the statements by which these results are right, `producer` being that of the
/// expectation. Empty where they are not, or nothing is stated that is not attest's own. `budget`: that of expect.
std::string right_by_convention(const Conventions& stated, const Problem& problem, const Inputs& inputs,
                                const Expectation& expectation, std::size_t producer, const GuardedOutputs& outputs,
                                int threads, double budget = kRowBudget);

/// Whether anything is stated by which a result may be right that is wrong by attest's definition.
bool changes_results(const Conventions& stated);

/// A call as a backend with these conventions takes it, and how it rounds then.
struct StatedCall {
  MistakenCall taken;
  Arithmetic arithmetic;
  std::set<std::string> used;  ///< the statements that change something
};
StatedCall call_as_stated(const Conventions& stated, const Call& call, const Inputs& inputs,
                          const Arithmetic& arithmetic);

/// The values that a convention may have, in words: "stays out, leaks"; nullopt where there is no such convention.
std::optional<std::string> convention_values(std::string_view name);
/// Whether a value is one of them, or names one among several. What doesn't can't be judged.
bool is_convention_value(std::string_view name, std::string_view value);

/// The N of "shares steps of N keys", 2 to 1024: keys N*g to N*g + N - 1 are quantised with one step, which NaN and
/// infinities among them make useless. nullopt where nothing of the kind is stated.
std::optional<std::int64_t> keys_of_shared_step(std::string_view hidden_nan);

/// The names in "repeat, threads, batch".
std::vector<std::string> listed_words(std::string_view value);

}  // namespace attest
