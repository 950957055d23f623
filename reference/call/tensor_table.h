// The table of tensors: name, axes and type of each. Code that fills, stores, copies, prints or compares tensors uses
// it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reference/call/tensors.h"

namespace attest {

/// The size of the call that gives an axis its extent.
enum class Axis : std::uint8_t {
  one,
  batch,
  query_heads,
  q_heads,  ///< those of q: fewer, where linear attention has fewer than states
  key_heads,
  k_heads,  ///< likewise those of k
  queries,
  keys,
  key_dim,
  stored_key_dim,  ///< columns of q and k, of which latent ones may hold the last apart
  rope_dim,        ///< and how many those are
  value_dim,
  past,           ///< cached keys
  stores,         ///< the batch, or the pages of a paged cache
  rows,           ///< of one store: the keys that aren't cached, or the rows of a page
  pages,          ///< of one sequence, the most that any has
  mask_rows,      ///< of a block mask
  mask_columns,   ///< likewise
  scale_rows,     ///< of scales of keys: all keys, cached ones first, or the rows of a page
  q_blocks,       ///< of a row of q that have a scale each; 1 where the row has one
  k_blocks,       ///< likewise
  v_blocks,       ///< likewise
  selected,       ///< numbers of a list of keys
  positions,      ///< of the tables of rope
  rotated_pairs,  ///< of features
  parts,          ///< of a merge: part x of batch b is number x * batch + b
};

std::int64_t extent_of(const Call& call, Axis axis);

/// The rule that gives a tensor its type where the call doesn't say one.
enum class TypeRule : std::uint8_t {
  storage,      ///< the call's
  accumulator,  ///< that of the call's sums
  mask,         ///< the call's of an additive mask, else boolean
  as_q,         ///< as q
  as_k,
  as_v,
  as_mask,
  as_decay,
  as_beta,
  as_state,
  f64,
  boolean,
  i32
};

/// The range from which case lines draw the numbers of an input.
struct DrawnNumbers {
  double low = 0, high = 0;
};

struct TensorRow {
  TensorId id;
  std::string_view name;     ///< in files and messages
  std::array<Axis, 4> axes;  ///< as a kernel sees them
  TypeRule type;
  bool (*in)(const Call& call);         ///< whether the call has it; nullptr: where it asks for the result
  OperatorTrait of = nullptr;           ///< whose operators have it; nullptr: all
  std::optional<DrawnNumbers> drawn{};  ///< for inputs that hold plain numbers
  std::optional<Output> result{};       ///< for outputs: the one that `out=` names
};

/// In the order of TensorId.
std::span<const TensorRow> tensor_rows();
const TensorRow& row_of(TensorId id);
/// nullptr where no tensor has the name.
const TensorRow* find_row(std::string_view name);

/// How the elements of a result are numbered: by query rows, of which a sample may be checked, by key rows, or
/// otherwise.
enum class IndexSpace : std::uint8_t { query_rows, key_rows, other };
IndexSpace index_space(TensorId result);

constexpr bool is_output(TensorId id) { return id >= TensorId::out; }
/// Whether it belongs to calls that want gradients alone.
constexpr bool is_of_gradients(TensorId id) {
  return id >= TensorId::dq || (id >= TensorId::saved_o && !is_output(id));
}
/// Whether the output is the cache that a call appends to.
constexpr bool is_cache(TensorId id) { return id == TensorId::cache_k || id == TensorId::cache_v; }
/// Whether it holds columns of queries or keys that lie beside the others', and is laid out as these are.
constexpr bool is_part(TensorId id) { return id == TensorId::q_rope || id == TensorId::k_rope; }
/// Whether it belongs to calls whose lengths are data or that append to a cache.
constexpr bool is_of_launch(TensorId id) {
  return (id >= TensorId::new_k && id <= TensorId::key_lengths) || is_cache(id);
}
/// Whether it holds scales of a tensor that is stored in 8 or 4 bits.
constexpr bool is_scales(TensorId id) { return id >= TensorId::q_scales && id <= TensorId::v_scales; }
/// Whether no two of its elements may share storage: results, saved ones too, and the numbers by which keys are found.
constexpr bool has_place_for_each(TensorId id) {
  const bool is_saved = id == TensorId::saved_o || id == TensorId::saved_lse;
  const bool is_length = id == TensorId::past_lengths || id == TensorId::query_lengths || id == TensorId::key_lengths;
  return is_output(id) || is_saved || is_length || id == TensorId::page_table;
}
bool has_tensor(const Call& call, TensorId id);
/// Whether the output repeats inputs bit for bit, rounded only where new ones are appended.
constexpr bool is_copied(TensorId id) { return id == TensorId::present_k || id == TensorId::present_v || is_cache(id); }
DType type_of(const Call& call, TensorId id);
/// The type where the call doesn't say one.
DType default_type_of(const Call& call, TensorId id);
/// Whether a call may say it: `k.dtype=f16`.
bool has_own_type(TensorId id);
/// Whether it may be stored in 8 or 4 bits: queries, keys and values, cached ones too.
constexpr bool may_be_narrow(TensorId id) {
  return id == TensorId::q || id == TensorId::k || id == TensorId::v || id == TensorId::past_k ||
         id == TensorId::past_v || id == TensorId::q_rope || id == TensorId::k_rope;
}
/// Whether a tensor may have this type of numbers.
bool may_have_type(TensorId id, DType type);
/// Whether any tensor but the mask has a type of its own.
bool has_mixed_types(const Call& call);

/// Which axes are broadcast: they have one stored element for all indices.
std::array<bool, 4> broadcast_axes(const Call& call, TensorId id);
/// The extents that a kernel sees, and the stored ones: 1 along a broadcast axis.
Index4 seen_shape(const Call& call, TensorId id);
Index4 stored_shape(const Call& call, TensorId id);

/// The tensors of this call, in the order of the table.
std::vector<TensorId> inputs_of(const Call& call);
std::vector<TensorId> outputs_of(const Call& call);

/// The results that an operator can give, in order.
std::vector<Output> outputs_of(Op op);

}  // namespace attest
