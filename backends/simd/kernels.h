// What the vectors do for backends/simd: functions on tiles of dense rows, compiled for several instruction sets.
//
// Everything here is arithmetic. Where rows come from, who sees whom and what happens to scores is the plan's (plan.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/arithmetic/arithmetic.h"

namespace attest::simd {

/// Keys of a tile at most, the step of the online softmax, and columns of its weights.
inline constexpr std::int64_t kTileKeys = 64;

/// Rows of a task that reads keys and values where they lie; 1, 2, 4 or this many in a tile.
inline constexpr std::int64_t kFewRows = 8;

/// Rows of any other tile at least.
inline constexpr std::int64_t kLeastRows = 4;

/// Nats by which a row's maximum may lag behind its scores: weights then reach e^kLag, and rescaling becomes rare.
inline constexpr double kLag = 5.5;

/// Two bf16 that lie side by side in memory: the first of them in the lower half.
using Pair = std::uint32_t;
constexpr std::int64_t pairs_of(std::int64_t numbers) { return (numbers + 1) / 2; }

/// Query rows of pairs begin at multiples of it: whole vectors of any target.
inline constexpr std::int64_t kPairsOfVector = 16;

/// A tile's operands as pairs of bf16, whose products are summed two at a time; missing numbers are 0. A pair is two
/// features of a query or key, or one column of two values.
struct PairTile {
  std::int64_t query_stride = 0;
  const Pair* queries = nullptr;  ///< rows x query_stride, not scaled
  const Pair* keys = nullptr;     ///< as Tile::keys_packed: pair of features, then key
  const Pair* values = nullptr;   ///< as Tile::values: pair of keys, then column
  Pair* weights = nullptr;        ///< rows x kTileKeys / 2: Tile::weights, rounded
  float scale = 1;                ///< of the scores
};

/// A block of query rows against a tile of at most kTileKeys keys. Rows are padded to a multiple of Kernels::rows_step,
/// and to kLeastRows; few ones to a power of two.
template <class Real>
struct Tile {
  std::int64_t rows = 0, keys = 0, key_dim = 0, value_dim = 0;
  const Real* queries = nullptr;  ///< rows x key_dim, scaled
  const Real* keys_packed =
      nullptr;                     ///< panels of Kernels::width keys: feature, then key; missing keys of a vector are 0
  const Real* values = nullptr;    ///< panels of Kernels::width columns (fewer, whole vectors, at the end): key, column
  std::int64_t values_loaded = 0;  ///< keys that a panel of values holds; the tile's first lies `value_key` below
  std::int64_t value_key = 0;
  /// Or both where they lie, for few rows: kTileKeys rows, and as many that come next, which are fetched meanwhile.
  const void* const* key_rows = nullptr;
  const void* const* value_rows = nullptr;
  DType stored = DType::f32;  ///< of those rows: Real's; for float also 16 bits, or codes of i8 without their scales
  bool from_memory = false;   ///< they are more than caches of the second level hold
  Real* weights = nullptr;    ///< rows x kTileKeys: scores, then exp(score - maximum)
  Real* out = nullptr;        ///< rows x out_stride, the columns padded to whole vectors
  std::int64_t out_stride = 0;
  Real* maximum = nullptr;  ///< a row: what its weights are relative to; the lowest number before any
  Real* sum = nullptr;      ///< rows x lanes: parts of the sum of weights
  /// A row: keys [first, last) of the tile are seen, none as [0, 0). Unset where all are seen, or the plan hides.
  const std::int64_t* first = nullptr;
  const std::int64_t* last = nullptr;
  /// A row, padding too: its mask, side by side by key, of which the tile's first key is number `mask_key`.
  const void* const* mask_rows = nullptr;
  std::int64_t mask_key = 0;
  DType mask_type = DType::f32;
  const PairTile* pairs = nullptr;  ///< instead of queries, keys_packed and values, for kernels that take them
};

/// Tokens of linear attention that enter the state together.
inline constexpr std::int64_t kStateChunk = 32;

/// out += left * right, all of them rows that lie `stride` apart. Rows are a multiple of Kernels::rows (of kLeastRows
/// where left is turned), columns of Kernels::lanes.
template <class Real>
struct Product {
  std::int64_t rows = 0, columns = 0, depth = 0;
  const Real* left = nullptr;  ///< rows x depth
  std::int64_t left_stride = 0;
  const Real* right = nullptr;  ///< depth x columns
  std::int64_t right_stride = 0;
  Real* out = nullptr;  ///< rows x columns
  std::int64_t out_stride = 0;
  bool lower_left = false;  ///< left is 0 right of its diagonal
  bool lower_out = false;   ///< what lies right of out's diagonal is not wanted
};

/// One token of linear attention: the state moves on, and each query head of the group reads it.
template <class Real>
struct Token {
  std::int64_t key_dim = 0, columns = 0, heads = 0;  ///< columns: Dv, padded to whole vectors
  bool is_delta = false;
  const Real* key = nullptr;      ///< key_dim
  const Real* decay = nullptr;    ///< key_dim factors, or none
  const Real* value = nullptr;    ///< columns
  Real beta = 0;                  ///< of the delta rules
  const Real* queries = nullptr;  ///< heads x key_dim, query_stride apart; scaled
  std::int64_t query_stride = 0;
  Real* state = nullptr;  ///< key_dim x columns
  Real* out = nullptr;    ///< heads x columns, out_stride apart
  std::int64_t out_stride = 0;
};

/// Keys of a head that is taken whole, at most, and rows of it whose scores exist at a time.
inline constexpr std::int64_t kHeadKeys = 128, kHeadRows = 24;

/// Bytes that will be read, from the start of a line on.
struct FetchedBytes {
  const char* from = nullptr;
  std::int64_t bytes = 0;
};

/// A head whose rows see keys [0, seen): at least Kernels::rows rows, and kHeadKeys keys at most.
template <class Real>
struct WholeHead {
  std::int64_t rows = 0, keys = 0, key_dim = 0, value_dim = 0;
  const Real* queries = nullptr;  ///< rows x key_dim, query_stride apart
  std::int64_t query_stride = 0;
  const Real* keys_packed = nullptr;  ///< panels as Tile::keys_packed; missing keys may be anything
  const Real* values = nullptr;       ///< rows, value_stride apart, whose columns are whole vectors
  std::int64_t value_stride = 0;
  bool values_packed = false;  ///< or panels as Tile::values
  const Real* mask = nullptr;  ///< rows x keys, mask_stride apart, added to scaled scores; or none
  std::int64_t mask_stride = 0;
  const std::int64_t* seen = nullptr;  ///< a row: its number of keys, at least 1; unset where all are seen
  Real scale = 1;
  Real* weights = nullptr;           ///< room for kHeadRows x kHeadKeys
  Real* out = nullptr;               ///< rows x value_dim, dense
  Real* lse = nullptr;               ///< rows, if they are wanted
  std::array<FetchedBytes, 3> next;  ///< what the head that comes next reads
};

/// Rows of a NarrowTile, at most: whole groups.
inline constexpr std::int64_t kNarrowRows = 256;

/// Rows against keys, both of few features. A group of Kernels::narrow_rows rows lies side by side.
template <class Real>
struct NarrowTile {
  std::int64_t rows = 0, key_dim = 0, value_dim = 0;  ///< rows: a multiple of a group
  const Real* queries = nullptr;                      ///< of each group: feature, then row; scaled
  const Real* keys_at = nullptr;                      ///< rows of keys, key_stride apart
  std::int64_t key_stride = 0;
  const Real* values_at = nullptr;
  std::int64_t value_stride = 0;
  const Real* first = nullptr;  ///< a row: keys [first, last) are seen, none as [0, 0)
  const Real* last = nullptr;
  Real* out = nullptr;      ///< of each group: column, then row
  Real* maximum = nullptr;  ///< a row, as of a Tile
  Real* sum = nullptr;      ///< a row: of its weights
};

/// The functions of one instruction set.
template <class Real>
struct Kernels {
  std::int64_t lanes, rows, width;  ///< of a vector; of a register tile, and its columns
  std::int64_t rows_step;           ///< a multiple of which the rows of a Tile are
  std::int64_t narrow_rows;         ///< of a group in a NarrowTile
  std::int64_t narrow_dim;          ///< features up to which a NarrowTile is faster than a Tile; 0: never

  /// `keys` rows of `dim` values, `stride` apart, into panels as Tile::values has them, whose missing columns become 0.
  /// False when a value is NaN or infinite.
  bool (*pack_values)(const Real* from, std::int64_t stride, std::int64_t keys, std::int64_t dim, Real* to);
  /// Whether a Tile may have pairs: the processor adds products of bf16 two at a time.
  bool takes_pairs;
  /// Rows of bf16, `stride` numbers apart, into panels as Tile::values has them. False as for pack_values.
  bool (*pack_value_pairs)(const std::uint16_t* from, std::int64_t stride, std::int64_t keys, std::int64_t dim,
                           Pair* to);
  /// The steps: S = Q * K^T; -inf outside of [first[r], last[r]), which are set; weights, whose maximum follows the
  /// scores; O += P * V. Columns beyond `keys`, up to a whole vector, must be -inf before the softmax.
  void (*scores)(const Tile<Real>&);
  /// Where there is one, after the scores: a mask of a type that `reads_mask` takes, added, or -inf where a byte is 0.
  bool (*reads_mask)(DType stored);
  void (*mask)(const Tile<Real>&);
  void (*hide)(const Tile<Real>&);
  void (*softmax)(const Tile<Real>&);
  void (*accumulate)(const Tile<Real>&);
  /// n numbers of a row of O over the sum of its weights, whose parts are a vector; gives that sum. Zeros where it is
  /// 0.
  Real (*finish_row)(const Real* out, const Real* parts, std::int64_t n, Real* to);
  /// A head at once. False when it stored a number that is not finite: a hidden value may have got into it.
  bool (*attend_head)(const WholeHead<Real>&);
  /// The steps of all rows of a NarrowTile, added to what was summed. None where narrow_dim is 0.
  void (*attend_narrow)(const NarrowTile<Real>&);
  /// The products for few rows. `reads` says of which types.
  bool (*reads)(DType stored);
  void (*scores_of_few)(const Tile<Real>&);
  void (*accumulate_few)(const Tile<Real>&);
  /// n numbers of f16, bf16, i8 or the same type that lie side by side, times a factor.
  void (*widen)(const void* from, DType type, std::int64_t n, Real factor, Real* to);
  void (*multiply_add)(const Product<Real>&);
  void (*multiply_add_turned)(const Product<Real>&);  ///< left holds `depth` rows, and its transpose is multiplied
  /// p = exp(score - lse) in place of n scores, whole vectors, then p * (product + shift) in place of the products; 0
  /// for both where a score is -inf.
  void (*weigh)(Real* scores, Real* products, std::int64_t n, Real lse, Real shift);
  void (*step)(const Token<Real>&);
  /// In place: exp for arguments up to kChunkNats, exactly 0 where it would be subnormal, NaN for NaN; tanh.
  void (*exp_row)(Real*, std::int64_t n);
  void (*tanh_row)(Real*, std::int64_t n);
};

/// Largest errors in ulps; tests/unit/simd_kernels_test.cpp measures them for each instruction set.
inline constexpr double kExpUlps = 2, kTanhUlps = 3;

/// An instruction set that was compiled and that this processor has, the fastest one first.
struct Target {
  std::string name;  ///< avx512_bf16, avx512, avx2, sse4; elsewhere as Highway calls it, in lower case
  std::int64_t bit;
  bool pairs = false;  ///< with products of pairs of bf16
};
std::vector<Target> targets();
/// The first of them, or the one that ATTEST_SIMD_TARGET names. Throws BackendUnavailable where that is none.
Target chosen_target();

/// As in 1.0.3.
std::string highway_version();

/// float or double. `target` is one of targets().
template <class Real>
const Kernels<Real>& kernels_of(const Target& target);

}  // namespace attest::simd
