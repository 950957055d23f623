// Other calls whose plans are alive while a case is checked: what they leave behind in a backend must not show.
#pragma once

#include "reference/problem.h"

namespace attest {

/// The same sizes, and whatever else a call says in numbers changed: lengths, slopes, sinks, scale, softcap, the seed.
/// What a backend keeps of the first plan of these sizes is then wrong for `problem`.
Problem same_sizes_other_values(const Problem& problem);

/// Another shape of the same type and dimensions: one head and few rows, without options.
Problem other_sizes(const Problem& problem);

}  // namespace attest
