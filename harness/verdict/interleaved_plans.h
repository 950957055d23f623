// Other calls whose plans are alive while a case is checked: what they leave behind in a backend must not show.
#pragma once

#include <cstdint>
#include <optional>

#include "reference/call/problem.h"

namespace attest {

/// The same sizes, and whatever else a call says in numbers changed: lengths, slopes, sinks, scale, softcap, the seed.
/// What a backend keeps of the first plan of these sizes is then wrong for `problem`.
Problem same_sizes_other_values(const Problem& problem);

/// The call but for one thing that is no size: where its tensors lie, what shape its mask has, or their type. What a
/// backend keeps under a name that lacks that thing is then wrong for `problem`. nullopt where the call has no such
/// other.
enum class OneThing : std::uint8_t { strides, mask, type };
std::optional<Problem> same_but_one_thing(const Problem& problem, OneThing thing);

/// Another shape of the same type and dimensions: one head and few rows, without options.
Problem other_sizes(const Problem& problem);

}  // namespace attest
