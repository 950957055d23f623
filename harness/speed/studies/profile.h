// Where a backend's time goes, by ablation: the same case with half of a size takes that much less.
//
// Nothing is asked of the backend, so that it works for any, on any device. What it can't tell apart it names together.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "harness/cases/case.h"
#include "harness/speed/timing/bench.h"

namespace attest {

/// The case itself, then with half the dimension of the keys, with half that of the values, and with half the queries.
/// Fewer where a size is odd, or where the case's other options don't allow its change: `which` says what each is.
enum class Ablation { none, key_dim, value_dim, queries };
struct AblatedCase {
  Ablation which;
  Case changed;
  double operations;  ///< useful ones of one run
};
std::vector<AblatedCase> ablated_cases(const Case& source);

/// Shares of the time of one run(); below 0 where it couldn't be asked, or the answers mean nothing: of disturbed
/// times, or Q K^T and P V that take more than the whole.
struct TimeShares {
  std::string backend;
  double scores = -1;   ///< Q K^T, with packing keys: what grows with the dimension of the keys
  double outputs = -1;  ///< P V, with packing values: what grows with the dimension of the values
  double rest = -1;     ///< softmax, masks and all else
  double fixed = -1;    ///< of all that: what doesn't grow with the queries, such as packing keys and values and set-up
  double idle = -1;     ///< of the given threads' time: waiting
};

/// `timed` has a result for each of `cases`, in their order. Backends without a speed in any of them are left out;
/// all are where no pair of query and key is visible.
std::vector<TimeShares> time_shares(const std::vector<AblatedCase>& cases, const std::vector<BenchCase>& timed,
                                    int threads);

void print_profile(const std::vector<TimeShares>& shares, std::FILE* out);

}  // namespace attest
