#include "harness/speed/timing/sample_rows.h"

#include <utility>

#include "harness/verdict/stated_conventions.h"
#include "reference/operators/operator.h"

namespace attest {
namespace {

constexpr double kRows = 16;

Problem with_seed(const Problem& problem, std::uint64_t draw) {
  Problem drawn = problem;
  drawn.data.seed = draw;  // of the rows that are chosen: the data are there already
  return drawn;
}

}  // namespace

SampleRows::SampleRows(const Problem& problem, const Inputs& inputs, const Standard& standard, std::uint64_t draw)
    : problem_(with_seed(problem, draw)),
      inputs_(inputs),
      standard_(standard),
      budget_(kRows * operator_of(problem).row_operations(problem)) {
  computed_ = expect(problem_, inputs_, {standard.producer}, 1, budget_);
}

SampleRows::SampleRows(const Problem& problem, const Inputs& inputs, const Expectation& known, const Standard& standard,
                       ColumnSigns signs)
    : problem_(problem), inputs_(inputs), known_(&known), standard_(standard), signs_(std::move(signs)) {}

SampleVerdict SampleRows::judge(const GuardedOutputs& outputs) const {
  const Comparison comparison = compare(computed_ ? *computed_ : *known_, outputs);
  if (!comparison.failed()) return {comparison.error_over_bound(), ""};
  if (right_as_stated(outputs)) return {};
  return {comparison.error_over_bound(), comparison.describe()};
}

Comparison SampleRows::compare(const Expectation& expectation, const GuardedOutputs& outputs) const {
  return compare_outputs(
      problem_, expectation, expectation.bounds_for(standard_.producer), outputs,
      [&](TensorId id, std::int64_t column, double value) { return signs_.negates(id, column) ? -value : value; });
}

bool SampleRows::right_as_stated(const GuardedOutputs& outputs) const {
  if (!changes_results(standard_.conventions)) return false;
  // Of the data as they are: in what is known columns are negated.
  const Expectation expectation = computed_ ? *computed_ : expect(problem_, inputs_, {standard_.producer}, 1, budget_);
  return !right_by_convention(standard_.conventions, problem_, inputs_, expectation,
                              expectation.index_of(standard_.producer), outputs, 1, budget_)
              .empty();
}

}  // namespace attest
