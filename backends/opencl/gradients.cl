// Gradients of fused attention: a work-group of SIDE x SIDE work-items for each tile of TILE queries or keys, which goes
// over the tiles of the other side. Weights are exp(s - lse) once more; no score matrix is ever held. A tile of keys
// sums over the queries of its group in their order, so that results have the same bits each time.
//
// The host defines SIDE, EACH and their product TILE.

#define PITCH (TILE + 1)

inline void zero(REAL sums[EACH][EACH]) {
  for (int r = 0; r < EACH; ++r) {
    for (int c = 0; c < EACH; ++c) sums[r][c] = 0;
  }
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
  zero(scores);
  zero(products);
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
    }
  }
  zero(sums);
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
  zero(sums);
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
  zero(sums);
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
