// Fused attention for GPU devices: a work-group of SIDE x SIDE work-items for each tile of TILE queries.
//
// Keys come in tiles of as many. A work-item holds EACH x EACH scores, in runs of four rows and four keys; features and
// value columns pass through local memory TILE at a time, so that any head dimension fits the 48 KiB that every GPU has.
// Queries, keys and weights lie there with their features or keys outside, so that a run is one read of a vector. The
// output so far lives in global memory. The host defines SIDE, EACH and their product TILE, which is at most
// SIDE * SIDE, and REALV, four numbers; EACH is a multiple of four.

#define PITCH (TILE + 4)
#define RUNS (EACH / 4)
#define UNROLL _Pragma("unroll")  // where sums would leave their registers otherwise
// The place in a tile of the n-th of the EACH rows or keys of work-item `item`.
#define PLACE(n, item) ((n) / 4 * 4 * SIDE + (item)*4 + (n) % 4)

// Weights of hidden keys, and of visible ones whose score is -inf, are -0.0; those that underflowed are 0.0.
inline int is_hidden_weight(REAL weight) { return weight == 0 && signbit(weight); }

inline REAL exp_weight(REAL x, REAL now) { return x == HIDDEN ? -(REAL)0 : exp(x - now); }

// sums += column n of `left` times row n of `right`.
inline void multiply(__local const REALV* left, __local const REALV* right, int n, REALV sums[EACH][RUNS]) {
  const int x = get_local_id(0), y = get_local_id(1);
  REALV factors[RUNS];
  UNROLL
  for (int c = 0; c < RUNS; ++c) factors[c] = right[(n * PITCH + PLACE(c * 4, x)) / 4];
  UNROLL
  for (int r = 0; r < RUNS; ++r) {
    const REALV four = left[(n * PITCH + PLACE(r * 4, y)) / 4];
    UNROLL
    for (int c = 0; c < RUNS; ++c) {
      sums[r * 4][c] = fma((REALV)(four.s0), factors[c], sums[r * 4][c]);
      sums[r * 4 + 1][c] = fma((REALV)(four.s1), factors[c], sums[r * 4 + 1][c]);
      sums[r * 4 + 2][c] = fma((REALV)(four.s2), factors[c], sums[r * 4 + 2][c]);
      sums[r * 4 + 3][c] = fma((REALV)(four.s3), factors[c], sums[r * 4 + 3][c]);
    }
  }
}

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void attend_gpu(COMMON) {
  // The queries of a step have been read when its weights are written.
  __local REALV left_runs[TILE * PITCH / 4], right_runs[TILE * PITCH / 4];
  __local REAL *left = (__local REAL*)left_runs, *right = (__local REAL*)right_runs, *weights = left;
  __local REAL maxima[TILE], totals[TILE], shrinks[TILE];
  __local RowKeys ranges[TILE];
  __local int bad, any;
  const Problem* p = &problem;
  const int x = get_local_id(0), y = get_local_id(1), me = y * SIDE + x;
  const long tiles = (p->query_length + TILE - 1) / TILE;
  const long head = get_group_id(0) / tiles, tile = tiles - 1 - get_group_id(0) % tiles;
  const long b = head / p->query_heads, h = head % p->query_heads, g = h / p->group;
  const long row0 = tile * TILE;
  // Rows of packed sequences that are not stored have no result; padding has an empty one.
  const int count = (int)min((long)TILE, tables[b * TABLE_WIDTH + 3] - row0);
  if (count <= 0) return;
  const int dim = (int)p->key_dim, columns = (int)p->value_dim;
  const long out0 = ((b * p->query_heads + h) * p->query_length + row0) * columns;

  if (me < TILE) {
    maxima[me] = sink_of(p, small, h);  // a sink is a key without a value
    totals[me] = p->has_sinks ? 1 : 0;
    const RowKeys nothing = {0, 0, 0, 0, 0};
    ranges[me] = me < count ? row_keys(p, rows, b, row0 + me) : nothing;
  }
  for (int n = me; n < count * columns; n += SIDE * SIDE) out[out0 + n] = 0;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

  long keys_first = p->key_length, keys_last = 0;
  for (int r = 0; r < count; ++r) {
    const RowKeys range = ranges[r];
    widen(&range, 0, p->key_length, &keys_first, &keys_last);
  }
  for (long key0 = keys_first; key0 < keys_last; key0 += TILE) {
    const int keys = (int)min((long)TILE, keys_last - key0);
    if (me == 0) any = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < count) {
      const RowKeys range = ranges[me];
      long first = key0 + keys, last = key0;
      widen(&range, key0, key0 + keys, &first, &last);
      if (first < last && any_block(p, blocks, b, h, row0 + me, 1, first, last)) any = 1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!any) continue;  // the same for the whole group
    REALV s[EACH][RUNS];
    for (int r = 0; r < EACH; ++r) {
      for (int j = 0; j < RUNS; ++j) s[r][j] = 0;
    }
    for (int d0 = 0; d0 < dim; d0 += TILE) {
      const int depth = min(TILE, dim - d0);
      for (int n = me; n < TILE * TILE; n += SIDE * SIDE) {
        const int l = n / TILE, d = n % TILE;
        const int q_there = l < count && d < depth, k_there = l < keys && d < depth;
        REAL query = 0, key = 0;
        if (q_there) query = LOAD(q, query_row(p, tables, b, h, row0 + l) + (d0 + d) * p->q[3]) * scale;
        if (k_there) {
          const Features from = key_features(p, tables, k, past_k, b, g, key0 + l);
          key = LOAD(from.from, (d0 + d) * from.step);
        }
        left[d * PITCH + l] = query;
        right[d * PITCH + l] = key;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int d = 0; d < depth; ++d) multiply(left_runs, right_runs, d, s);
      barrier(CLK_LOCAL_MEM_FENCE);
    }

    UNROLL
    for (int r = 0; r < EACH; ++r) {
      UNROLL
      for (int j = 0; j < RUNS; ++j) {
        __local REAL* to = weights + PLACE(j * 4, x) * PITCH + PLACE(r, y);
        to[0] = s[r][j].s0, to[PITCH] = s[r][j].s1, to[2 * PITCH] = s[r][j].s2, to[3 * PITCH] = s[r][j].s3;
      }
    }
    for (int r = 0; r < EACH; ++r) {
      const int row = PLACE(r, y);
      const RowKeys range = ranges[row];
      for (int j = 0; j < EACH; ++j) {
        const int place = PLACE(j, x);
        const long key = key0 + place;
        __local REAL* at = weights + place * PITCH + row;
        if (place < keys && in_range(&range, key))
          *at = biased(p, mask, small, blocks, b, h, row0 + row, key, range.diagonal, capped(p, softcap, *at));
        else
          *at = HIDDEN;
      }
    }
    if (me == 0) bad = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    if (me < TILE) {
      __local REAL* row = weights + me;
      const REAL before = maxima[me];
      REAL now = before, total = 0;
      int seen = 0;
      for (int j = 0; j < TILE; ++j) {
        now = fmax(now, row[j * PITCH]);
        seen |= row[j * PITCH] != HIDDEN;
      }
      if (now == HIDDEN && seen) now = 0;  // nothing but NaN
      for (int j = 0; j < TILE; ++j) {
        REAL weight = exp_weight(row[j * PITCH], now);
        total += weight;
        // A hidden weight stays -0.0; a dropped one becomes 0.0.
        if (p->dropout && me < count && key0 + j < p->key_length)
          weight *= keep_factor(p, keep, kept, b, h, row0 + me, key0 + j);
        row[j * PITCH] = weight;
      }
      const REAL shrink = now == HIDDEN || before == now ? (REAL)1 : exp(before - now);
      totals[me] = totals[me] * shrink + total;
      maxima[me] = now;
      shrinks[me] = shrink;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int c0 = 0; c0 < columns; c0 += TILE) {
      for (int n = me; n < TILE * TILE; n += SIDE * SIDE) {
        const int j = n / TILE, c = n % TILE;
        REAL value = 0;
        if (j < keys && c0 + c < columns) {
          const Features from = value_features(p, tables, v, past_v, b, g, key0 + j);
          value = LOAD(from.from, (c0 + c) * from.step);
        }
        if (!(fabs(value) < (REAL)INFINITY)) bad = 1;
        right[j * PITCH + c] = value;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const int careful = bad;
      REALV o[EACH][RUNS];
      for (int r = 0; r < EACH; ++r) {
        for (int c = 0; c < RUNS; ++c) o[r][c] = 0;
      }
      if (!careful) {
        for (int j = 0; j < keys; ++j) multiply(left_runs, right_runs, j, o);
      }
      for (int j = 0; careful && j < keys; ++j) {
        UNROLL
        for (int r = 0; r < EACH; ++r) {
          const REAL weight = weights[j * PITCH + PLACE(r, y)];
          if (is_hidden_weight(weight)) {
            const RowKeys range = ranges[PLACE(r, y)];
            if (!sees(p, mask, blocks, &range, b, h, row0 + PLACE(r, y), key0 + j)) continue;
          }
          for (int c = 0; c < RUNS; ++c)
            o[r][c] = fma((REALV)(weight), right_runs[(j * PITCH + PLACE(c * 4, x)) / 4], o[r][c]);
        }
      }
      UNROLL
      for (int r = 0; r < EACH; ++r) {
        const int row = PLACE(r, y);
        if (row >= count) continue;
        UNROLL
        for (int c = 0; c < RUNS; ++c) {
          const int column = c0 + PLACE(c * 4, x);
          __global REAL* to = out + out0 + (long)row * columns + column;
          if (column < columns) to[0] = to[0] * shrinks[row] + o[r][c].s0;
          if (column + 1 < columns) to[1] = to[1] * shrinks[row] + o[r][c].s1;
          if (column + 2 < columns) to[2] = to[2] * shrinks[row] + o[r][c].s2;
          if (column + 3 < columns) to[3] = to[3] * shrinks[row] + o[r][c].s3;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }

  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (int n = me; n < count * columns; n += SIDE * SIDE) {
    const REAL total = totals[n / columns];
    out[out0 + n] = total == 0 ? (REAL)0 : out[out0 + n] / total;
  }
  if (me < count) {
    const long row = (b * p->query_heads + h) * p->query_length + row0 + me;
    lse[row] = totals[me] == 0 ? HIDDEN : maxima[me] + log(totals[me]);
  }
}
