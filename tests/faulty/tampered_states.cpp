// Mistakes of linear attention: other operators are left as they are.
#include <array>

#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

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
};
// clang-format on

}  // namespace

std::span<const Mistake> state_mistakes() { return kMistakes; }

}  // namespace attest::faulty
