// Linear attention in 256 bits, of plain numbers or of dual ones: the recurrence of one key head, and derivatives of
// the loss, do * o + dpresent * present, by one element of an input.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tests/audit/exact_attention.h"

namespace attest::audit {

template <class Number>
class ExactState {
 public:
  ExactState(const Call& p, const Inputs& inputs, std::int64_t b, std::int64_t g, const Element& by = {})
      : p_(p), inputs_(inputs), b_(b), g_(g), by_(by), state_(static_cast<std::size_t>(p.key_dim * p.value_dim)) {
    if (!p.initial_state) return;
    each([&](Number& s, std::int64_t d, std::int64_t m) { s = read(inputs.state(), TensorId::dstate, g_, d, m); });
  }

  /// Takes token t, the one behind that before.
  void step(std::int64_t t) {
    std::vector<Number> retrieved(static_cast<std::size_t>(p_.value_dim)), keys, decays;
    for (std::int64_t d = 0; d < p_.key_dim; ++d) {
      keys.push_back(read(inputs_.k(), TensorId::dk, p_.qk_head(g_), t, d));
      if (p_.has_decay()) decays.push_back(exp(read(inputs_.decay(), TensorId::ddecay, g_, t, d)));
    }
    normalise(keys);
    each([&](Number& s, std::int64_t d, std::int64_t m) {
      if (p_.has_decay()) s = s * decays[static_cast<std::size_t>(d)];
      retrieved[static_cast<std::size_t>(m)] += s * keys[static_cast<std::size_t>(d)];
    });
    std::vector<Number> written;
    for (std::int64_t m = 0; m < p_.value_dim; ++m) {
      Number value = read(inputs_.v(), TensorId::dv, g_, t, m);
      if (p_.has_beta())
        value = read(inputs_.beta(), TensorId::dbeta, g_, t, 0) * (value - retrieved[static_cast<std::size_t>(m)]);
      written.push_back(value);
    }
    each([&](Number& s, std::int64_t d, std::int64_t m) {
      s += keys[static_cast<std::size_t>(d)] * written[static_cast<std::size_t>(m)];
    });
  }

  /// The output of query head h at token t, which was taken last.
  std::vector<Number> output(std::int64_t h, std::int64_t t) {
    std::vector<Number> out(static_cast<std::size_t>(p_.value_dim));
    std::vector<Number> query;
    for (std::int64_t d = 0; d < p_.key_dim; ++d) query.push_back(read(inputs_.q(), TensorId::dq, p_.qk_head(h), t, d));
    normalise(query);
    each([&](const Number& s, std::int64_t d, std::int64_t m) {
      out[static_cast<std::size_t>(m)] += query[static_cast<std::size_t>(d)] * s;
    });
    for (Number& o : out) o = o * Number(p_.scale_value());
    return out;
  }

  /// visit(element, d, m) for each element.
  template <class Visit>
  void each(const Visit& visit) {
    for (std::int64_t d = 0; d < p_.key_dim; ++d) {
      for (std::int64_t m = 0; m < p_.value_dim; ++m)
        visit(state_[static_cast<std::size_t>(d * p_.value_dim + m)], d, m);
    }
  }

 private:
  /// Of calls without gradients: plain numbers.
  void normalise(std::vector<Number>& row) const {
    if constexpr (std::is_same_v<Number, Big>) {
      if (!p_.l2norm) return;
      Big squares;
      for (const Big& x : row) squares += x * x;
      const Big root = sqrt(squares + Big(*p_.l2norm));
      for (Big& x : row) x = x / root;
    }
  }

  Number read(const ConstTensor& t, TensorId gradient, std::int64_t head, std::int64_t l, std::int64_t d) const {
    const std::array<bool, 4> shared = broadcast_axes(p_, gradient);
    return input<Number>(Big(load(t.data, t.dtype, t.offset(b_, head, l, d))), by_, gradient, b_, shared[1] ? 0 : head,
                         l, shared[3] ? 0 : d);
  }

  const Call& p_;
  const Inputs& inputs_;
  std::int64_t b_, g_;
  const Element by_;
  std::vector<Number> state_;
};

/// The key heads whose recurrence an element of a gradient's input reaches: calls visit(g).
template <class Visit>
void each_key_head_of(const Call& p, TensorId gradient, const Index4& at, const Visit& visit) {
  if (gradient == TensorId::dbeta && p.beta_shared) {
    for (std::int64_t g = 0; g < p.key_heads; ++g) visit(g);
  } else {
    visit(gradient == TensorId::dq ? at[1] / p.heads_per_group() : at[1]);
  }
}

inline Big linear_derivative(const Call& p, const Inputs& inputs, const Element& by) {
  Dual sum;
  const std::int64_t b = by.at[0];
  each_key_head_of(p, by.gradient, by.at, [&](std::int64_t g) {
    ExactState<Dual> state(p, inputs, b, g, by);
    for (std::int64_t t = 0; t < p.query_length; ++t) {
      state.step(t);
      for (std::int64_t h = g * p.heads_per_group(); h < (g + 1) * p.heads_per_group(); ++h) {
        const std::vector<Dual> out = state.output(h, t);
        for (std::size_t m = 0; m < out.size(); ++m) {
          const ConstTensor& loss = inputs.dout();
          sum += out[m] * Dual(load(loss.data, loss.dtype, loss.offset(b, h, t, static_cast<std::int64_t>(m))));
        }
      }
    }
    const ConstTensor* last = inputs.dpresent();
    if (!last) return;
    state.each([&](const Dual& s, std::int64_t d, std::int64_t m) {
      sum += s * Dual(load(last->data, last->dtype, last->offset(b, g, d, m)));
    });
  });
  return sum.slope;
}

}  // namespace attest::audit
