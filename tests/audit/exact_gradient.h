// Derivatives of the loss, do * o + dlse * lse summed over all rows, from differences of attention in 256 bits: a step
// of 2^-140 leaves some 100 bits of them right.
#pragma once

#include <cstdint>
#include <utility>

#include "reference/call/tensor_table.h"
#include "reference/softmax/gradient.h"
#include "tests/audit/exact_attention.h"

namespace attest::audit {

/// Calls visit(b, h, i) for each row that an element of an input reaches.
template <class Visit>
void each_row_of(const Call& p, TensorId gradient, const Index4& at, const Visit& visit) {
  const auto within = [](bool all, std::int64_t element, std::int64_t count) {
    return std::pair(all ? 0 : element, all ? count : element + 1);
  };
  const bool of_mask = gradient == TensorId::dmask, of_query = gradient == TensorId::dq;
  auto [b, batches] = within(gradient == TensorId::dsinks || (of_mask && !p.mask->kept[0]), at[0], p.batch);
  auto [first_head, heads] = within(of_mask && !p.mask->kept[1], at[1], p.query_heads);
  if (gradient == TensorId::dk || gradient == TensorId::dv) {
    first_head = at[1] * p.heads_per_group();
    heads = first_head + p.heads_per_group();
  }
  for (; b < batches; ++b) {
    const auto [first, rows] = within(!of_query && !(of_mask && p.mask->kept[2]), at[2], p.stored_queries(b));
    for (std::int64_t h = first_head; h < heads; ++h) {
      for (std::int64_t i = first; i < rows; ++i) visit(b, h, i);
    }
  }
}

inline Big derivative(const Call& p, const Inputs& inputs, const Element& by) {
  Dual sum;
  each_row_of(p, by.gradient, by.at, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    const Head head(p, inputs, b, h);
    Row row;
    head.attend(i, row);
    const ExactRow<Dual> exact = attend<Dual>(head, row, i, by);
    if (exact.empty) return;
    const RowLoss loss = loss_of(p, inputs, b, h, i);
    // A row with nothing but a sink has an output of 0, whatever stands in its do.
    for (std::size_t c = 0; row.visible_count > 0 && c < exact.output.size(); ++c)
      sum += exact.output[c] * Dual(loss.out[c]);
    sum += exact.lse * Dual(loss.lse);
  });
  return sum.slope;
}

}  // namespace attest::audit
