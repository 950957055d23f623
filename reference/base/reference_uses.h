// How often the reference has been asked, by anybody in this program.
//
// A backend that answers with attest's own reference proves nothing: a benchmark looks at the count around every step
// of a plan. The count only ever grows, so that nobody can hide a use.
#pragma once

#include <cstdint>

namespace attest {

/// Heads, rows and tokens that the reference has computed so far, on any thread.
std::uint64_t reference_uses();

/// Called by the reference itself, once for each.
void count_reference_use();

}  // namespace attest
