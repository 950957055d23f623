// Fused attention for GPU devices: a work-group of SIDE x SIDE work-items for each tile of TILE queries.
//
// Keys come in tiles of as many. A work-item holds EACH x EACH scores; features and value columns pass through local
// memory TILE at a time, so that any head dimension fits the 48 KiB that every GPU has when TILE is 32. The output so far
// lives in global memory. The host defines SIDE, EACH and their product TILE, which is at most SIDE * SIDE.

#define PITCH (TILE + 1)

// Weights of hidden keys are -0.0, so that a tile whose values hold NaN can tell them from weights that underflowed.
inline int is_hidden_weight(REAL weight) { return weight == 0 && signbit(weight); }

inline REAL exp_weight(REAL x, REAL now) { return x == HIDDEN ? -(REAL)0 : exp(x - now); }

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void attend_gpu(COMMON) {
  __local REAL left[TILE * PITCH], right[TILE * PITCH], weights[TILE * PITCH];
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
    REAL s[EACH][EACH];
    for (int r = 0; r < EACH; ++r) {
      for (int j = 0; j < EACH; ++j) s[r][j] = 0;
    }
    for (int d0 = 0; d0 < dim; d0 += TILE) {
      const int depth = min(TILE, dim - d0);
      for (int n = me; n < TILE * TILE; n += SIDE * SIDE) {
        const int l = n / TILE, d = n % TILE;
        const int q_there = l < count && d < depth, k_there = l < keys && d < depth;
        left[l * PITCH + d] = q_there ? LOAD(q, query_row(p, tables, b, h, row0 + l) + (d0 + d) * p->q[3]) * scale : 0;
        right[l * PITCH + d] = 0;
        if (k_there) {
          const Features key = key_features(p, tables, k, past_k, b, g, key0 + l);
          right[l * PITCH + d] = LOAD(key.from, (d0 + d) * key.step);
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int d = 0; d < depth; ++d) {
        for (int r = 0; r < EACH; ++r) {
          const REAL a = left[(y + r * SIDE) * PITCH + d];
          for (int j = 0; j < EACH; ++j) s[r][j] = fma(a, right[(x + j * SIDE) * PITCH + d], s[r][j]);
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }

    for (int r = 0; r < EACH; ++r) {
      const long i = row0 + y + r * SIDE;
      const RowKeys range = ranges[y + r * SIDE];
      for (int j = 0; j < EACH; ++j) {
        const long key = key0 + x + j * SIDE;
        REAL score = HIDDEN;
        if (key < key0 + keys && in_range(&range, key)) {
          score = biased(p, mask, small, blocks, b, h, i, key, range.diagonal, capped(p, softcap, s[r][j]));
        }
        weights[(y + r * SIDE) * PITCH + x + j * SIDE] = score;
      }
    }
    if (me == 0) bad = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    if (me < TILE) {
      __local REAL* row = weights + me * PITCH;
      const REAL before = maxima[me];
      REAL now = before, total = 0;
      int seen = 0;
      for (int j = 0; j < TILE; ++j) {
        now = fmax(now, row[j]);
        seen |= row[j] != HIDDEN;
      }
      if (now == HIDDEN && seen) now = 0;  // nothing but NaN
      for (int j = 0; j < TILE; ++j) {
        row[j] = exp_weight(row[j], now);
        total += row[j];
        // A hidden weight stays -0.0; a dropped one becomes 0.0.
        if (p->dropout && me < count && key0 + j < p->key_length) row[j] *= keep_factor(p, keep, kept, b, h, row0 + me, key0 + j);
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
      REAL o[EACH][EACH];
      for (int r = 0; r < EACH; ++r) {
        for (int c = 0; c < EACH; ++c) o[r][c] = 0;
      }
      for (int j = 0; j < TILE; ++j) {
        for (int r = 0; r < EACH; ++r) {
          const REAL weight = weights[(y + r * SIDE) * PITCH + j];
          if (careful && is_hidden_weight(weight)) continue;
          for (int c = 0; c < EACH; ++c) o[r][c] = fma(weight, right[j * PITCH + x + c * SIDE], o[r][c]);
        }
      }
      for (int r = 0; r < EACH; ++r) {
        const int row = y + r * SIDE;
        for (int c = 0; c < EACH; ++c) {
          const int column = c0 + x + c * SIDE;
          if (row >= count || column >= columns) continue;
          const long at = out0 + (long)row * columns + column;
          out[at] = out[at] * shrinks[row] + o[r][c];
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
