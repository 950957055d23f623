// What every kernel needs to know about a problem: where rows lie, who sees what, what is added to a score.
//
// The host defines REAL, float or double, the type of every sum, and STORE_REAL, STORE_F16 or STORE_BF16 for the type in
// which q, k and v lie. LOAD reads one element as REAL; 16-bit numbers need no extension for that.

#ifdef HAS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#if defined(STORE_F16)
#define STORE ushort
#define LOAD(pointer, index) ((REAL)vload_half((index), (__global const half*)(pointer)))
#elif defined(STORE_BF16)
#define STORE ushort
#define LOAD(pointer, index) ((REAL)as_float((uint)(pointer)[index] << 16))
#else
#define STORE REAL
#define LOAD(pointer, index) ((pointer)[index])
#endif

#define HIDDEN ((REAL)(-INFINITY))

typedef struct {
  long query_heads, key_heads, group, query_length, key_length, key_dim, value_dim;
  long q[4], k[4], v[4], mask[4];   // element strides; the batch's is not used for q, k and v
  long mask_kind;                   // 0 none, 1 bytes, 2 float, 3 double, 4 half, 5 bfloat16
  long past, page_size, page_stride;
  long has_slopes, has_sinks, has_softcap, dropout;  // dropout: 0 none, 1 drawn, 2 given
  long block_rows, block_columns, rows_per_block, keys_per_block;  // blocks along each axis, 0 without
  ulong seed, drop_below;
  long batch;
} Problem;

// The arguments that every kernel of a call begins with, in the order in which the host sets them.
#define COMMON                                                                                                          \
  const Problem problem, const REAL scale, const REAL softcap, const REAL kept, __global const STORE *q,                \
      __global const STORE *k, __global const STORE *v, __global const STORE *past_k, __global const STORE *past_v,      \
      __global const uchar *mask, __global const long *rows, __global const long *tables, __global const REAL *small,    \
      __global const uchar *blocks, __global const uchar *keep, __global REAL *out, __global REAL *lse
// The same, handed on.
#define COMMON_VALUES                                                                                                   \
  problem, scale, softcap, kept, q, k, v, past_k, past_v, mask, rows, tables, small, blocks, keep, out, lse

// tables: for each batch the element at which its queries, keys and values begin, how many rows of queries and of keys
// are stored, and how many of the keys are cached; then, when the cache is paged, its page numbers.
#define TABLE_WIDTH 6

// What a row sees before masks: the prefix, the band, and the key on its diagonal. Made by the host.
typedef struct {
  long prefix_first, prefix_last, band_first, band_last, diagonal;
} RowKeys;

inline RowKeys row_keys(const Problem* p, __global const long* rows, long b, long i) {
  __global const long* at = rows + (b * p->query_length + i) * 5;
  RowKeys keys = {at[0], at[1], at[2], at[3], at[4]};
  return keys;
}

inline int in_range(const RowKeys* row, long j) {
  return (j >= row->band_first && j < row->band_last) || (j >= row->prefix_first && j < row->prefix_last);
}

// The smallest interval within [low, high) that holds what the row sees there; widens [*first, *last).
inline void widen(const RowKeys* row, long low, long high, long* first, long* last) {
  const long bf = max(row->band_first, low), bl = min(row->band_last, high);
  const long pf = max(row->prefix_first, low), pl = min(row->prefix_last, high);
  if (bf < bl) {
    *first = min(*first, bf);
    *last = max(*last, bl);
  }
  if (pf < pl) {
    *first = min(*first, pf);
    *last = max(*last, pl);
  }
}

inline long query_row(const Problem* p, __global const long* tables, long b, long h, long i) {
  return tables[b * TABLE_WIDTH] + h * p->q[1] + i * p->q[2];
}

// Cached keys come first and lie densely in a tensor of their own.
inline long past_of(__global const long* tables, long b) { return tables[b * TABLE_WIDTH + 5]; }

inline long past_row(const Problem* p, long b, long g, long j, long dim) { return ((b * p->key_heads + g) * p->past + j) * dim; }

inline long key_row(const Problem* p, __global const long* tables, const long* strides, int slot, long b, long g, long j) {
  if (p->page_size > 0) {
    const long page = tables[p->batch * TABLE_WIDTH + b * p->page_stride + j / p->page_size];
    return page * strides[0] + g * strides[1] + j % p->page_size * strides[2];
  }
  return tables[b * TABLE_WIDTH + slot] + g * strides[1] + (j - past_of(tables, b)) * strides[2];
}

// Where a key's and a value's features begin, in which tensor, and how far apart they are.
typedef struct {
  __global const STORE* from;
  long step;
} Features;

// Row j of a tensor of `dim` features, or of the cached one before it. `slot` is the tensor's place in the tables.
inline Features features(const Problem* p, __global const long* tables, const long* strides, int slot, long dim,
                         __global const STORE* fresh, __global const STORE* past, long b, long g, long j) {
  Features f = {fresh, strides[3]};
  if (j < past_of(tables, b)) {
    f.from = past + past_row(p, b, g, j, dim);
    f.step = 1;
  } else {
    f.from = fresh + key_row(p, tables, strides, slot, b, g, j);
  }
  return f;
}

inline Features key_features(const Problem* p, __global const long* tables, __global const STORE* k,
                             __global const STORE* past_k, long b, long g, long j) {
  return features(p, tables, p->k, 1, p->key_dim, k, past_k, b, g, j);
}

inline Features value_features(const Problem* p, __global const long* tables, __global const STORE* v,
                               __global const STORE* past_v, long b, long g, long j) {
  return features(p, tables, p->v, 2, p->value_dim, v, past_v, b, g, j);
}

inline long mask_index(const Problem* p, long b, long h, long i, long j) {
  return b * p->mask[0] + h * p->mask[1] + i * p->mask[2] + j * p->mask[3];
}

// A score with the mask's part: -inf where the key is hidden, whatever the key held.
inline REAL masked(const Problem* p, __global const uchar* mask, long at, REAL score) {
  float bias = 0;
  switch (p->mask_kind) {
    case 0: return score;
    case 1: return mask[at] ? score : HIDDEN;
    case 2: bias = ((__global const float*)mask)[at]; break;
#ifdef HAS_DOUBLE
    case 3: {
      const double wide = ((__global const double*)mask)[at];
      return wide == (double)(-INFINITY) ? HIDDEN : score + (REAL)wide;
    }
#endif
    case 4: bias = vload_half(at, (__global const half*)mask); break;
    default: bias = as_float((uint)((__global const ushort*)mask)[at] << 16);
  }
  return bias == -INFINITY ? HIDDEN : score + (REAL)bias;
}

inline int block_visible(const Problem* p, __global const uchar* blocks, long b, long h, long i, long j) {
  return blocks[((b * p->query_heads + h) * p->block_rows + i / p->rows_per_block) * p->block_columns + j / p->keys_per_block];
}

// Whether blocks leave anything of rows [i, i + rows) and keys [first, last).
inline int any_block(const Problem* p, __global const uchar* blocks, long b, long h, long i, long rows, long first, long last) {
  if (p->block_rows == 0) return 1;
  for (long r = i / p->rows_per_block * p->rows_per_block; r < i + rows; r += p->rows_per_block) {
    for (long j = first / p->keys_per_block * p->keys_per_block; j < last; j += p->keys_per_block) {
      if (block_visible(p, blocks, b, h, r, j)) return 1;
    }
  }
  return 0;
}

inline REAL capped(const Problem* p, REAL softcap, REAL score) {
  return p->has_softcap ? softcap * tanh(score / softcap) : score;
}

// Sinks, one for each query head, then slopes: one for each query head, or for each batch and query head.
inline REAL sink_of(const Problem* p, __global const REAL* small, long h) {
  return p->has_sinks ? small[h] : HIDDEN;
}

// has_slopes: 1 where every batch has the same, 2 where each has its own.
inline REAL slope_of(const Problem* p, __global const REAL* small, long b, long h) {
  return small[p->query_heads + (p->has_slopes == 2 ? b * p->query_heads + h : h)];
}

// ALiBi, mask and blocks on a capped score; ranges are the caller's.
inline REAL biased(const Problem* p, __global const uchar* mask, __global const REAL* small, __global const uchar* blocks,
                   long b, long h, long i, long j, long diagonal, REAL score) {
  if (p->has_slopes) score -= slope_of(p, small, b, h) * (REAL)abs(diagonal - j);
  if (p->mask_kind) score = masked(p, mask, mask_index(p, b, h, i, j), score);
  if (p->block_rows && !block_visible(p, blocks, b, h, i, j)) score = HIDDEN;
  return score;
}

// Whether query i sees key j, everything considered.
inline int sees(const Problem* p, __global const uchar* mask, __global const uchar* blocks, const RowKeys* row, long b, long h,
                long i, long j) {
  if (!in_range(row, j) || (p->block_rows && !block_visible(p, blocks, b, h, i, j))) return 0;
  return !p->mask_kind || masked(p, mask, mask_index(p, b, h, i, j), (REAL)0) != HIDDEN;
}

// Philox4x32-10, first word.
inline uint philox(uint a, uint b, uint c, uint d, ulong seed) {
  uint key0 = (uint)seed, key1 = (uint)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint low0 = 0xD2511F53u * a, high0 = mul_hi(0xD2511F53u, a), low1 = 0xCD9E8D57u * c, high1 = mul_hi(0xCD9E8D57u, c);
    a = high1 ^ b ^ key0;
    b = low1;
    c = high0 ^ d ^ key1;
    d = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return a;
}

// keep / (1 - p_drop).
inline REAL keep_factor(const Problem* p, __global const uchar* keep, REAL factor, long b, long h, long i, long j) {
  if (p->dropout == 2) return keep[((b * p->query_heads + h) * p->query_length + i) * p->key_length + j] ? factor : (REAL)0;
  return (ulong)philox((uint)b, (uint)h, (uint)i, (uint)j, p->seed) >= p->drop_below ? factor : (REAL)0;
}

// The stages of the scores that were asked for, over every key: one work-item a row.
__kernel void write_stages(COMMON, __global REAL* raw_out, __global REAL* capped_out, __global REAL* biased_out,
                           __global REAL* weights_out, const int wanted) {
  const Problem* p = &problem;
  const long row = get_global_id(0);
  if (row >= p->batch * p->query_heads * p->query_length) return;
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads), g = h / p->group;
  const RowKeys range = row_keys(p, rows, b, i);
  const long query = query_row(p, tables, b, h, i);
  for (long j = 0; j < p->key_length; ++j) {
    const Features key = key_features(p, tables, k, past_k, b, g, j);
    REAL score = 0;
    for (long d = 0; d < p->key_dim; ++d) {
      score = fma(LOAD(q, query + d * p->q[3]) * scale, LOAD(key.from, d * key.step), score);
    }
    const long at = row * p->key_length + j;
    if (wanted & 1) raw_out[at] = score;
    score = capped(p, softcap, score);
    if (wanted & 2) capped_out[at] = score;
    score = in_range(&range, j) ? biased(p, mask, small, blocks, b, h, i, j, range.diagonal, score) : HIDDEN;
    if (wanted & 4) biased_out[at] = score;
    if (wanted & 8) weights_out[at] = score;
  }
  if (!(wanted & 8)) return;
  // A maximum and a sum of their own: these scores may be rounded otherwise than those of the kernel before.
  __global REAL* weights = weights_out + row * p->key_length;
  REAL most = sink_of(p, small, h);
  for (long j = 0; j < p->key_length; ++j) most = fmax(most, weights[j]);
  REAL total = p->has_sinks ? exp(sink_of(p, small, h) - most) : (REAL)0;
  for (long j = 0; j < p->key_length; ++j) {
    weights[j] = weights[j] == HIDDEN ? (REAL)0 : exp(weights[j] - most);
    total += weights[j];
  }
  for (long j = 0; j < p->key_length; ++j) {
    if (weights[j] != 0) weights[j] /= total;
  }
}

// Keys and values with the cached ones in front, as they are stored: one work-item a row.
__kernel void append_past(COMMON, __global STORE* present_k, __global STORE* present_v) {
  const Problem* p = &problem;
  const long row = get_global_id(0);
  if (row >= p->batch * p->key_heads * p->key_length) return;
  const long j = row % p->key_length, g = row / p->key_length % p->key_heads, b = row / (p->key_length * p->key_heads);
  const Features key = key_features(p, tables, k, past_k, b, g, j), value = value_features(p, tables, v, past_v, b, g, j);
  for (long d = 0; d < p->key_dim; ++d) present_k[row * p->key_dim + d] = key.from[d * key.step];
  for (long d = 0; d < p->value_dim; ++d) present_v[row * p->value_dim + d] = value.from[d * value.step];
}
