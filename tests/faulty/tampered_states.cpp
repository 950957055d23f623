// Mistakes of linear attention: other operators are left as they are.
#include <array>
#include <cmath>

#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

void drop_norm(Call& p) { p.l2norm.reset(); }

/// Makes rows of q and k, or of k alone, what a norm before the call leaves of them: change(x, squares).
template <class Change>
void normalise_rows(const Call& p, ChangedInputs& c, bool of_queries, Change change) {
  if (!p.l2norm) return;
  std::int64_t elements = 0;
  for (const TensorId id : {TensorId::q, TensorId::k}) {
    const Index4 n = c.inputs.at(id).shape;
    elements += n[0] * n[1] * n[2] * n[3];
  }
  c.rows.assign(static_cast<std::size_t>(elements), 0);
  double* to = c.rows.data();
  for (const TensorId id : {TensorId::q, TensorId::k}) {
    if (id == TensorId::q && !of_queries) continue;
    const ConstTensor from = c.inputs.at(id);
    const Index4 n = from.shape;
    const double* const first = to;
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      double& x = *to++;
      if (l >= p.stored_queries(b)) return;
      double squares = 0;
      for (std::int64_t t = 0; t < n[3]; ++t) {
        const double other = load(from.data, from.dtype, from.offset(b, h, l, t));
        squares += other * other;
      }
      x = change(load(from.data, from.dtype, from.offset(b, h, l, d)), squares);
    });
    c.inputs.set(id, {first, DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
  }
}

// clang-format off
constexpr std::array kMistakes = {
    Mistake{"decay_dropped", "linear attention without its decay",
            [](Call& p) {
              p.op = operator_without(p.op, &OperatorTraits::decay).value_or(p.op);
              p.decay_per_head = false;
            }},
    Mistake{"delta_dropped", "linear attention that adds where it should overwrite",
            [](Call& p) {
              p.op = operator_without(p.op, &OperatorTraits::beta).value_or(p.op);
              p.beta_shared = false;
            }},
    Mistake{"state_dropped", "linear attention that always starts from zeros (115)",
            [](Call& p) {
              p.initial_state = false;
              std::erase(p.outputs, Output::dstate);
            }},
    Mistake{"decay_of_the_first_dimension", "one decay for all key dimensions", nullptr,
            [](const Call&, ChangedInputs& c) { c.inputs.change(TensorId::decay).strides[3] = 0; }},
    Mistake{"beta_of_the_first_head", "one beta for all heads", nullptr,
            [](const Call&, ChangedInputs& c) { c.inputs.change(TensorId::beta).strides[1] = 0; }},
    Mistake{"state_never_written", "an empty state is handed out", nullptr, nullptr,
            [](const Call&, const Outputs& outputs) {
              if (outputs.present_state()) each_element(*outputs.present_state(), [](double) { return 0.0; });
            }},
    Mistake{"state_in_f16", "the last state passes through f16 (178)", nullptr, nullptr,
            [](const Call&, const Outputs& o) {
              if (o.present_state()) each_element(*o.present_state(), [](double x) { return decode(to_f16(x), DType::f16); });
            }},
    Mistake{"state_of_sequence_0", "every sequence starts from the state of the first (179)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.initial_state) c.inputs.change(TensorId::state).strides[0] = 0;
            }},
    Mistake{"packed_betas_head_first", "decays and betas of packed sequences are read head by head (180)", nullptr,
            [](const Call& p, ChangedInputs& c) {
              for (const TensorId id : {TensorId::decay, TensorId::beta}) {
                ConstTensor& t = c.inputs.change(id);
                if (!t.starts || t.strides[1] == 0) continue;
                t.strides[2] = t.strides[1];
                t.strides[1] *= t.starts[p.batch];
              }
            }},
    Mistake{"qk_head_of_all_states", "every state is written and read by the first head of q and k", nullptr,
            [](const Call& p, ChangedInputs& c) {
              if (p.qk_heads == 0) return;
              for (const TensorId id : {TensorId::q, TensorId::k}) c.inputs.change(id).strides[1] = 0;
            }},
    Mistake{"l2norm_without_eps", "rows of q and k are divided by their lengths without eps (185)",
            [](Call& p) {
              if (p.l2norm) p.l2norm = 1e-300;
            }},
    Mistake{"l2norm_eps_of_mean", "eps is added to the mean of the squares, and the sum taken from that (186)",
            [](Call& p) {
              if (p.l2norm) *p.l2norm *= static_cast<double>(p.key_dim);
            }},
    Mistake{"l2norm_by_mean", "rows of q and k are divided by the root of the mean, not of the sum (187)", drop_norm,
            [](const Call& p, ChangedInputs& c) {
              normalise_rows(p, c, true, [&](double x, double squares) {
                return x / std::sqrt(squares / static_cast<double>(p.key_dim) + *p.l2norm);
              });
            }},
    Mistake{"l2norm_of_keys_alone", "keys are normalised, and queries are not (188)", drop_norm,
            [](const Call& p, ChangedInputs& c) {
              normalise_rows(p, c, false, [&](double x, double squares) { return x / std::sqrt(squares + *p.l2norm); });
            }},
};
// clang-format on

}  // namespace

std::span<const Mistake> state_mistakes() { return kMistakes; }

}  // namespace attest::faulty
