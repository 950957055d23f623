#include "harness/verdict/interleaved_plans.h"

#include <algorithm>
#include <cmath>

#include "reference/call/tensor_place.h"
#include "reference/options/find_fault.h"

namespace attest {
namespace {

/// Lengths about half as long; an empty sequence gets a row. Packed and paged storage only shrinks by this.
void change_lengths(std::vector<std::int64_t>& lengths, std::int64_t most) {
  for (std::int64_t& length : lengths) length = length > 1 ? length / 2 : most > 0 && length == 0 ? 1 : length;
}

/// Tensors that lie somehow become dense, dense ones get gaps behind their rows.
void change_strides(Call& p) {
  constexpr std::int64_t kGap = 3;
  for (const TensorId id :
       {TensorId::q, TensorId::k, TensorId::v, TensorId::part_o, TensorId::part_lse, TensorId::out}) {
    if (!has_tensor(p, id)) continue;
    TensorSpec& spec = p.tensor(id);
    if (spec.is_placed()) {
      spec.layout.reset();
      spec.strides.reset();
      spec.offset = 0;
      continue;
    }
    const Index4 n = place_of(p, id).shape;
    const std::int64_t row = n[3] + kGap, head = std::max<std::int64_t>(n[2], 1) * row;
    spec.strides = Index4{std::max<std::int64_t>(n[1], 1) * head, head, row, 1};
  }
}

/// A mask gets another axis or loses one; where there is none, one comes.
void change_mask(Problem& problem) {
  Call& p = problem.call;
  p.tensor(TensorId::mask) = {};
  if (!p.mask) {
    p.mask = MaskSpec{false, {false, false, true, true}};
    problem.data.mask_fill = {"random", {0.5}};
  } else {
    bool& heads = p.mask->kept[p.query_heads > 1 ? 1 : 2];
    heads = !heads;
  }
}

void change_type(Problem& problem) {
  Call& p = problem.call;
  for (TensorSpec& spec : p.tensors) spec.dtype.reset();
  p.dtype = p.dtype == DType::f32 ? DType::f16 : p.dtype == DType::f16 ? DType::bf16 : DType::f32;
  problem.data.fill = {};
  problem.data.own_fills = {};
  if (p.mask && p.mask->additive) problem.data.mask_fill = {"normal", {}};
}

/// `change` on a copy that is kept if it still can be a call.
template <class Change>
void try_change(Problem& problem, const Change& change) {
  Problem changed = problem;
  change(changed);
  if (!find_fault(changed)) problem = std::move(changed);
}

}  // namespace

Problem same_sizes_other_values(const Problem& problem) {
  Problem other = problem;
  other.data.fill = {};
  other.data.own_fills = {};
  other.data.poison.clear();
  try_change(other, [](Problem& p) { p.set_seed(p.data.seed + 1); });
  try_change(other, [](Call& p) { p.scale = p.scale_value() / 2; });
  try_change(other, [](Call& p) {
    if (p.softcap) p.softcap = *p.softcap * 2;
  });
  try_change(other, [](Call& p) {
    if (!p.lengths) return;
    change_lengths(p.lengths->key, p.key_length);
    change_lengths(p.lengths->query, p.query_length);
  });
  try_change(other, [](Call& p) { std::ranges::reverse(p.past_lengths); });
  try_change(other, [](Call& p) {
    if (!p.alibi) return;
    if (p.alibi_slopes.empty()) p.alibi_slopes = published_alibi_slopes(p.query_heads);
    for (double& slope : p.alibi_slopes) slope = -slope;
  });
  try_change(other, [](Call& p) {
    for (double& sink : p.sink_values) {
      if (std::isfinite(sink)) sink = 1 - sink;  // -inf is no sink, and +inf would be none either
    }
  });
  return other;
}

std::optional<Problem> same_but_one_thing(const Problem& problem, OneThing thing) {
  Problem other = problem;
  // Other numbers, or what was computed for the one would do for the other.
  if (other.call.dropout == 0) ++other.data.seed;
  switch (thing) {
    case OneThing::strides: change_strides(other); break;
    case OneThing::mask: change_mask(other); break;
    case OneThing::type: change_type(other); break;
  }
  if (find_fault(other)) return std::nullopt;
  return other;
}

Problem other_sizes(const Problem& problem) {
  Problem other;
  other.call.op = problem.call.op;
  other.call.dtype = problem.call.dtype;
  other.call.query_length = other.call.key_length = 11;
  other.call.key_dim = problem.call.key_dim;
  other.call.value_dim = problem.call.value_dim;
  return other;
}

}  // namespace attest
