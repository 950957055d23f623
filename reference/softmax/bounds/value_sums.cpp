#include "reference/softmax/bounds/value_sums.h"

#include <algorithm>
#include <cmath>

#include "reference/softmax/bounds/operand_steps.h"

namespace attest {

ColumnSums column_sums(const Head& head, const Row& row, double ratio, const WeightErrors& errors) {
  const std::size_t columns = row.output.size();
  ColumnSums lists{std::vector<double>(columns), std::vector<double>(columns)};
  // They don't overlap, which the compiler can't see.
  double* __restrict centred = lists.centred.data();
  double* __restrict weighted = lists.weighted.data();
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j]) continue;
    const double* v = head.value_row(static_cast<std::int64_t>(j));
    const double off = errors.of_weight[j], heaviest = ratio * row.weights[j] + off;
    const double factor = row.factors.empty() ? 1 : row.factors[j];
    for (std::size_t c = 0; c < columns; ++c) {
      const double value = factor * v[c];
      centred[c] += off * std::fabs(value - row.output[c]);
      weighted[c] += heaviest * std::fabs(value);
    }
  }
  for (std::size_t c = 0; row.sink != -kInfinity && c < columns; ++c) {
    centred[c] += errors.of_sink * std::fabs(row.output[c]);
  }
  return lists;
}

StepSums step_sums(const Head& head, const Row& row, double ratio, const WeightErrors& errors,
                   const BoundConstants& c) {
  StepSums sums;
  const std::size_t columns = row.output.size();
  const bool weights = !errors.of_storage.empty() && !c.arithmetic.sum_of_stored;
  if (!weights && !c.steps_values) return sums;
  sums.of_values.assign(columns, 0);
  sums.largest.assign(columns, 0);
  sums.of_weights.assign(columns, 0);
  const StepTable table = steps_of_values(head, row, c);
  // Normalised, none is more than 1.
  const double shrunk = errors.sum < 1 ? 1 / (1 - errors.sum) : kInfinity;
  for (std::size_t j = 0; j < row.seen.size(); ++j) {
    if (!row.seen[j]) continue;
    const double* v = head.value_row(static_cast<std::int64_t>(j));
    const double heaviest = std::min(shrunk, 0x1p500) * (ratio * row.weights[j] + errors.of_weight[j]);
    const double factor = row.factors.empty() ? 1 : row.factors[j];
    const double z =
        weights ? std::min(std::min(shrunk, 0x1p500) * errors.of_storage[j], c.dynamic_eta + 0x1p12 * c.smallest_normal)
                : 0;
    sums.weights += z;
    for (std::size_t n = 0; n < columns; ++n) {
      if (c.steps_values) {
        const double lost = factor == 0 && table.lost(j, n) < kInfinity ? 0 : factor * table.lost(j, n);
        // 0 times what nobody knows isn't known.
        sums.of_values[n] += lost < kInfinity ? heaviest * lost : kInfinity;
        const double unit = table.step(j, n);
        if (unit < kInfinity) sums.largest_unit = std::max(sums.largest_unit, unit);
        if (unit > 0)
          sums.in_steps = std::max(sums.in_steps, factor * ((1 + c.value.u) * std::fabs(v[n]) / unit + c.value.eta));
        sums.largest[n] = std::isnan(lost) ? kInfinity : std::max(sums.largest[n], lost);
      }
      if (weights) sums.of_weights[n] += z * factor * std::fabs(v[n]);
    }
  }
  return sums;
}

}  // namespace attest
