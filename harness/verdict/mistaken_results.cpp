#include "harness/verdict/mistaken_results.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

/// Whether all rows of a dense output are there.
bool all_rows_of_dense_output(const Call& p, const std::vector<RowIndex>& rows) {
  const bool dense = p.layout == Layout::bhld || p.layout == Layout::blhd || p.layout == Layout::bld;
  const TensorSpec& out = p.tensor(TensorId::out);
  return dense && !out.layout && !out.strides && p.batch > 0 &&
         static_cast<std::int64_t>(rows.size()) == p.batch * p.query_heads * p.query_length;
}

}  // namespace

bool transpose_rows(const Call& p, ResultValues& values, Bounds& bounds, Bounds& own,
                    const std::vector<RowIndex>& rows) {
  if (!all_rows_of_dense_output(p, rows) || p.query_heads < 2 || p.query_length < 2) return false;
  const std::int64_t h = p.query_heads, l = p.query_length;
  const auto columns = static_cast<std::size_t>(p.value_dim);
  const bool by_head = p.layout == Layout::bhld;
  for (ResultValues* one : {&values, &bounds, &own}) {
    std::vector<double>& out = one->of(TensorId::out);
    const std::vector<double> before = out;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const RowIndex& at = rows[r];
      const std::int64_t place = by_head ? at.h * l + at.i : at.i * h + at.h;
      const std::int64_t head = by_head ? place % h : place / l, row = by_head ? place / h : place % l;
      const std::size_t from = static_cast<std::size_t>((at.b * h + head) * l + row) * columns;
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(from), columns,
                  out.begin() + static_cast<std::ptrdiff_t>(r * columns));
    }
  }
  return true;
}

bool scale_list(std::vector<double>& values, double factor) {
  for (double& x : values) x *= factor;
  return !values.empty();
}

bool scale_out(ResultValues& values, Bounds& bounds, Bounds& own, double factor) {
  return scale_list(values.of(TensorId::out), factor) && scale_list(bounds.of(TensorId::out), std::max(factor, 1.0)) &&
         scale_list(own.of(TensorId::out), std::max(factor, 1.0));
}

bool lse_of_empty_rows(const Call& p, ResultValues& values, double value) {
  bool changes = false;
  for (double& x : values.of(TensorId::lse)) {
    if (!p.wants(Output::lse) || x != -kInfinity) continue;
    x = value;
    changes = true;
  }
  return changes;
}

bool scale_gradients(const Call& p, ResultValues& values, Bounds& bounds, Bounds& own,
                     std::initializer_list<TensorId> gradients, double factor) {
  bool changes = false;
  for (const TensorId id : gradients) {
    if (!has_tensor(p, id) || factor == 1) continue;
    scale_list(values.of(id), factor);
    for (Bounds* list : {&bounds, &own}) scale_list(list->of(id), std::max(std::fabs(factor), 1.0));
    changes = true;
  }
  return changes;
}

}  // namespace attest
