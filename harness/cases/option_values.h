// Values of options, walked over without knowing their names: those simpler than the present one, a random one, and
// what must follow when sizes change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cases/random.h"
#include "reference/options/options.h"

namespace attest {

/// Values as text, the most drastic first, none of them the present one. Empty for what has no order of its own: a
/// flag, a name, a composite.
std::vector<std::string> simpler_values(const Option& option, const Problem& problem);

/// One of the row's samples that fits the sizes of the problem; nullopt where the row has none.
std::optional<std::string> random_sample(const Option& option, const Problem& problem, Random& random);

/// The plainest of them; nullopt where the row has none.
std::optional<std::string> plainest_sample(const Option& option, const Problem& problem);

/// Makes values that depend on sizes fit them: lists per head or batch, counts of keys, segments, what belongs to a
/// mask.
void fit_to_sizes(Problem& problem);

/// Steps for a number that wants to be `min`: there at once, one more, half way, one less.
std::vector<std::int64_t> steps_towards(std::int64_t min, std::int64_t now);

/// The problem with the option set from a value; nullopt where that is no case.
std::optional<Problem> with_option(const Problem& problem, const Option& option, const std::string& value);

}  // namespace attest
