#include "reference/softmax/bounds/operand_steps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attest {
namespace {

/// Products of so many steps stay far inside the range.
double reach_of(const BoundConstants& c, int factors) {
  const double range = c.arithmetic.accumulator == DType::f64 ? 800 : 120;
  return std::exp2(range / factors);
}

std::size_t stored_keys(const Head& head) { return static_cast<std::size_t>(head.call().stored_keys(head.batch())); }

/// The mean over all keys, feature by feature, and how far a kernel's may be from it.
void mean_of_keys(const Head& head, const BoundConstants& c, std::vector<double>& mean, std::vector<double>& off) {
  const auto dim = static_cast<std::size_t>(head.call().key_dim);
  const std::size_t keys = stored_keys(head);
  mean.assign(dim, 0);
  off.assign(dim, 0);
  for (std::size_t j = 0; j < keys; ++j) {
    const double* k = head.key_row(static_cast<std::int64_t>(j));
    for (std::size_t t = 0; t < dim; ++t) mean[t] += k[t];
    for (std::size_t t = 0; t < dim; ++t) off[t] += std::fabs(k[t]);
  }
  const auto n = static_cast<double>(keys);
  const FormatRounding kept = rounding_of(c.arithmetic.key_rounding.mean_format, c.arithmetic.flush_to_zero);
  for (std::size_t t = 0; t < dim && keys > 0; ++t) {
    mean[t] /= n;
    const bool held = off[t] / n <= kept.largest;
    off[t] = held ? (kept.u + c.gamma(n + 2) + 0x1p-50 * n) * off[t] / n + kept.eta + c.eta : kInfinity;
  }
}

}  // namespace

StepTable::StepTable(const OperandRounding& own, const FormatRounding& rounding, std::size_t rows, std::size_t columns,
                     double reach)
    : own_(own), rounding_(rounding), reach_(reach), columns_(columns) {
  const auto all = [](std::int64_t size, std::size_t length) {
    return std::max<std::size_t>(1, size == 0 ? length : std::min(static_cast<std::size_t>(size), length));
  };
  rows_of_group_ = all(own.rows, rows);
  columns_of_group_ = all(own.columns, columns);
  groups_of_columns_ = (columns + columns_of_group_ - 1) / columns_of_group_;
  if (own.step == 0) largest_.assign((rows + rows_of_group_ - 1) / rows_of_group_ * groups_of_columns_, 0);
}

void StepTable::add(std::size_t row, const double* values) {
  for (std::size_t column = 0; own_.step == 0 && column < columns_; ++column) {
    double& largest = largest_[group(row, column)];
    const double x = std::fabs(values[column]);
    largest = std::isfinite(x) ? std::max(largest, x) : kInfinity;
  }
}

double StepTable::step(std::size_t row, std::size_t column) const {
  return own_.step != 0 ? own_.step : largest_[group(row, column)] / rounding_.largest;
}

double StepTable::lost(std::size_t row, std::size_t column) const {
  const double size = step(row, column);
  if (size == 0) return 0;
  return size <= reach_ && size >= 1 / reach_ ? rounding_.eta * size : kInfinity;
}

SteppedScores::SteppedScores(const Head& head, const Row& row, std::int64_t i, const BoundConstants& c)
    : head_(head),
      row_(row),
      c_(c),
      ratio_(row.code_scales.ratio()),
      query_(head.query_row(i)),
      of_query_(c.arithmetic.query_rounding, c.query,
                static_cast<std::size_t>(head.call().stored_queries(head.batch())), query_.size(), reach_of(c, 2)),
      of_keys_(c.arithmetic.key_rounding, c.key, stored_keys(head), query_.size(), reach_of(c, 2)),
      i_(static_cast<std::size_t>(i)) {
  const Arithmetic& a = c.arithmetic;
  const std::int64_t queries = head.call().stored_queries(head.batch()), rows = a.query_rounding.rows;
  if (a.query_rounding.step == 0) {
    const std::int64_t first = rows == 0 ? 0 : i / rows * rows, last = rows == 0 ? queries : first + rows;
    ScaleRange own;
    head.query_row(i, nullptr, &own);
    for (std::int64_t n = first; n < std::min(last, queries); ++n) {
      ScaleRange scales;
      std::vector<double> q = head.query_row(n, nullptr, &scales);
      // Codes may share the step, and be scaled behind it.
      const double apart = n == i ? 1 : own.largest / scales.smallest;
      for (double& x : q) x *= apart;
      of_query_.add(static_cast<std::size_t>(n), q.data());
    }
  }
  if (a.key_rounding.mean_removed) mean_of_keys(head, c, mean_, off_mean_);
  std::vector<double> centred(query_.size());
  for (std::size_t j = 0; a.key_rounding.step == 0 && j < stored_keys(head); ++j) {
    const double* k = head.key_row(static_cast<std::int64_t>(j));
    for (std::size_t t = 0; t < centred.size(); ++t)
      centred[t] = mean_.empty() ? k[t] : std::fabs(k[t] - mean_[t]) + off_mean_[t];
    of_keys_.add(j, centred.data());
  }
}

SteppedScores::Cost SteppedScores::of(std::size_t j) const {
  const Arithmetic& a = c_.arithmetic;
  // A key that isn't stored is 0, and shares its step with none.
  if (j >= stored_keys(head_)) return {};
  const bool steps_query = has_step(a.query_operand, a.query_rounding),
             steps_key = has_step(a.key_operand, a.key_rounding);
  const double u_query = c_.query.u, u_key = c_.key.u;
  const double* k = head_.key_row(static_cast<std::int64_t>(j));
  const double factor = row_.scale.larger * (a.base2 ? std::numbers::log2e : 1) * (1 + 4 * c_.u) * ratio_;
  // Beyond it an operand saturates, or becomes an infinity. A step of 0 holds whatever it is made of.
  const auto limit = [&](const OperandRounding& own, const FormatRounding& of, bool steps) {
    return own.step == 0 ? kInfinity : steps ? of.largest * own.step / ratio_ : of.largest / factor;
  };
  const double largest_query = limit(a.query_rounding, c_.query, steps_query),
               largest_key = limit(a.key_rounding, c_.key, steps_key);
  Cost cost;
  double products = 0, lost = 0, of_query = 0, of_key = 0, largest_unit = 0;
  for (std::size_t t = 0; t < query_.size(); ++t) {
    const double q = std::fabs(query_[t]),
                 x = mean_.empty() ? std::fabs(k[t]) : std::fabs(k[t] - mean_[t]) + off_mean_[t];
    const double h_query = steps_query ? of_query_.lost(i_, t) : 0, h_key = steps_key ? of_keys_.lost(j, t) : 0;
    if (!(q <= largest_query && x <= largest_key && h_query < kInfinity && h_key < kInfinity) || !std::isfinite(q) ||
        !std::isfinite(x))
      return {kInfinity, kInfinity, kInfinity};
    products += q * x;
    lost += (1 + u_query) * q * h_key + (1 + u_key) * x * h_query + h_query * h_key;
    of_query += q + h_query;
    of_key += x + h_key;
    const double unit = (steps_query ? of_query_.step(i_, t) : 1) * (steps_key ? of_keys_.step(j, t) : 1);
    if (unit > 0) cost.in_steps += (q * (1 + u_query) + h_query) * (x * (1 + u_key) + h_key) / unit;
    largest_unit = std::max(largest_unit, unit);
  }
  cost.largest_unit = std::max(1.0, largest_unit);
  cost.magnitude = std::fabs(row_.scale.value) * products;
  // A mean is taken away in a step of its own.
  const double of_mean = mean_.empty() ? 0 : 1.01 * c_.u;
  const double eta_query = steps_query ? 0 : c_.query.eta;
  const double eta_key = (steps_key ? 0 : c_.key.eta) + (mean_.empty() ? 0 : c_.eta);
  const double underflow = (1 + u_query) * of_query * (eta_key + u_key * c_.eta) +
                           (1 + u_key) * of_key * (eta_query + u_query * c_.eta) +
                           c_.key_dim * (eta_query + c_.eta) * (eta_key + c_.eta);
  cost.of_operands = BoundConstants::both(c_.of_operands, of_mean) * cost.magnitude +
                     (1 + of_mean) * (std::fabs(row_.scale.value) * lost + row_.scale.larger * underflow) * ratio_;
  return cost;
}

RowShift row_shift(const Head& head, const Row& row, std::int64_t i, const BoundConstants& c) {
  RowShift shift;
  if (!c.arithmetic.key_rounding.mean_removed) return shift;
  std::vector<double> mean, off;
  mean_of_keys(head, c, mean, off);
  const std::vector<double> q = head.query_row(i);
  double of_mean = 0;
  for (std::size_t t = 0; t < q.size(); ++t) {
    shift.magnitude += std::fabs(q[t] * mean[t]);
    of_mean += std::fabs(q[t]) * off[t];
  }
  const double scale = std::fabs(row.scale.value);
  const double u_mean = rounding_of(c.arithmetic.key_rounding.mean_format, c.arithmetic.flush_to_zero).u;
  shift.magnitude *= scale;
  shift.of_lse = scale * of_mean + (u_mean + c.gamma(c.key_dim + 3 + c.key_length)) * shift.magnitude +
                 3 * c.u * (std::fabs(row.lse) + shift.magnitude) + row.scale.larger * c.eta * (c.key_dim + 2);
  return shift;
}

StepTable steps_of_values(const Head& head, const Row& row, const BoundConstants& c) {
  const std::size_t keys = stored_keys(head), columns = row.output.size();
  StepTable table(c.arithmetic.value_rounding, c.value, std::max(keys, row.seen.size()), columns, reach_of(c, 1));
  for (std::size_t j = 0; j < keys; ++j) table.add(j, head.value_row(static_cast<std::int64_t>(j)));
  return table;
}

}  // namespace attest
