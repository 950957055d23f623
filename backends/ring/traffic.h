// How many bytes a rank sends in one run, on paper. Each run holds what it sent against it.
#pragma once

#include <cstdint>

#include "backends/ring/scheme.h"

namespace attest::ring {

/// ring, ring_zigzag: all but one part of keys and values pass each rank. head_parallel: of its rows of q, k and v
/// those of other ranks' heads, and of its heads' results those of other ranks' rows. key_parallel: every rank but 0
/// sends rank 0 a result and a logsumexp for each row.
std::int64_t bytes_sent_by(Scheme scheme, const Call& call, int rank, int ranks);

}  // namespace attest::ring
