#include "harness/cases/case_cost.h"

#include <algorithm>

#include "harness/cases/long_case.h"
#include "reference/operators/operator.h"

namespace attest {
namespace {

constexpr Output kScoreOutputs[] = {Output::raw, Output::capped, Output::biased, Output::weights};

// Microseconds, fitted to the processor time of the 3,468 cases of `matrix` on one backend; those of heads and rows to
// the steps of 2,998 cases of `deep` on five, too. Sums and products alone: the same bits everywhere.
constexpr double kPerCase = 100, kPerMultiplyAdd = 0.001, kPerElement = 0.024, kPerHead = 2, kPerRow = 0.5,
                 kPerKey = 0.066;
/// Of a pair that is held against the reference: with bounds, for a softcap, and for each stage of the scores.
constexpr double kPerPair = 0.04, kPerCappedPair = 0.02, kPerStagePair = 0.065;

/// Beyond so many multiply-adds a sample of the rows is compared.
constexpr double kComparedMultiplyAdds = 3e8, kFewestRows = 16;

}  // namespace

double cost_of(const Call& call) {
  const double heads = static_cast<double>(call.batch) * static_cast<double>(call.query_heads);
  const double rows = heads * static_cast<double>(call.query_length);
  const double keys =
      static_cast<double>(call.batch) * static_cast<double>(call.key_heads) * static_cast<double>(call.key_length);
  const double dims = static_cast<double>(call.key_dim + call.value_dim);
  const double compared = std::min(
      rows, std::max(kFewestRows, kComparedMultiplyAdds / std::max(operator_of(call).row_operations(call), 1.0)));
  const double pairs = call.has_scores() ? compared * static_cast<double>(call.key_length) : 0;
  const auto stages = std::count_if(std::begin(kScoreOutputs), std::end(kScoreOutputs),
                                    [&](Output stage) { return call.wants(stage); });
  const double pair = kPerPair + (call.softcap ? kPerCappedPair : 0) + kPerStagePair * static_cast<double>(stages);
  return kPerCase + kPerMultiplyAdd * multiply_adds_of(call) + pair * pairs + kPerElement * (rows + keys) * dims +
         kPerHead * heads + kPerRow * rows + kPerKey * keys;
}

}  // namespace attest
