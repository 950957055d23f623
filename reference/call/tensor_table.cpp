#include "reference/call/tensor_table.h"

#include <algorithm>

namespace attest {
namespace {

using enum Axis;

constexpr OperatorTrait kTokens = &OperatorTraits::tokens, kScores = &OperatorTraits::scores,
                        kState = &OperatorTraits::state, kDecay = &OperatorTraits::decay, kBeta = &OperatorTraits::beta,
                        kParts = &OperatorTraits::parts, kLse = &OperatorTraits::lse;

constexpr auto kAlways = [](const Call&) { return true; };
constexpr auto kForward = [](const Call& c) { return c.runs_forward(); };
constexpr auto kBackward = [](const Call& c) { return !c.runs_forward(); };
constexpr auto kHasPast = [](const Call& c) { return c.past > 0 && !c.page_size; };  // pages hold the cached keys, too
constexpr auto kHasValues = [](const Call& c) { return !c.latent; };                 // else they lie in the keys
constexpr auto kApart = [](const Call& c) { return c.latent_apart; };
constexpr auto kAppends = [](const Call& c) { return c.append; };
constexpr auto kDynamic = [](const Call& c) { return c.dynamic; };
constexpr auto kRotates = [](const Call& c) { return c.rope != Rope::none; };
constexpr auto kHasPositions = [](const Call& c) { return c.rope != Rope::none && c.rope_positions > 0; };
constexpr auto kNormalises = [](const Call& c) { return c.norm.has_value(); };
constexpr DrawnNumbers kScales{0.25, 2};                    // of these the exponent is drawn
constexpr auto kNever = [](const Call&) { return false; };  // a file has it, whatever its call says

// clang-format off
constexpr TensorRow kRows[] = {
    {TensorId::q, "q", {batch, q_heads, queries, stored_key_dim}, TypeRule::storage, kAlways, kTokens},
    {TensorId::k, "k", {stores, k_heads, rows, stored_key_dim}, TypeRule::storage, kAlways, kTokens},
    {TensorId::v, "v", {stores, key_heads, rows, value_dim}, TypeRule::storage, kHasValues, kTokens},
    {TensorId::mask, "mask", {batch, query_heads, queries, keys}, TypeRule::mask, [](const Call& c) { return c.mask.has_value(); }, kScores},
    {TensorId::past_k, "past_k", {batch, key_heads, past, key_dim}, TypeRule::as_k, kHasPast, kScores},
    {TensorId::past_v, "past_v", {batch, key_heads, past, value_dim}, TypeRule::as_v, [](const Call& c) { return kHasPast(c) && !c.latent; }, kScores},
    {TensorId::q_scales, "q_scales", {batch, query_heads, queries, q_blocks}, TypeRule::accumulator, [](const Call& c) { return c.q_scale.has_value(); }, kScores, kScales},
    {TensorId::k_scales, "k_scales", {stores, key_heads, scale_rows, k_blocks}, TypeRule::accumulator, [](const Call& c) { return c.k_scale.has_value(); }, kScores, kScales},
    {TensorId::v_scales, "v_scales", {stores, key_heads, scale_rows, v_blocks}, TypeRule::accumulator, [](const Call& c) { return c.v_scale.has_value(); }, kScores, kScales},
    {TensorId::past_lengths, "past_lengths", {batch, one, one, one}, TypeRule::i32, [](const Call& c) { return !c.past_lengths.empty(); }, kScores},
    {TensorId::page_table, "page_table", {batch, one, one, pages}, TypeRule::i32, [](const Call& c) { return c.page_size.has_value(); }, kScores},
    {TensorId::blocks, "blocks", {batch, query_heads, mask_rows, mask_columns}, TypeRule::boolean, [](const Call& c) { return c.blocks.has_value(); }, kScores},
    {TensorId::indices, "indices", {batch, key_heads, queries, selected}, TypeRule::i32, [](const Call& c) { return c.select.has_value(); }, kScores},
    {TensorId::slopes, "slopes", {batch, query_heads, one, one}, TypeRule::f64, [](const Call& c) { return c.alibi; }, kScores},
    {TensorId::sinks, "sinks", {one, query_heads, one, one}, TypeRule::f64, [](const Call& c) { return c.sinks; }, kScores},
    {TensorId::keep, "keep", {batch, query_heads, queries, keys}, TypeRule::boolean, kNever},
    {TensorId::decay, "decay", {batch, key_heads, queries, key_dim}, TypeRule::storage, kAlways, kDecay, DrawnNumbers{-1, 0}},
    {TensorId::beta, "beta", {batch, key_heads, queries, one}, TypeRule::storage, kAlways, kBeta, DrawnNumbers{0, 1}},
    {TensorId::state, "past_state", {batch, key_heads, key_dim, value_dim}, TypeRule::storage, [](const Call& c) { return c.initial_state; }, kState, DrawnNumbers{-1, 1}},
    {TensorId::part_o, "part_o", {parts, query_heads, queries, value_dim}, TypeRule::storage, kAlways, kParts, DrawnNumbers{-1, 1}},
    {TensorId::part_lse, "part_lse", {parts, query_heads, queries, one}, TypeRule::accumulator, kAlways, kParts, DrawnNumbers{-4, 4}},
    {TensorId::new_k, "new_k", {batch, key_heads, queries, key_dim}, TypeRule::storage, kAppends, kScores},
    {TensorId::new_v, "new_v", {batch, key_heads, queries, value_dim}, TypeRule::storage, kAppends, kScores},
    {TensorId::query_lengths, "query_lengths", {batch, one, one, one}, TypeRule::i32, kDynamic, kScores},
    {TensorId::key_lengths, "key_lengths", {batch, one, one, one}, TypeRule::i32, kDynamic, kScores},
    {TensorId::cos, "cos", {one, one, positions, rotated_pairs}, TypeRule::accumulator, kRotates, kScores, DrawnNumbers{-1, 1}},
    {TensorId::sin, "sin", {one, one, positions, rotated_pairs}, TypeRule::accumulator, kRotates, kScores, DrawnNumbers{-1, 1}},
    {TensorId::q_positions, "q_positions", {batch, one, queries, one}, TypeRule::i32, kHasPositions, kScores},
    {TensorId::k_positions, "k_positions", {batch, one, keys, one}, TypeRule::i32, kHasPositions, kScores},
    {TensorId::q_norm, "q_norm", {one, one, one, key_dim}, TypeRule::storage, kNormalises, kScores, DrawnNumbers{0.25, 2}},
    {TensorId::k_norm, "k_norm", {one, one, one, key_dim}, TypeRule::storage, kNormalises, kScores, DrawnNumbers{0.25, 2}},
    {TensorId::head_scales, "head_scales", {one, query_heads, one, one}, TypeRule::accumulator, [](const Call& c) { return c.has_head_scales(); }, kScores, DrawnNumbers{0.25, 2}},
    {TensorId::query_scales, "query_scales", {batch, one, queries, one}, TypeRule::accumulator, [](const Call& c) { return c.has_query_scales(); }, kScores, DrawnNumbers{0.25, 2}},
    {TensorId::q_rope, "q_rope", {batch, query_heads, queries, rope_dim}, TypeRule::storage, kApart, kScores},
    {TensorId::k_rope, "k_rope", {stores, key_heads, rows, rope_dim}, TypeRule::storage, kApart, kScores},
    {TensorId::saved_o, "saved_o", {batch, query_heads, queries, value_dim}, TypeRule::storage, kBackward, kScores},
    {TensorId::saved_lse, "saved_lse", {batch, query_heads, queries, one}, TypeRule::accumulator, kBackward, kScores},
    {TensorId::dout, "do", {batch, query_heads, queries, value_dim}, TypeRule::storage, [](const Call& c) { return c.wants_gradients(); }, kTokens},
    {TensorId::dlse, "dlse", {batch, query_heads, queries, one}, TypeRule::accumulator, [](const Call& c) { return c.wants_gradients() && c.dlse; }, kScores, DrawnNumbers{-1, 1}},
    {TensorId::dpresent, "dpresent", {batch, key_heads, key_dim, value_dim}, TypeRule::storage, [](const Call& c) { return c.wants_gradients() && c.dpresent; }, kState, DrawnNumbers{-1, 1}},

    {TensorId::out, "o", {batch, query_heads, queries, value_dim}, TypeRule::storage, kForward, nullptr, {}, Output::o},
    {TensorId::lse, "lse", {batch, query_heads, queries, one}, TypeRule::accumulator, nullptr, kLse, {}, Output::lse},
    {TensorId::row_max, "max", {batch, query_heads, queries, one}, TypeRule::accumulator, nullptr, kScores, {}, Output::max},
    {TensorId::row_sum, "sum", {batch, query_heads, queries, one}, TypeRule::accumulator, nullptr, kScores, {}, Output::sum},
    {TensorId::raw, "raw", {batch, query_heads, queries, keys}, TypeRule::storage, nullptr, kScores, {}, Output::raw},
    {TensorId::capped, "capped", {batch, query_heads, queries, keys}, TypeRule::storage, nullptr, kScores, {}, Output::capped},
    {TensorId::biased, "biased", {batch, query_heads, queries, keys}, TypeRule::storage, nullptr, kScores, {}, Output::biased},
    {TensorId::weights, "weights", {batch, query_heads, queries, keys}, TypeRule::storage, nullptr, kScores, {}, Output::weights},
    {TensorId::present_k, "present_k", {batch, key_heads, keys, key_dim}, TypeRule::as_k, nullptr, kScores, {}, Output::present},
    {TensorId::present_v, "present_v", {batch, key_heads, keys, value_dim}, TypeRule::as_v, [](const Call& c) { return c.wants(Output::present) && !c.latent; }, kScores, {}, Output::present},
    {TensorId::present_state, "present_state", {batch, key_heads, key_dim, value_dim}, TypeRule::storage, nullptr, kState, {}, Output::present},
    {TensorId::cache_k, "cache_k", {stores, key_heads, rows, key_dim}, TypeRule::as_k, kAppends, kScores, {}, Output::present},
    {TensorId::cache_v, "cache_v", {stores, key_heads, rows, value_dim}, TypeRule::as_v, kAppends, kScores, {}, Output::present},
    {TensorId::dq, "dq", {batch, query_heads, queries, key_dim}, TypeRule::as_q, nullptr, kTokens, {}, Output::dq},
    {TensorId::dk, "dk", {batch, key_heads, keys, key_dim}, TypeRule::as_k, nullptr, kTokens, {}, Output::dk},
    {TensorId::dv, "dv", {batch, key_heads, keys, value_dim}, TypeRule::as_v, nullptr, kTokens, {}, Output::dv},
    {TensorId::dmask, "dmask", {batch, query_heads, queries, keys}, TypeRule::as_mask, nullptr, kScores, {}, Output::dmask},
    {TensorId::dsinks, "dsinks", {one, query_heads, one, one}, TypeRule::accumulator, nullptr, kScores, {}, Output::dsinks},
    {TensorId::ddecay, "ddecay", {batch, key_heads, keys, key_dim}, TypeRule::as_decay, nullptr, kDecay, {}, Output::ddecay},
    {TensorId::dbeta, "dbeta", {batch, key_heads, keys, one}, TypeRule::as_beta, nullptr, kBeta, {}, Output::dbeta},
    {TensorId::dstate, "dstate", {batch, key_heads, key_dim, value_dim}, TypeRule::as_state, nullptr, kState, {}, Output::dstate},
};
// clang-format on

constexpr bool in_order() {
  for (std::size_t n = 0; n < std::size(kRows); ++n) {
    if (static_cast<std::size_t>(kRows[n].id) != n) return false;
  }
  return std::size(kRows) == kTensorCount;
}
static_assert(in_order(), "a row for each TensorId, in its order");

/// Blocks of a row of `size` elements.
std::int64_t blocks_of(const std::optional<ScaleSpec>& scale, std::int64_t size) {
  return scale && scale->share == ScaleShare::block ? (size + scale->block - 1) / scale->block : 1;
}

/// The axes along which scales are the same.
std::array<bool, 4> shared_axes(const std::optional<ScaleSpec>& scale) {
  const ScaleShare share = scale ? scale->share : ScaleShare::tensor;
  const bool rows = share == ScaleShare::token || share == ScaleShare::block;
  return {!rows, share == ScaleShare::tensor, !rows, share != ScaleShare::block};
}

}  // namespace

std::int64_t extent_of(const Call& c, Axis axis) {
  switch (axis) {
    case one: return 1;
    case batch: return c.batch;
    case query_heads: return c.query_heads;
    case q_heads: return c.qk_heads == 0 ? c.query_heads : c.qk_heads;
    case key_heads: return c.key_heads;
    case k_heads: return c.qk_heads == 0 ? c.key_heads : c.qk_heads;
    case queries: return c.query_length;
    case keys: return c.key_length;
    case key_dim: return c.key_dim;
    case stored_key_dim: return c.stored_key_dim();
    case rope_dim: return c.key_dim - c.stored_key_dim();
    case value_dim: return c.value_dim;
    case past: return c.past;
    case stores: return c.page_size ? page_count(c) : c.batch;
    case rows: return c.page_size.value_or(c.key_length - c.past);
    case pages: return c.page_size ? (c.key_length + *c.page_size - 1) / *c.page_size : 0;
    case mask_rows: return c.blocks ? block_rows(c) : 0;
    case mask_columns: return c.blocks ? block_columns(c) : 0;
    case scale_rows: return c.page_size.value_or(c.key_length);
    case q_blocks: return blocks_of(c.q_scale, c.stored_key_dim());
    case k_blocks: return blocks_of(c.k_scale, c.stored_key_dim());
    case v_blocks: return blocks_of(c.v_scale, c.value_dim);
    case selected: return c.select ? c.select->count : 0;
    case positions: return c.rope == Rope::none ? 0 : table_rows(c);
    case rotated_pairs: return c.rotated_dims() / 2;
    case parts: return part_count(c);
  }
  return 1;
}

std::span<const TensorRow> tensor_rows() { return kRows; }

const TensorRow& row_of(TensorId id) { return kRows[static_cast<std::size_t>(id)]; }

const TensorRow* find_row(std::string_view name) {
  const auto* const found = std::ranges::find(kRows, name, &TensorRow::name);
  return found == std::end(kRows) ? nullptr : found;
}

DType type_of(const Call& c, TensorId id) { return c.tensor(id).dtype.value_or(default_type_of(c, id)); }

namespace {

/// That of another tensor; what is computed has the call's where the other is stored in fewer bits.
DType type_like(const Call& c, TensorId id, TensorId other) {
  const DType type = type_of(c, other);
  return is_output(id) && !is_copied(id) && !is_wide(type) ? c.dtype : type;
}

}  // namespace

DType default_type_of(const Call& c, TensorId id) {
  switch (row_of(id).type) {
    case TypeRule::storage: return c.dtype;
    case TypeRule::accumulator: return accumulator_of(c.dtype);
    case TypeRule::mask: return c.mask && c.mask->additive ? c.dtype : DType::boolean;
    case TypeRule::as_q: return type_like(c, id, TensorId::q);
    case TypeRule::as_k: return type_like(c, id, TensorId::k);
    case TypeRule::as_v: return type_like(c, id, TensorId::v);
    case TypeRule::as_mask: return type_of(c, TensorId::mask);
    case TypeRule::as_decay: return type_of(c, TensorId::decay);
    case TypeRule::as_beta: return type_of(c, TensorId::beta);
    case TypeRule::as_state: return type_of(c, TensorId::state);
    case TypeRule::f64: return DType::f64;
    case TypeRule::boolean: return DType::boolean;
    case TypeRule::i32: return DType::i32;
  }
  return c.dtype;
}

bool has_own_type(TensorId id) {
  // What repeats inputs bit for bit has their types.
  if (is_copied(id)) return false;
  const TypeRule rule = row_of(id).type;
  return rule != TypeRule::f64 && rule != TypeRule::boolean && rule != TypeRule::i32;
}

bool may_have_type(TensorId id, DType type) {
  if (is_scales(id)) return std::ranges::find(kScaleTypes, type) != kScaleTypes.end();
  return is_wide(type) || (is_storage(type) && may_be_narrow(id));
}

bool has_mixed_types(const Call& c) {
  return std::ranges::any_of(values_of<TensorId>(),
                             [&](TensorId id) { return id != TensorId::mask && c.tensor(id).dtype.has_value(); });
}

std::array<bool, 4> broadcast_axes(const Call& c, TensorId id) {
  switch (id) {
    case TensorId::mask:
    case TensorId::dmask:
      if (c.mask) return {!c.mask->kept[0], !c.mask->kept[1], !c.mask->kept[2], !c.mask->kept[3]};
      return {true, true, true, true};
    case TensorId::indices: return {false, c.select && c.select->shared, false, false};
    case TensorId::q_scales: return shared_axes(c.q_scale);
    case TensorId::k_scales: return shared_axes(c.k_scale);
    case TensorId::v_scales: return shared_axes(c.v_scale);
    case TensorId::slopes: return {!c.slopes_per_batch(), false, false, false};
    case TensorId::decay:
    case TensorId::ddecay: return {false, false, false, c.decay_per_head};
    case TensorId::beta:
    case TensorId::dbeta: return {false, c.beta_shared, false, false};
    default: return {};
  }
}

Index4 seen_shape(const Call& c, TensorId id) {
  Index4 shape{};
  for (std::size_t n = 0; n < 4; ++n) shape[n] = extent_of(c, row_of(id).axes[n]);
  // A result has one element for all indices of such an axis: their sum.
  const std::array<bool, 4> shared = is_output(id) ? broadcast_axes(c, id) : std::array<bool, 4>{};
  for (std::size_t n = 0; n < 4; ++n) {
    if (shared[n]) shape[n] = 1;
  }
  if (id == TensorId::dbeta && c.key_heads == 0) shape[1] = 0;  // as beta is stored
  return shape;
}

Index4 stored_shape(const Call& c, TensorId id) {
  Index4 shape = seen_shape(c, id);
  const std::array<bool, 4> shared = broadcast_axes(c, id);
  for (std::size_t n = 0; n < 4; ++n) {
    if (shared[n]) shape[n] = 1;
  }
  if ((id == TensorId::beta || id == TensorId::dbeta) && c.key_heads == 0) shape[1] = 0;
  return shape;
}

IndexSpace index_space(TensorId result) {
  const std::array<Axis, 4>& axes = row_of(result).axes;
  // Sums over the axes along which the input is broadcast.
  if (result == TensorId::dmask || result == TensorId::ddecay || result == TensorId::dbeta) return IndexSpace::other;
  if (axes[1] == query_heads && axes[2] == queries) return IndexSpace::query_rows;
  return axes[1] == key_heads && axes[2] == keys ? IndexSpace::key_rows : IndexSpace::other;
}

bool has_tensor(const Call& c, TensorId id) {
  const TensorRow& row = row_of(id);
  return has_trait(c.op, row.of) && (row.in ? row.in(c) : c.wants(*row.result));
}

std::vector<Output> outputs_of(Op op) {
  std::vector<Output> list;
  for (const TensorRow& row : kRows) {
    if (row.result && has_trait(op, row.of)) list.push_back(*row.result);
  }
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

std::vector<TensorId> inputs_of(const Call& c) {
  std::vector<TensorId> list;
  for (const TensorRow& row : kRows) {
    if (!is_output(row.id) && has_tensor(c, row.id)) list.push_back(row.id);
  }
  return list;
}

std::vector<TensorId> outputs_of(const Call& c) {
  std::vector<TensorId> list;
  for (const TensorRow& row : kRows) {
    if (is_output(row.id) && has_tensor(c, row.id)) list.push_back(row.id);
  }
  return list;
}

}  // namespace attest
