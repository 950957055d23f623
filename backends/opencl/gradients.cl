// Gradients of fused attention: a work-group of SIDE x SIDE work-items for each tile of TILE queries or keys, which goes
// over the tiles of the other side. Weights are exp(s - lse) once more; no score matrix is ever held. A tile of keys
// sums over the queries of its group in their order, so that results have the same bits each time.
//
// The host defines SIDE, EACH and their product TILE. `dout` and `out` are dense rows of Dv, `lse` and `shift`, which is
// dlse - D, one number a row.

#define PITCH (TILE + 1)
#define GRADIENTS __global const REAL *dout, __global const REAL *shift

// P and dS of hidden keys are -0.0, so that a tile of operands that hold NaN can tell them from what underflowed.
inline int is_hidden(REAL number) { return number == 0 && signbit(number); }

inline int is_odd(REAL number) { return !(fabs(number) < (REAL)INFINITY); }

// dP becomes dS of a visible pair; *kept becomes P after dropout, *slope what the cap leaves of a derivative.
inline REAL score_gradient(COMMON, __global const REAL* shift, long b, long h, long i, long j, long diagonal, REAL score,
                           REAL product, REAL* kept_weight, REAL* slope) {
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
    for (long c = 0; c < p->value_dim; ++c) delta = fma(dout[row * p->value_dim + c], out[row * p->value_dim + c], delta);
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

inline REAL query_at(const Problem* p, __global const long* tables, __global const STORE* q, const Pair* at, int r, long d) {
  return r < at->count && d < p->key_dim ? LOAD(q, query_row(p, tables, at->b, at->h, at->row0 + r) + d * p->q[3]) : (REAL)0;
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

inline REAL value_at(const Problem* p, __global const long* tables, __global const STORE* v, __global const STORE* past_v,
                     const Pair* at, int j, long c) {
  if (j >= at->keys || c >= p->value_dim) return 0;
  const Features value = value_features(p, tables, v, past_v, at->b, at->g, at->key0 + j);
  return LOAD(value.from, c * value.step);
}

// sums += left * right^T over `depth` features.
inline void multiply(__local const REAL* left, __local const REAL* right, int depth, REAL sums[EACH][EACH]) {
  const int x = get_local_id(0), y = get_local_id(1);
  for (int d = 0; d < depth; ++d) {
    for (int r = 0; r < EACH; ++r) {
      const REAL a = left[(y + r * SIDE) * PITCH + d];
      for (int j = 0; j < EACH; ++j) sums[r][j] = fma(a, right[(x + j * SIDE) * PITCH + d], sums[r][j]);
    }
  }
}

// Whether one of the rows sees one of the keys, before masks: the same answer for the whole group.
inline int any_seen(COMMON, const Pair* at, __local int* any) {
  const Problem* p = &problem;
  const int me = get_local_id(1) * SIDE + get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (me == 0) *any = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (me < at->count) {
    const RowKeys range = row_keys(p, rows, at->b, at->row0 + me);
    long first = at->key0 + at->keys, last = at->key0;
    widen(&range, at->key0, at->key0 + at->keys, &first, &last);
    if (first < last && any_block(p, blocks, at->b, at->h, at->row0 + me, 1, first, last)) *any = 1;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return *any;
}

// P after dropout and dT of two tiles.
inline void weigh(COMMON, GRADIENTS, const Pair* at, __local REAL* left, __local REAL* right, __local REAL* weights,
                  __local REAL* gradients) {
  const Problem* p = &problem;
  const int x = get_local_id(0), y = get_local_id(1), me = y * SIDE + x;
  REAL scores[EACH][EACH], products[EACH][EACH];
  for (int r = 0; r < EACH; ++r) {
    for (int j = 0; j < EACH; ++j) scores[r][j] = products[r][j] = 0;
  }
  for (long d0 = 0; d0 < p->key_dim; d0 += TILE) {
    for (int n = me; n < TILE * TILE; n += SIDE * SIDE) {
      const int l = n / TILE, d = n % TILE;
      left[l * PITCH + d] = query_at(p, tables, q, at, l, d0 + d) * scale;
      right[l * PITCH + d] = key_at(p, tables, k, past_k, at, l, d0 + d);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply(left, right, (int)min((long)TILE, p->key_dim - d0), scores);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (long c0 = 0; c0 < p->value_dim; c0 += TILE) {
    for (int n = me; n < TILE * TILE; n += SIDE * SIDE) {
      const int l = n / TILE, c = n % TILE;
      left[l * PITCH + c] = dout_at(p, dout, at, l, c0 + c);
      right[l * PITCH + c] = value_at(p, tables, v, past_v, at, l, c0 + c);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply(left, right, (int)min((long)TILE, p->value_dim - c0), products);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int r = 0; r < EACH; ++r) {
    const int row = y + r * SIDE;
    for (int j = 0; j < EACH; ++j) {
      const int key = x + j * SIDE;
      REAL weight = -(REAL)0, gradient = -(REAL)0;
      if (row < at->count && key < at->keys) {
        const RowKeys range = row_keys(p, rows, at->b, at->row0 + row);
        if (in_range(&range, at->key0 + key)) {
          REAL slope;
          gradient = score_gradient(COMMON_VALUES, shift, at->b, at->h, at->row0 + row, at->key0 + key, range.diagonal,
                                    scores[r][j], products[r][j], &weight, &slope);
          if (gradient != 0) gradient *= slope;
          if (gradient == 0 && !is_hidden(weight)) gradient = 0;
        }
      }
      weights[row * PITCH + key] = weight;
      gradients[row * PITCH + key] = gradient;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// sums += weights * operand, or weights^T * operand, over `depth` keys or rows; where the operand is not finite hidden
// pairs are left out.
inline void add(__local const REAL* weights, int row_step, int step, __local const REAL* operand, int depth, int careful,
                REAL sums[EACH][EACH]) {
  const int x = get_local_id(0), y = get_local_id(1);
  for (int n = 0; n < depth; ++n) {
    for (int r = 0; r < EACH; ++r) {
      const REAL weight = weights[(y + r * SIDE) * row_step + n * step];
      if (careful && is_hidden(weight)) continue;
      for (int c = 0; c < EACH; ++c) sums[r][c] = fma(weight, operand[n * PITCH + x + c * SIDE], sums[r][c]);
    }
  }
}

// Adds the sums of a tile to `count` rows of `columns` numbers, from column c0 on, times a factor.
inline void add_to(__global REAL* to, int count, long columns, long c0, REAL factor, REAL sums[EACH][EACH]) {
  const int x = get_local_id(0), y = get_local_id(1);
  for (int r = 0; r < EACH; ++r) {
    for (int c = 0; c < EACH; ++c) {
      const long row = y + r * SIDE, column = c0 + x + c * SIDE;
      if (row < count && column < columns) to[row * columns + column] += factor * sums[r][c];
      sums[r][c] = 0;
    }
  }
}

inline void clear(__global REAL* to, long n) {
  for (long at = get_local_id(1) * SIDE + get_local_id(0); at < n; at += SIDE * SIDE) to[at] = 0;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

#define LOAD_TILE(EXPRESSION)                                                    \
  if (me == 0) odd = 0;                                                          \
  barrier(CLK_LOCAL_MEM_FENCE);                                                  \
  for (int n = me; n < TILE * TILE; n += SIDE * SIDE) {                          \
    const int l = n / TILE, column = n % TILE;                                   \
    const REAL number = EXPRESSION;                                              \
    if (is_odd(number)) odd = 1;                                                 \
    right[l * PITCH + column] = number;                                          \
  }                                                                              \
  barrier(CLK_LOCAL_MEM_FENCE)

// dq of a tile of queries.
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void gradient_of_queries(COMMON, GRADIENTS,
                                                                                       __global REAL* dq) {
  __local REAL left[TILE * PITCH], right[TILE * PITCH], weights[TILE * PITCH], gradients[TILE * PITCH];
  __local int any, odd;
  const Problem* p = &problem;
  const int me = get_local_id(1) * SIDE + get_local_id(0);
  const long tiles = (p->query_length + TILE - 1) / TILE, head = get_group_id(0) / tiles;
  Pair at = {head / p->query_heads, head % p->query_heads, head % p->query_heads / p->group,
             (tiles - 1 - get_group_id(0) % tiles) * TILE, 0, 0, 0};
  at.count = (int)min((long)TILE, tables[at.b * TABLE_WIDTH + 3] - at.row0);
  if (at.count <= 0) return;
  __global REAL* to = dq + (head * p->query_length + at.row0) * p->key_dim;
  clear(to, at.count * p->key_dim);
  const long stored = min(p->key_length, tables[at.b * TABLE_WIDTH + 4]);
  REAL sums[EACH][EACH];
  for (int r = 0; r < EACH; ++r) {
    for (int c = 0; c < EACH; ++c) sums[r][c] = 0;
  }
  for (at.key0 = 0; at.key0 < stored; at.key0 += TILE) {
    at.keys = (int)min((long)TILE, stored - at.key0);
    if (!any_seen(COMMON_VALUES, &at, &any)) continue;
    weigh(COMMON_VALUES, dout, shift, &at, left, right, weights, gradients);
    for (long d0 = 0; d0 < p->key_dim; d0 += TILE) {
      LOAD_TILE(key_at(p, tables, k, past_k, &at, l, d0 + column));
      add(gradients, PITCH, 1, right, at.keys, odd, sums);
      add_to(to, at.count, p->key_dim, d0, scale, sums);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
}

// dk and dv of a tile of keys, over the rows of all query heads of its group.
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void gradient_of_keys(COMMON, GRADIENTS, __global REAL* dk,
                                                                                    __global REAL* dv) {
  __local REAL left[TILE * PITCH], right[TILE * PITCH], weights[TILE * PITCH], gradients[TILE * PITCH];
  __local int any, odd;
  const Problem* p = &problem;
  const int me = get_local_id(1) * SIDE + get_local_id(0);
  const long tiles = (p->key_length + TILE - 1) / TILE, head = get_group_id(0) / tiles;
  Pair at = {head / p->key_heads, 0, head % p->key_heads, 0, get_group_id(0) % tiles * TILE, 0, 0};
  const long first = head * p->key_length + at.key0;
  const int all = (int)min((long)TILE, p->key_length - at.key0);
  clear(dk + first * p->key_dim, all * p->key_dim);
  clear(dv + first * p->value_dim, all * p->value_dim);
  at.keys = (int)min((long)TILE, tables[at.b * TABLE_WIDTH + 4] - at.key0);
  if (at.keys <= 0) return;
  REAL sums[EACH][EACH];
  for (int r = 0; r < EACH; ++r) {
    for (int c = 0; c < EACH; ++c) sums[r][c] = 0;
  }
  const long stored = tables[at.b * TABLE_WIDTH + 3];
  for (at.h = at.g * p->group; at.h < (at.g + 1) * p->group; ++at.h) {
    for (at.row0 = 0; at.row0 < stored; at.row0 += TILE) {
      at.count = (int)min((long)TILE, stored - at.row0);
      if (!any_seen(COMMON_VALUES, &at, &any)) continue;
      weigh(COMMON_VALUES, dout, shift, &at, left, right, weights, gradients);
      for (long c0 = 0; c0 < p->value_dim; c0 += TILE) {
        LOAD_TILE(dout_at(p, dout, &at, l, c0 + column));
        add(weights, 1, PITCH, right, at.count, odd, sums);
        add_to(dv + first * p->value_dim, at.keys, p->value_dim, c0, 1, sums);
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      for (long d0 = 0; d0 < p->key_dim; d0 += TILE) {
        LOAD_TILE(query_at(p, tables, q, &at, l, d0 + column) * scale);
        add(gradients, 1, PITCH, right, at.count, odd, sums);
        add_to(dk + first * p->key_dim, at.keys, p->key_dim, d0, 1, sums);
        barrier(CLK_LOCAL_MEM_FENCE);
      }
    }
  }
}

// One work-item an element of the mask as it is stored: dS summed over the axes that it is broadcast along. `axes` has a
// bit for each axis that it keeps.
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
          REAL score = 0, product = 0, weight, slope;
          for (long d = 0; d < p->key_dim; ++d)
            score = fma(query_at(p, tables, q, &at, 0, d) * scale, key_at(p, tables, k, past_k, &at, 0, d), score);
          for (long c = 0; c < p->value_dim; ++c)
            product = fma(dout_at(p, dout, &at, 0, c), value_at(p, tables, v, past_v, &at, 0, c), product);
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
