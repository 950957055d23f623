// A search for failing cases on the ranks of a job.
#pragma once

#include <functional>

#include "backends/backend.h"
#include "harness/mpi/ranks.h"
#include "harness/search/fuzz.h"

namespace attest {

struct SharedFuzz {
  FuzzResult result;     ///< of all ranks; on ranks above 0 of this one
  bool complete = true;  ///< each rank has said what it found; false only after an interrupt
};

/// Each rank takes the part of its number: a stream of draws of its own, its share of the classes and pairs, of count
/// and of budget. What is found is a function of the seed and of the number of ranks; one rank finds what fuzz() does.
/// `progress` is told, on rank 0, what all have done so far: cases, failures, the first finding and the closest.
SharedFuzz fuzz_on_ranks(Ranks& ranks, Backend& backend, FuzzSettings settings,
                         const std::function<void(const FuzzResult&)>& progress);

/// What two parts have found, together.
void add_part(FuzzResult& all, FuzzResult part);

}  // namespace attest
