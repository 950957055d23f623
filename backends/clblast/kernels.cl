// What stands around CLBlast's batched products: packing, masked softmax, and values that are not finite.
//
// The k dimensions of the products, features and keys, are filled up with zeros to a multiple of GEMM_DEPTH, which the
// host defines.

#define DEEP(n) (((n) + GEMM_DEPTH - 1) / GEMM_DEPTH * GEMM_DEPTH)
// Rows of queries that share keys, and features of values, are k dimensions of gradients alone.
#ifdef WITH_GRADIENTS
#define DEEP_IN_GRADIENTS(n) DEEP(n)
#else
#define DEEP_IN_GRADIENTS(n) (n)
#endif

// GEMM_DEPTH is a multiple of the lanes, so that rows of scores begin and end at whole vectors.
#define LANES 8
#ifdef REAL_IS_DOUBLE
typedef double8 REALS;
#else
typedef float8 REALS;
#endif
#define VECTOR(at) (*(__global REALS*)(at))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

// Where a row of queries lies among those that enter products.
inline long packed_row(const Problem* p, long row) {
  const long together = p->group * p->query_length;
  return row / together * DEEP_IN_GRADIENTS(together) + row % together;
}

// Rows of q, dense. Rows of packed sequences that are not stored become 0.
__kernel void pack_queries(COMMON, __global REAL* to) {
  const Problem* p = &problem;
  const long row = get_global_id(0);
  if (row >= p->batch * p->query_heads * p->query_length) return;
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads), width = DEEP(p->key_dim);
  const int stored = i < tables[b * TABLE_WIDTH + 3];
  const long from = stored ? query_row(p, tables, b, h, i) : 0, step = p->q[3], count = stored ? p->key_dim : 0;
  to += packed_row(p, row) * width;
  for (long d = 0; d < count; ++d) to[d] = LOAD(q, from + d * step);
  for (long d = count; d < width; ++d) to[d] = 0;
}

// Columns of k and rows of v, dense, from wherever they are stored; keys that no row may see, and those that fill up, become
// 0. Values that hold NaN or infinity become zeros and are flagged: a hidden key has weight 0, and 0 * NaN in a product
// would leak. With `both` keys do, too. One work-item GEMM_DEPTH keys, which are whole cache lines of the columns.
__kernel void pack_keys(COMMON, __global REAL* to_k, __global REAL* to_v, __global int* flags, __global int* any,
                        const int both) {
  const Problem* p = &problem;
  const long keys = DEEP(p->key_length), width = DEEP(p->key_dim), first_row = get_global_id(0) * GEMM_DEPTH;
  if (first_row >= p->batch * p->key_heads * keys) return;
  const long first = first_row % keys, head = first_row / keys, g = head % p->key_heads, b = head / p->key_heads;
  const long all_stored = min(p->key_length, tables[b * TABLE_WIDTH + 4]);
  const int stored = (int)clamp(all_stored - first, 0L, (long)GEMM_DEPTH);
  Features key[GEMM_DEPTH];
  for (int r = 0; r < stored; ++r) key[r] = key_features(p, tables, k, past_k, b, g, first + r);
  to_k += head * width * keys + first;
  for (long d = 0; d < p->key_dim; ++d) {
    for (int r = 0; r < stored; ++r) to_k[d * keys + r] = LOAD(key[r].from, d * key[r].step);
    for (int r = stored; r < GEMM_DEPTH; ++r) to_k[d * keys + r] = 0;
  }
  for (long d = p->key_dim; d < width; ++d) {
    for (int r = 0; r < GEMM_DEPTH; ++r) to_k[d * keys + r] = 0;
  }
  const long columns = DEEP_IN_GRADIENTS(p->value_dim);
  for (int r = 0; r < GEMM_DEPTH; ++r) {
    const Features value = value_features(p, tables, v, past_v, b, g, r < stored ? first + r : 0);
    __global REAL* to = to_v + (first_row + r) * columns;
    REAL probe = 0, probe_k = 0;
    for (long d = 0; both && d < p->key_dim; ++d) probe_k += to_k[d * keys + r] * (REAL)0;
    for (long d = 0; probe_k != 0 && d < p->key_dim; ++d) to_k[d * keys + r] = 0;
    for (long d = 0; d < p->value_dim; ++d) {
      to[d] = r < stored ? LOAD(value.from, d * value.step) : (REAL)0;
      probe += to[d] * (REAL)0;
    }
    for (long d = p->value_dim; d < columns; ++d) to[d] = 0;
    flags[first_row + r] = probe != 0 || probe_k != 0;
    if (flags[first_row + r]) any[0] = 1;
    for (long d = 0; probe != 0 && d < p->value_dim; ++d) to[d] = 0;
  }
}

// Keys outside of [first, last) are not looked at. The whole vectors from low to high hold them.
typedef struct {
  long first, last, low, high;
} Span;

// Scores of what lies in no interval of a row become HIDDEN from low to high, and 0 elsewhere.
inline Span hide_unseen(const Problem* p, const RowKeys* range, __global REAL* s, long width) {
  Span at = {p->key_length, 0, 0, 0};
  widen(range, 0, p->key_length, &at.first, &at.last);
  if (at.first >= at.last) at.first = at.last = 0;
  at.low = at.first / LANES * LANES;
  at.high = (at.last + LANES - 1) / LANES * LANES;
  for (long j = at.low; j < at.high; ++j) {
    if (!in_range(range, j)) s[j] = HIDDEN;
  }
  for (long j = 0; j < at.low; j += LANES) VECTOR(s + j) = (REALS)(0);
  for (long j = at.high; j < width; j += LANES) VECTOR(s + j) = (REALS)(0);
  return at;
}

// One work-item a row: scores become normalised weights in place, lse is written. Hidden keys get weight 0.
__kernel void masked_softmax(COMMON, __global REAL* scores) {
  const Problem* p = &problem;
  const long row = get_global_id(0), width = DEEP(p->key_length);
  if (row >= p->batch * p->query_heads * p->query_length) return;
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads);
  __global REAL* s = scores + packed_row(p, row) * width;
  const RowKeys range = row_keys(p, rows, b, i);
  const REAL sink = sink_of(p, small, h);

  const Span at = hide_unseen(p, &range, s, width);
  if (p->has_softcap || p->has_slopes || p->mask_kind || p->block_rows) {
    for (long j = at.first; j < at.last; ++j) {
      if (in_range(&range, j)) s[j] = biased(p, mask, small, blocks, b, h, i, j, range.diagonal, capped(p, softcap, s[j]));
    }
  }

  // NaN is never the larger one, and makes the total NaN below.
  REALS largest = (REALS)(sink);
  for (long j = at.low; j < at.high; j += LANES) largest = LARGER(VECTOR(s + j), largest);
  REAL most = sink;
  for (int n = 0; n < LANES; ++n) most = fmax(most, ((REAL*)&largest)[n]);
  lse[row] = sink;
  if (most == HIDDEN) {
    int seen = p->has_sinks && sink != HIDDEN;  // a sink of -inf is none
    for (long j = at.low; j < at.high; ++j) seen |= s[j] != HIDDEN;
    if (!seen) {
      for (long j = at.low; j < at.high; j += LANES) VECTOR(s + j) = (REALS)(0);
      return;
    }
    most = 0;  // nothing but NaN
  }
  REALS sums = (REALS)(0);
  for (long j = at.low; j < at.high; j += LANES) {
    const REALS e = exp(VECTOR(s + j) - most);
    VECTOR(s + j) = e;
    sums += e;
  }
  REAL total = p->has_sinks ? exp(sink - most) : (REAL)0;
  for (int n = 0; n < LANES; ++n) total += ((REAL*)&sums)[n];
  for (long j = at.low; j < at.high; j += LANES) VECTOR(s + j) /= total;
  for (long j = at.first; p->dropout && j < at.last; ++j) s[j] *= keep_factor(p, keep, kept, b, h, i, j);
  lse[row] = most + log(total);
}

// Adds the flagged keys' values to the rows that see them. Does nothing when no key was flagged.
__kernel void add_flagged(COMMON, __global const REAL* weights, __global const int* flags, __global const int* any) {
  if (!any[0]) return;
  const Problem* p = &problem;
  const long row = get_global_id(0), keys = DEEP(p->key_length);
  if (row >= p->batch * p->query_heads * p->query_length) return;
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads), g = h / p->group;
  const RowKeys range = row_keys(p, rows, b, i);
  for (long j = 0; j < p->key_length; ++j) {
    if (!flags[(b * p->key_heads + g) * keys + j] || !sees(p, mask, blocks, &range, b, h, i, j)) continue;
    const Features value = value_features(p, tables, v, past_v, b, g, j);
    for (long c = 0; c < p->value_dim; ++c) {
      out[row * p->value_dim + c] += weights[packed_row(p, row) * keys + j] * LOAD(value.from, c * value.step);
    }
  }
}
