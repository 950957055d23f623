// One row of a merge of partial results, in 256 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tests/audit/exact_attention.h"

namespace attest::audit {

inline ExactRow<Big> merge_row(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i) {
  const auto read = [&](const ConstTensor& t, std::int64_t x, std::int64_t c) {
    return load(t.data, t.dtype, t.offset(x * p.batch + b, h, i, c));
  };
  ExactRow<Big> exact;
  exact.output.resize(static_cast<std::size_t>(p.value_dim));
  const Big nats = p.base2 ? log(Big(2)) : Big(1);
  double top = -kInfinity;
  for (std::int64_t x = 0; x < p.parts; ++x) top = std::max(top, read(inputs.part_lse(), x, 0));
  exact.empty = top == -kInfinity;
  if (exact.empty) return exact;
  Big sum;
  for (std::int64_t x = 0; x < p.parts; ++x) {
    const double lse = read(inputs.part_lse(), x, 0);
    if (lse == -kInfinity) continue;
    const Big weight = exp(nats * (Big(lse) - Big(top)));
    sum += weight;
    for (std::int64_t c = 0; c < p.value_dim; ++c) {
      const double value = read(inputs.part_o(), x, c);
      if (std::isfinite(value)) exact.output[static_cast<std::size_t>(c)] += weight * Big(value);
    }
  }
  for (Big& o : exact.output) o = o / sum;
  exact.lse = Big(top) + log(sum) / nats;
  return exact;
}

}  // namespace attest::audit
