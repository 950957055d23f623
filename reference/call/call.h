// One attention call, described completely: sizes, options, and how its tensors lie. This is all that a backend is
// told.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "reference/base/names.h"
#include "reference/base/types.h"

namespace attest {

enum class Align : std::uint8_t { top_left, bottom_right };
enum class Layout : std::uint8_t { bhld, blhd, bld, qkv, kv, thd };
/// The elements that have one scale: all, those of a head, of a row, or of a block of a row.
enum class ScaleShare : std::uint8_t { tensor, head, token, block };
/// Every tensor that a call may read (up to `dpresent`) or write (from `out` on); tensor_table.h says which are what.
enum class TensorId : std::uint8_t {
  q,
  k,
  v,
  mask,
  past_k,
  past_v,
  q_scales,
  k_scales,
  v_scales,
  past_lengths,
  page_table,
  blocks,
  indices,
  slopes,
  sinks,
  keep,
  decay,
  beta,
  state,
  part_o,
  part_lse,
  new_k,
  new_v,
  query_lengths,
  key_lengths,
  cos,
  sin,
  q_positions,
  k_positions,
  q_norm,
  k_norm,
  head_scales,
  query_scales,
  q_rope,
  k_rope,
  saved_o,
  saved_lse,
  dout,
  dlse,
  dpresent,
  out,
  lse,
  row_max,
  row_sum,
  raw,
  capped,
  biased,
  weights,
  present_k,
  present_v,
  present_state,
  cache_k,
  cache_v,
  dq,
  dk,
  dv,
  dmask,
  dsinks,
  ddecay,
  dbeta,
  dstate
};
/// Softmax attention, a rule by which linear attention writes its state (reference/linear/linear_attention.h), or the
/// merge of partial results of softmax attention (reference/merge/part_merge.h).
enum class Op : std::uint8_t { attention, linear, gated, delta, gated_delta, merge };
/// Which features of q and k the kernel rotates together: feature r with r + R/2, or 2r with 2r + 1.
enum class Rope : std::uint8_t { none, halves, interleaved };
/// Numbers that multiply the scale: one for each query head, for each query, or both.
enum class Scales : std::uint8_t { none, head, query, both };
/// What is computed: results, gradients from saved results, or both in one plan.
enum class Pass : std::uint8_t { forward, backward, both };
enum class Output : std::uint8_t {
  o,
  lse,
  weights,
  raw,
  capped,
  biased,
  present,
  dq,
  dk,
  dv,
  dmask,
  dsinks,
  ddecay,
  dbeta,
  dstate,
  max,
  sum
};

template <>
inline constexpr auto kNames<Align> = name_table("top-left", "bottom-right");
template <>
inline constexpr auto kNames<ScaleShare> = name_table("tensor", "head", "token", "block");
template <>
inline constexpr auto kNames<Layout> = name_table("bhld", "blhd", "bld", "qkv", "kv", "thd");
template <>
inline constexpr auto kNames<TensorId> = name_table(
    "q", "k", "v", "mask", "past_k", "past_v", "q_scales", "k_scales", "v_scales", "past_lengths", "page_table",
    "blocks", "indices", "slopes", "sinks", "keep", "decay", "beta", "state", "part_o", "part_lse", "new_k", "new_v",
    "query_lengths", "key_lengths", "cos", "sin", "q_positions", "k_positions", "q_norm", "k_norm", "head_scales",
    "query_scales", "q_rope", "k_rope", "saved_o", "saved_lse", "do", "dlse", "dpresent", "out", "lse", "max", "sum",
    "raw", "capped", "biased", "weights", "present_k", "present_v", "present_state", "cache_k", "cache_v", "dq", "dk",
    "dv", "dmask", "dsinks", "ddecay", "dbeta", "dstate");
template <>
inline constexpr auto kNames<Op> = name_table("attention", "linear", "gated", "delta", "gated_delta", "merge");
template <>
inline constexpr auto kNames<Rope> = name_table("none", "halves", "interleaved");
template <>
inline constexpr auto kNames<Scales> = name_table("none", "head", "query", "both");
template <>
inline constexpr auto kNames<Pass> = name_table("forward", "backward", "both");
template <>
inline constexpr auto kNames<Output> = name_table("o", "lse", "weights", "raw", "capped", "biased", "present", "dq",
                                                  "dk", "dv", "dmask", "dsinks", "ddecay", "dbeta", "dstate", "max",
                                                  "sum");

/// What an operator has. Options, tensors and results belong to the operators that have one of these.
struct OperatorTraits {
  bool tokens = true;                ///< queries, keys and values: with them a scale
  bool gradients = false;            ///< of what has tokens
  bool scores = false;               ///< of each query and key: with them masks, cached keys and stages
  bool state = false;                ///< of each key head, which tokens write one by one
  bool decay = false, beta = false;  ///< inputs of the state's rule
  bool parts = false;                ///< results to be merged, each with its logsumexp
  bool lse = false;                  ///< a logsumexp of each row, which leaves out what must not be read
  int since = 1;                     ///< version of the contract that it came with (backends/backend.h)
  bool operator==(const OperatorTraits&) const = default;
};
using OperatorTrait = bool OperatorTraits::*;

/// A row for each Op.
inline constexpr OperatorTraits kOperatorTraits[] = {
    {.gradients = true, .scores = true, .lse = true},
    {.gradients = true, .state = true},
    {.gradients = true, .state = true, .decay = true},
    {.gradients = true, .state = true, .beta = true},
    {.gradients = true, .state = true, .decay = true, .beta = true},
    {.tokens = false, .parts = true, .lse = true, .since = 7},
};
static_assert(std::size(kOperatorTraits) == kNames<Op>.size());
constexpr const OperatorTraits& traits_of(Op op) { return kOperatorTraits[static_cast<std::size_t>(op)]; }
/// Whether the operator has it; every operator has nullptr.
constexpr bool has_trait(Op op, OperatorTrait trait) { return !trait || traits_of(op).*trait; }
/// The operator that differs from this one in this trait alone, which it lacks.
std::optional<Op> operator_without(Op op, OperatorTrait trait);

constexpr bool is_gradient(Output output) { return output >= Output::dq && output <= Output::dstate; }
/// What a call that doesn't name its results asks for.
std::vector<Output> default_outputs(Pass pass);

struct MaskSpec {
  bool additive = false;
  std::array<bool, 4> kept{};  ///< B, H, Q, K: false where the axis is broadcast
  bool operator==(const MaskSpec&) const = default;
};

struct TensorSpec {
  std::optional<DType> dtype;  ///< unset: by the rule of the table of tensors
  std::optional<Layout> layout;
  std::optional<Index4> strides;  ///< elements, axes b, h, l, d
  std::int64_t offset = 0;        ///< elements before the first
  /// Whether the tensor lies otherwise than the call's layout says.
  bool is_placed() const { return layout || strides || offset != 0; }
  bool operator==(const TensorSpec&) const = default;
};

struct BlockSpec {
  std::int64_t rows = 1, columns = 1;
  bool operator==(const BlockSpec&) const = default;
};

/// Keys by number: each query has a list of `count` numbers of blocks of `block` keys, a list for each key head or,
/// with `shared`, for all heads.
struct SelectSpec {
  std::int64_t count = 1, block = 1;
  bool shared = false;
  bool operator==(const SelectSpec&) const = default;
};

/// Scales of a tensor that is stored in 8 or 4 bits: an element stands for its code times its scale.
struct ScaleSpec {
  ScaleShare share = ScaleShare::tensor;
  std::int64_t block = 0;  ///< elements along the head dimension that have one scale; the last block may be shorter
  bool operator==(const ScaleSpec&) const = default;
};

/// Key lengths per batch, or lengths of segments; `query` is empty when only keys were given.
struct LengthSpec {
  std::vector<std::int64_t> query, key;
  bool operator==(const LengthSpec&) const = default;
};

struct Call {
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

  Op op = Op::attention;
  Pass pass = Pass::forward;
  /// Storage of q, k, v and out, and of other tensors, unless one has a type of its own. Its accumulator is the call's.
  DType dtype = DType::f32;
  std::int64_t batch = 1;
  std::int64_t query_heads = 1, key_heads = 1;
  std::int64_t query_length = 0, key_length = 0;
  std::int64_t key_dim = 1, value_dim = 1;
  std::optional<double> scale;  ///< unset: 1/sqrt(key_dim)
  bool causal = false;
  Align align = Align::top_left;
  std::int64_t window_left = kUnbounded, window_right = kUnbounded;
  std::int64_t prefix = 0;
  bool prefix_causal = false;  ///< the prefix escapes the window, but not the diagonal of `causal`
  std::optional<LengthSpec> lengths, segments;
  std::optional<MaskSpec> mask;
  std::optional<BlockSpec> blocks;
  /// Scales of q, k and v. Those of keys and values hold for cached ones, too.
  std::optional<ScaleSpec> q_scale, k_scale, v_scale;
  std::optional<SelectSpec> select;  ///< of the keys that are visible by all else, those of a list are
  std::optional<double> softcap;
  bool unscaled_cap = false;  ///< the cap applies to <q,k>, and the scale to what it leaves
  Scales scales = Scales::none;
  Rope rope = Rope::none;
  std::int64_t rope_dims = 0;       ///< R: the first features, an even number of them, are rotated; 0: all
  std::int64_t rope_positions = 0;  ///< positions are inputs, each below this number; 0: places in the sequence
  bool rotated_cache = false;    ///< cached keys went through norm and rotation before they were stored; with `append`
                                 ///< new ones do so before they are written
  std::optional<double> norm;    ///< eps of the RMS norm of each row of q and k; unset: they are not normalised
  bool norm_after_rope = false;  ///< and behind the rotation, not in front of it
  bool alibi = false;
  std::vector<double> alibi_slopes;
  bool sinks = false;
  std::vector<double> sink_values;
  double dropout = 0;
  std::uint64_t dropout_seed = 0;          ///< 0 without dropout
  std::int64_t past = 0;                   ///< cached keys, the most that any batch has
  std::vector<std::int64_t> past_lengths;  ///< those of each batch where they differ, or empty
  std::optional<std::int64_t> page_size;
  bool dynamic = false;  ///< lengths and page table are data of a run (launch.h), up to Lq and Lk
  bool append = false;   ///< new keys and values are written into the cache k and v before it is read
  bool latent =
      false;  ///< values are the first Dv columns of their keys' rows: `v` is a view of `k`, as past_v of past_k
  bool latent_apart = false;     ///< and `q` and `k` end there: the columns behind are tensors `q_rope` and `k_rope`
  bool decay_per_head = false;   ///< linear attention: one decay for a head instead of one for each key dimension
  bool beta_shared = false;      ///< and one beta for all heads instead of one for each key head
  bool initial_state = false;    ///< and a state to start from instead of zeros
  std::int64_t qk_heads = 0;     ///< and fewer heads of q and k than states, each for several; 0: as many
  std::optional<double> l2norm;  ///< and rows of q and k divided by sqrt(sum of their squares + this eps)
  std::int64_t parts = 2;        ///< results that are merged into one
  bool base2 = false;            ///< a merge takes and gives logsumexps in base 2, not e
  bool dlse = false;             ///< the loss depends on lse, too: its derivative by it is an input of the gradients
  bool dpresent = false;         ///< and on linear attention's last state
  std::vector<Output> outputs = {Output::o};
  Layout layout = Layout::bhld;
  std::int64_t gap = 0;  ///< layout thd: rows between two sequences that belong to none
  std::array<TensorSpec, kNames<TensorId>.size()> tensors{};  ///< by TensorId

  bool operator==(const Call&) const = default;

  const TensorSpec& tensor(TensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
  TensorSpec& tensor(TensorId id) { return tensors[static_cast<std::size_t>(id)]; }
  bool wants(Output output) const;
  bool runs_forward() const { return pass != Pass::backward; }
  bool wants_gradients() const { return pass != Pass::forward; }
  /// Changes the pass, and the results to those that it has.
  void set_pass(Pass other);

  double scale_value() const;
  /// The head of q and k that the n-th state of linear attention is written and read by.
  std::int64_t qk_head(std::int64_t n) const { return qk_heads == 0 ? n : n / (key_heads / qk_heads); }
  /// Columns of q and k, of which q_rope and k_rope may hold the last ones.
  std::int64_t stored_key_dim() const { return latent_apart ? value_dim : key_dim; }
  /// Features that are rotated.
  std::int64_t rotated_dims() const { return rope == Rope::none ? 0 : rope_dims == 0 ? key_dim : rope_dims; }
  /// Whether rows of q and k are rotated or normalised before they are multiplied.
  bool prepares_operands() const { return rope != Rope::none || norm; }
  bool has_head_scales() const { return scales == Scales::head || scales == Scales::both; }
  bool has_query_scales() const { return scales == Scales::query || scales == Scales::both; }
  std::int64_t heads_per_group() const { return key_heads == 0 ? 1 : query_heads / key_heads; }
  /// Queries and keys that batch b has: its lengths, or Lq and Lk. Queries beyond see nothing, keys beyond are hidden.
  std::int64_t query_count(std::int64_t b) const;
  std::int64_t key_count(std::int64_t b) const;
  /// Of these, the queries and keys that have storage: packed sequences and pages leave out what lies beyond a length.
  std::int64_t stored_queries(std::int64_t b) const { return packed_sequences() ? query_count(b) : query_length; }
  std::int64_t stored_keys(std::int64_t b) const;
  /// Cached keys of batch b. Its new keys are numbered from there on.
  std::int64_t past_length(std::int64_t b) const {
    return past_lengths.empty() ? past : past_lengths[static_cast<std::size_t>(b)];
  }
  /// With `append`: the first of batch b's keys that a run writes, as many as it has queries. They are its last ones.
  std::int64_t first_new_key(std::int64_t b) const { return key_count(b) - query_count(b); }
  /// Whether each of the Lk keys of each batch has storage.
  bool stores_every_key() const { return !packed_sequences() && !page_size && past_lengths.empty(); }
  /// Query i of batch b stands on the diagonal at key i + offset. Segments have diagonals of their own.
  std::int64_t diagonal_offset(std::int64_t b) const;
  /// Sequences without padding, one after another (layout thd): rows beyond a length are not stored at all.
  bool packed_sequences() const { return layout == Layout::thd; }
  /// Whether `alibi_slopes` has a slope for each batch and query head, and not one for each query head.
  bool slopes_per_batch() const { return static_cast<std::int64_t>(alibi_slopes.size()) > query_heads; }
  /// Any of raw, capped, biased, weights.
  bool wants_scores() const;
  /// The scales of q, k or v; unset where it has none.
  const std::optional<ScaleSpec>& scale_of(TensorId stored) const {
    return stored == TensorId::q ? q_scale : stored == TensorId::k ? k_scale : v_scale;
  }
  bool has_stored_scales() const { return q_scale || k_scale || v_scale; }
  bool has_scores() const { return traits_of(op).scores; }
  bool has_state() const { return traits_of(op).state; }
  bool has_decay() const { return traits_of(op).decay; }
  bool has_beta() const { return traits_of(op).beta; }
  bool has_parts() const { return traits_of(op).parts; }
  bool has_lse() const { return traits_of(op).lse; }
  /// Whether Lq and Lk are one length: of tokens that write a state, or of rows that are merged.
  bool has_one_length() const { return has_state() || has_parts(); }
  /// Whether the diagonal matters, so that `align` must be said when Lq != Lk.
  bool uses_diagonal() const;
};

/// The published ALiBi slopes for `heads` heads (Press, Smith and Lewis 2022, and their code for counts that are no
/// power of two), in double, by square roots and products alone.
std::vector<double> published_alibi_slopes(std::int64_t heads);

/// The multiply-adds of q*k and p*v over all pairs, visible or not.
double dense_multiply_adds(const Call& call);

/// Pages of a paged cache: of batch b, and in all; with lengths that are data, as many as the longest ones take.
std::int64_t page_count(const Call& call, std::int64_t b);
std::int64_t page_count(const Call& call);

/// Rows of the tables of cosines and sines: positions that they are given for. Without positions as inputs Lq + Lk,
/// which reach every query on every diagonal, padding included, whatever lengths a run has.
std::int64_t table_rows(const Call& call);

/// Partial results of all batches; the largest number where they are more.
std::int64_t part_count(const Call& call);

/// Keys (or blocks of them) of batch b that a list of `select` may name, from 0 on.
std::int64_t selectable(const Call& call, std::int64_t b);

/// Blocks along queries and keys of a block mask.
std::int64_t block_rows(const Call& call);
std::int64_t block_columns(const Call& call);

}  // namespace attest
