#include "reference/options/given_tensors.h"

#include <algorithm>
#include <array>

#include "reference/call/tensor_place.h"
#include "reference/call/tensor_table.h"
#include "reference/options/operand_features.h"
#include "reference/options/server_features.h"

namespace attest {

void give_mask(Problem& problem, bool additive) {
  Call& p = problem.call;
  if (p.mask && p.mask->additive == additive) return;
  const std::array<bool, 4> kept = p.mask ? p.mask->kept : std::array{true, true, true, true};
  p.mask = MaskSpec{additive, kept};
  problem.data.mask_fill = additive ? Fill{"neginf", {0.3}} : Fill{"random", {0.5}};
  if (!additive) p.tensor(TensorId::mask).dtype.reset();
}

void give_blocks(Problem& p) {
  if (p.call.blocks) return;
  p.call.blocks = BlockSpec{16, 16};
  p.data.block_fill = Fill{"random", {0.5}};
}

void give_past_per_batch(Call& p, std::uint64_t draw) {
  p.batch = std::max<std::int64_t>(p.batch, 2);
  p.past = std::max<std::int64_t>(p.past, 1);
  p.key_length = std::max(p.key_length, p.past);
  p.past_lengths.clear();
  for (std::int64_t b = 0; b + 1 < p.batch; ++b) {
    const std::uint64_t own = (draw + static_cast<std::uint64_t>(b)) * 0x9e3779b97f4a7c15u >> 8;
    p.past_lengths.push_back(static_cast<std::int64_t>(own % static_cast<std::uint64_t>(p.past)));
  }
  p.past_lengths.push_back(p.past);
}

void give_output(Problem& problem, Output output) {
  Call& p = problem.call;
  const bool has = is_gradient(output) ? p.wants_gradients() : p.runs_forward();
  if (!has) p.set_pass(Pass::both);
  if (!p.wants(output)) p.outputs.push_back(output);
  std::ranges::sort(p.outputs);
  if (output == Output::dmask) give_mask(problem, true);
  if (output == Output::dsinks) p.sinks = true;
  if (output == Output::ddecay && !p.has_decay()) p.op = Op::gated;
  if (output == Output::dbeta && !p.has_beta()) p.op = Op::delta;
  if (output == Output::dstate) p.initial_state = true;
}

void give_tensor(Problem& problem, TensorId tensor) {
  Call& p = problem.call;
  if (has_tensor(p, tensor)) return;
  switch (tensor) {
    case TensorId::past_k:
    case TensorId::past_v:
      p.page_size.reset();
      p.past = std::max<std::int64_t>(p.past, 1);
      break;
    case TensorId::past_lengths: give_past_per_batch(p, 1); break;
    case TensorId::page_table: p.page_size = 4; break;
    case TensorId::new_k:
    case TensorId::new_v:
    case TensorId::cache_k:
    case TensorId::cache_v: give_append(p); break;
    case TensorId::query_lengths:
    case TensorId::key_lengths:
      give_launch(p);
      p.dynamic = true;
      break;
    case TensorId::q_scales: give_scales_of_rows(p, TensorId::q); break;
    case TensorId::k_scales: give_scales_of_rows(p, TensorId::k); break;
    case TensorId::v_scales: give_scales_of_rows(p, TensorId::v); break;
    case TensorId::blocks: give_blocks(problem); break;
    case TensorId::indices: give_select(problem); break;
    case TensorId::slopes: p.alibi = true; break;
    case TensorId::sinks: p.sinks = true; break;
    case TensorId::cos:
    case TensorId::sin: give_rope(p); break;
    case TensorId::q_positions:
    case TensorId::k_positions: give_positions(p); break;
    case TensorId::q_norm:
    case TensorId::k_norm: give_norm(p); break;
    case TensorId::head_scales: p.scales = p.has_query_scales() ? Scales::both : Scales::head; break;
    case TensorId::query_scales: p.scales = p.has_head_scales() ? Scales::both : Scales::query; break;
    case TensorId::q_rope:
    case TensorId::k_rope: give_latent_parts(problem); break;
    case TensorId::state: p.initial_state = true; break;
    case TensorId::part_o:
    case TensorId::part_lse: p.op = Op::merge; break;
    case TensorId::decay: p.op = Op::gated; break;
    case TensorId::beta: p.op = Op::delta; break;
    case TensorId::saved_o:
    case TensorId::saved_lse: p.set_pass(Pass::backward); break;
    case TensorId::dout:
    case TensorId::dlse:
    case TensorId::dpresent:
      if (!p.wants_gradients()) {
        const TensorSpec& out = p.tensor(TensorId::out);
        p.set_pass(out.is_placed() || out.dtype ? Pass::both : Pass::backward);
      }
      p.dlse = p.dlse || tensor == TensorId::dlse;
      p.dpresent = p.dpresent || tensor == TensorId::dpresent;
      break;
    default:
      if (const auto output = row_of(tensor).result) give_output(problem, *output);
  }
}

}  // namespace attest
