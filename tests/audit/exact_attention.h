// Softmax attention in 256 bits, of plain numbers or of dual ones, which carry the derivative by one element of an
// input.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "reference/call/tensor_table.h"
#include "reference/softmax/attention.h"
#include "tests/audit/dual.h"
#include "tests/audit/exact_operands.h"

namespace attest::audit {

template <class Number>
struct ExactRow {
  std::vector<Number> output;
  Number lse, max, sum;
  bool empty = false;
  std::vector<Number> raw, capped, biased, weights;
};

/// The element of an input that derivatives are by, counted as its gradient is.
struct Element {
  TensorId gradient = TensorId::out;  ///< dq, dk, dv, dmask or dsinks; none of them: there are no derivatives
  Index4 at{};
};

/// The number x, which is element (b, h, l, d) of the input with that gradient.
template <class Number>
Number input(const Big& x, const Element& by, TensorId gradient, std::int64_t b, std::int64_t h, std::int64_t l,
             std::int64_t d) {
  if constexpr (std::is_same_v<Number, Dual>)
    return {x, by.gradient == gradient && by.at == Index4{b, h, l, d} ? 1.0 : 0.0};
  else
    return x;
}

/// One row of softmax attention. Which keys are seen, and which weights dropout keeps, is the reference's word.
template <class Number>
ExactRow<Number> attend(const Head& head, const Row& row, std::int64_t i, const Element& by = {}) {
  const Call& p = head.call();
  const ExactOperands operands(head);
  const std::vector<Big> query = operands.query(i);
  const std::size_t keys = row.seen.size();
  ExactRow<Number> exact;
  exact.output.resize(static_cast<std::size_t>(p.value_dim));
  const Number scale = operands.scale(i);
  const std::int64_t b = head.batch(), h = head.head(), g = h / p.heads_per_group();
  for (std::size_t j = 0; j < keys; ++j) {
    const auto key = static_cast<std::int64_t>(j);
    const std::vector<Big> operand = operands.key(key);
    Number t;
    for (std::size_t d = 0; d < query.size(); ++d) {
      const auto feature = static_cast<std::int64_t>(d);
      t += input<Number>(query[d], by, TensorId::dq, b, h, i, feature) *
           input<Number>(operand[d], by, TensorId::dk, b, g, key, feature);
    }
    if (p.softcap && p.unscaled_cap) {
      exact.raw.push_back(scale * t);
      t = scale * Number(*p.softcap) * tanh(t / Number(*p.softcap));
    } else {
      t = scale * t;
      exact.raw.push_back(t);
    }
    if (p.softcap && !p.unscaled_cap) t = Number(*p.softcap) * tanh(t / Number(*p.softcap));
    exact.capped.push_back(t);
    const bool biased = (head.inputs().mask() && is_additive(*head.inputs().mask())) || head.inputs().slopes();
    if (biased && row.seen[j]) {
      const Placement at = locate(p, head.batch(), i, key);
      if (head.inputs().mask() && is_additive(*head.inputs().mask())) {
        const auto& kept = p.mask->kept;
        t = t + input<Number>(row.bias(j).additive, by, TensorId::dmask, kept[0] ? b : 0, kept[1] ? h : 0,
                              kept[2] ? i : 0, kept[3] ? key : 0);
      }
      if (head.inputs().slopes()) {
        const double slope = head.inputs().slope(head.batch(), head.head());
        t = t - Number(Big(slope) * static_cast<double>(std::abs(at.diagonal - at.key)));
      }
    }
    exact.biased.push_back(t);
  }
  const bool sink = row.sink != -kInfinity;
  const Number logit = sink ? input<Number>(row.sink, by, TensorId::dsinks, 0, h, 0, 0) : Number(0);
  exact.empty = row.visible_count == 0 && !sink;
  exact.weights.resize(keys);
  if (exact.empty) return exact;
  // 256 bits have exponents enough to do without a shift, up to scores of about 2^60; beyond, the largest is taken off.
  Number most = logit;
  bool any = sink;
  for (std::size_t j = 0; j < keys; ++j) {
    if (!row.seen[j]) continue;
    if (!any || most < exact.biased[j]) most = exact.biased[j];
    any = true;
  }
  Number sum = sink ? exp(logit - most) : Number(0);
  for (std::size_t j = 0; j < keys; ++j) {
    if (row.seen[j]) sum += exact.weights[j] = exp(exact.biased[j] - most);
  }
  for (std::size_t j = 0; j < keys; ++j) {
    if (!row.seen[j]) continue;
    exact.weights[j] = exact.weights[j] / sum;
    Number weight = exact.weights[j];
    if (!row.factors.empty()) weight = row.factors[j] > 0 ? weight / Number(Big(1) - p.dropout) : Number(0);
    for (std::size_t c = 0; c < exact.output.size(); ++c) {
      const auto key = static_cast<std::int64_t>(j), column = static_cast<std::int64_t>(c);
      exact.output[c] += weight * input<Number>(operands.value(key, column), by, TensorId::dv, b, g, key, column);
    }
  }
  exact.max = most;
  exact.sum = sum;
  exact.lse = most + log(sum);
  return exact;
}

}  // namespace attest::audit
