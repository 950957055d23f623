// What gradients need in every OpenCL backend: D, the gradient of a score, those of the mask and of the sinks.
//
// `dout` and `out` are dense rows of Dv, `lse` and `shift`, which is dlse - D, one number a row.

#define GRADIENTS __global const REAL *dout, __global const REAL *shift

// P and dS of hidden keys are -0.0, so that a tile of operands that hold NaN can tell them from what underflowed.
inline int is_hidden(REAL number) { return number == 0 && signbit(number); }

inline int is_odd(REAL number) { return !(fabs(number) < (REAL)INFINITY); }

// dP becomes dS of a visible pair; *kept becomes P after dropout, *slope what the cap leaves of a derivative.
inline REAL score_gradient(COMMON, __global const REAL* shift, long b, long h, long i, long j, long diagonal,
                           REAL score, REAL product, REAL* kept_weight, REAL* slope) {
  const Problem* p = &problem;
  const long row = (b * p->query_heads + h) * p->query_length + i;
  const REAL after = capped(p, softcap, score), tangent = p->has_softcap ? after / softcap : (REAL)0;
  const REAL whole = biased(p, mask, small, blocks, b, h, i, j, diagonal, after);
  *slope = 1 - tangent * tangent;
  *kept_weight = -(REAL)0;
  if (whole == HIDDEN) return -(REAL)0;
  const REAL weight = exp(whole - lse[row]);
  const REAL factor = p->dropout ? keep_factor(p, keep, kept, b, h, i, j) : (REAL)1;
  *kept_weight = weight * factor;
  const REAL gradient = weight * (factor * product + shift[row]);
  return gradient == 0 ? (REAL)0 : gradient;
}

// One work-item a row: dlse - sum of do * o. A row that sees nothing has a D of 0, whatever its do holds.
__kernel void gradient_rows(COMMON, __global const REAL* dout, __global REAL* shift, __global const REAL* dlse,
                            const int has_dlse) {
  const Problem* p = &problem;
  const long row = get_global_id(0);
  if (row >= p->batch * p->query_heads * p->query_length) return;
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads);
  REAL delta = 0;
  if (i < tables[b * TABLE_WIDTH + 3]) {
    for (long c = 0; c < p->value_dim; ++c)
      delta = fma(dout[row * p->value_dim + c], out[row * p->value_dim + c], delta);
    int any = !is_odd(delta);
    const RowKeys range = row_keys(p, rows, b, i);
    for (long j = 0; j < p->key_length && !any; ++j) any = sees(p, mask, blocks, &range, b, h, i, j);
    if (!any) delta = 0;
  }
  shift[row] = (has_dlse ? dlse[row] : (REAL)0) - delta;
}

// What a tile of rows [row0, row0 + count) of head h and one of keys [key0, key0 + keys) hold in common.
typedef struct {
  long b, h, g, row0, key0;
  int count, keys;
} Pair;

inline REAL query_at(const Problem* p, __global const long* tables, __global const STORE* q, const Pair* at, int r,
                     long d) {
  return r < at->count && d < p->key_dim ? LOAD(q, query_row(p, tables, at->b, at->h, at->row0 + r) + d * p->q[3])
                                         : (REAL)0;
}

inline REAL dout_at(const Problem* p, __global const REAL* dout, const Pair* at, int r, long c) {
  const long row = (at->b * p->query_heads + at->h) * p->query_length + at->row0 + r;
  return r < at->count && c < p->value_dim ? dout[row * p->value_dim + c] : (REAL)0;
}

inline REAL key_at(const Problem* p, __global const long* tables, __global const STORE* k, __global const STORE* past_k,
                   const Pair* at, int j, long d) {
  if (j >= at->keys || d >= p->key_dim) return 0;
  const Features key = key_features(p, tables, k, past_k, at->b, at->g, at->key0 + j);
  return LOAD(key.from, d * key.step);
}

inline REAL value_at(const Problem* p, __global const long* tables, __global const STORE* v,
                     __global const STORE* past_v, const Pair* at, int j, long c) {
  if (j >= at->keys || c >= p->value_dim) return 0;
  const Features value = value_features(p, tables, v, past_v, at->b, at->g, at->key0 + j);
  return LOAD(value.from, c * value.step);
}

// The raw score of the first row and key of a pair, and its do * v.
inline REAL score_of(const Problem* p, __global const long* tables, REAL scale, __global const STORE* q,
                     __global const STORE* k, __global const STORE* past_k, const Pair* at) {
  REAL score = 0;
  for (long d = 0; d < p->key_dim; ++d)
    score = fma(query_at(p, tables, q, at, 0, d) * scale, key_at(p, tables, k, past_k, at, 0, d), score);
  return score;
}

inline REAL product_of(const Problem* p, __global const long* tables, __global const REAL* dout,
                       __global const STORE* v, __global const STORE* past_v, const Pair* at) {
  REAL product = 0;
  for (long c = 0; c < p->value_dim; ++c)
    product = fma(dout_at(p, dout, at, 0, c), value_at(p, tables, v, past_v, at, 0, c), product);
  return product;
}

// One work-item an element of the mask as it is stored: dS summed over the axes that it is broadcast along. `axes` has
// a bit for each axis that it keeps.
__kernel void gradient_of_mask(COMMON, GRADIENTS, __global REAL* dmask, const int axes, const long count) {
  const Problem* p = &problem;
  const long element = get_global_id(0);
  if (element >= count) return;
  const long size[4] = {p->batch, p->query_heads, p->query_length, p->key_length};
  long low[4], high[4], rest = element;
  for (int axis = 3; axis >= 0; --axis) {
    const long n = axes >> axis & 1 ? size[axis] : 1;
    low[axis] = rest % n;
    high[axis] = axes >> axis & 1 ? low[axis] + 1 : size[axis];
    rest /= n;
  }
  REAL sum = 0;
  for (long b = low[0]; b < high[0]; ++b) {
    for (long h = low[1]; h < high[1]; ++h) {
      for (long i = low[2]; i < min(high[2], tables[b * TABLE_WIDTH + 3]); ++i) {
        const RowKeys range = row_keys(p, rows, b, i);
        for (long j = low[3]; j < min(high[3], tables[b * TABLE_WIDTH + 4]); ++j) {
          if (!sees(p, mask, blocks, &range, b, h, i, j)) continue;
          const Pair at = {b, h, h / p->group, i, j, 1, 1};
          const REAL score = score_of(p, tables, scale, q, k, past_k, &at);
          const REAL product = product_of(p, tables, dout, v, past_v, &at);
          REAL weight, slope;
          sum += score_gradient(COMMON_VALUES, shift, b, h, i, j, range.diagonal, score, product, &weight, &slope);
        }
      }
    }
  }
  dmask[element] = sum;
}

// One work-item a head: the sink's weight in each row times (dlse - D).
__kernel void gradient_of_sinks(COMMON, GRADIENTS, __global REAL* dsinks) {
  const Problem* p = &problem;
  const long h = get_global_id(0);
  if (h >= p->query_heads) return;
  const REAL sink = sink_of(p, small, h);
  REAL sum = 0;
  for (long b = 0; b < p->batch && sink != HIDDEN; ++b) {
    for (long i = 0; i < tables[b * TABLE_WIDTH + 3]; ++i) {
      const long row = (b * p->query_heads + h) * p->query_length + i;
      sum += exp(sink - lse[row]) * shift[row];
    }
  }
  dsinks[h] = sum;
}
