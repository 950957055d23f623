// Norm and rotation of rows of q and k in front of their product, as plain loops.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "reference/call/call.h"
#include "reference/call/tensors.h"

namespace attest::example {

/// Element (b, 0, row, d) of an input; B,1,L,1 and the like.
template <class Real>
Real element(const Inputs& inputs, TensorId id, std::int64_t b, std::int64_t row, std::int64_t d) {
  const ConstTensor& from = inputs.at(id);
  return static_cast<Real>(load(from.data, from.dtype, from.offset(b, 0, row, d)));
}

/// x / sqrt(mean of x^2 + eps) * weights.
template <class Real>
void normalise(const Call& p, const Inputs& inputs, TensorId weights, Real* x) {
  Real squares = 0;
  for (std::int64_t t = 0; t < p.key_dim; ++t) squares += x[t] * x[t];
  const Real root = std::sqrt(squares / static_cast<Real>(p.key_dim) + static_cast<Real>(*p.norm));
  for (std::int64_t t = 0; t < p.key_dim; ++t) x[t] = x[t] / root * element<Real>(inputs, weights, 0, 0, t);
}

/// Features r and r + R/2, or 2r and 2r + 1, by row `position` of the tables.
template <class Real>
void rotate(const Call& p, const Inputs& inputs, std::int64_t position, Real* x) {
  const std::int64_t pairs = p.rotated_dims() / 2;
  const bool halves = p.rope == Rope::halves;
  for (std::int64_t r = 0; r < pairs; ++r) {
    const Real c = element<Real>(inputs, TensorId::cos, 0, position, r);
    const Real s = element<Real>(inputs, TensorId::sin, 0, position, r);
    Real &first = x[halves ? r : 2 * r], &second = x[halves ? r + pairs : 2 * r + 1];
    const Real turned = first * c - second * s;
    second = first * s + second * c;
    first = turned;
  }
}

/// A row of q or k of batch b, in place. `number`: of the query or key; `place`: where it stands unless tensors say so.
template <class Real>
void prepare(const Call& p, const Inputs& inputs, bool is_key, std::int64_t b, std::int64_t number, std::int64_t place,
             Real* x) {
  const TensorId weights = is_key ? TensorId::k_norm : TensorId::q_norm;
  if (p.norm && !p.norm_after_rope) normalise(p, inputs, weights, x);
  if (p.rope_positions > 0) {
    const ConstTensor& list = inputs.at(is_key ? TensorId::k_positions : TensorId::q_positions);
    place = list.as<const std::int32_t>()(b, 0, number, 0);
  }
  if (p.rope != Rope::none) rotate(p, inputs, place, x);
  if (p.norm && p.norm_after_rope) normalise(p, inputs, weights, x);
}

/// What a score of query i of head h is multiplied by.
template <class Real>
Real scale_of(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t i) {
  auto scale = static_cast<Real>(p.scale_value());
  if (p.has_head_scales()) {
    const ConstTensor& list = inputs.at(TensorId::head_scales);
    scale *= static_cast<Real>(load(list.data, list.dtype, list.offset(0, h, 0, 0)));
  }
  if (p.has_query_scales()) scale *= element<Real>(inputs, TensorId::query_scales, b, i, 0);
  return scale;
}

}  // namespace attest::example
