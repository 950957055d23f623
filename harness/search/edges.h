// Edges of a backend's code that cases run through, where it is compiled for that: with -fsanitize-coverage=trace-pc
// (GCC and clang), as all backends are with -DATTEST_EDGES=ON. Only code in this process is seen.
//
// The compiler has every edge call a function of ours, which marks the place that it was called from in a table of 64
// Ki entries; two edges may share one.
#pragma once

#include <cstddef>

namespace attest {

/// Edges that ran in this process since it began and that no call of this has counted yet.
std::size_t count_new_edges();

}  // namespace attest
