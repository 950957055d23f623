// Processors and the ranks that share them: how many threads a rank may have, and where there are too many.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/mpi/ranks.h"

namespace attest {

/// What a rank may run on.
struct RankPlace {
  std::string host;
  std::vector<int> processors;  ///< that its launcher left it, by number
  int threads = 0;              ///< that it will use
};

/// The places of all ranks, by rank; `threads` is this one's. All ranks take part.
std::vector<RankPlace> places_of_ranks(Ranks& ranks, int threads);

/// Threads for a rank that is to leave as many to the others that share its processors; at least 1.
int fair_threads(const std::vector<RankPlace>& places, int rank);

/// A sentence where the ranks have more threads than processors, on the first host or rank where they do.
std::optional<std::string> oversubscription(const std::vector<RankPlace>& places);

}  // namespace attest
