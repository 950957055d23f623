// Fused attention for GPU devices: a work-group of 8 x 8 work-items for each tile of 32 queries.
//
// Keys come in tiles of 32. A work-item holds 4 x 4 scores; features and value columns pass through local memory 32 at a
// time, so that any head dimension fits the 48 KiB that every GPU has. The output so far lives in global memory.

#define TILE 32
#define SIDE 8
#define EACH 4
#define PITCH (TILE + 1)

// Weights of hidden keys are -0.0, so that a tile whose values hold NaN can tell them from weights that underflowed.
inline int is_hidden_weight(REAL weight) { return weight == 0 && signbit(weight); }

inline REAL exp_weight(REAL x, REAL now) { return x == HIDDEN ? -(REAL)0 : exp(x - now); }

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void attend_gpu(
    const Problem problem, const REAL scale, __global const REAL* q, __global const REAL* k, __global const REAL* v,
    __global const uchar* mask, __global REAL* out, __global REAL* lse) {
  __local REAL left[TILE * PITCH], right[TILE * PITCH], weights[TILE * PITCH];
  __local REAL maxima[TILE], totals[TILE], shrinks[TILE];
  __local int bad;
  const Problem* p = &problem;
  const int x = get_local_id(0), y = get_local_id(1), me = y * SIDE + x;
  const long tiles = (p->query_length + TILE - 1) / TILE;
  const long head = get_group_id(0) / tiles, tile = tiles - 1 - get_group_id(0) % tiles;
  const long b = head / p->query_heads, h = head % p->query_heads, g = h / p->group;
  const long row0 = tile * TILE;
  const int rows = (int)min((long)TILE, p->query_length - row0);
  const int dim = (int)p->key_dim, columns = (int)p->value_dim;
  const long out0 = ((b * p->query_heads + h) * p->query_length + row0) * columns;

  if (me < TILE) {
    maxima[me] = HIDDEN;
    totals[me] = 0;
  }
  for (int n = me; n < rows * columns; n += SIDE * SIDE) out[out0 + n] = 0;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

  const long keys_first = first_key(p, row0), keys_last = last_key(p, row0 + rows - 1);
  for (long key0 = keys_first; key0 < keys_last; key0 += TILE) {
    const int keys = (int)min((long)TILE, keys_last - key0);
    REAL s[EACH][EACH];
    for (int r = 0; r < EACH; ++r) {
      for (int j = 0; j < EACH; ++j) s[r][j] = 0;
    }
    for (int d0 = 0; d0 < dim; d0 += TILE) {
      const int depth = min(TILE, dim - d0);
      for (int n = me; n < TILE * TILE; n += SIDE * SIDE) {
        const int l = n / TILE, d = n % TILE;
        const int q_there = l < rows && d < depth, k_there = l < keys && d < depth;
        left[l * PITCH + d] =
            q_there ? q[b * p->q[0] + h * p->q[1] + (row0 + l) * p->q[2] + (d0 + d) * p->q[3]] * scale : 0;
        right[l * PITCH + d] =
            k_there ? k[b * p->k[0] + g * p->k[1] + (key0 + l) * p->k[2] + (d0 + d) * p->k[3]] : 0;
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
      for (int j = 0; j < EACH; ++j) {
        const long key = key0 + x + j * SIDE;
        REAL score = HIDDEN;
        if (i < p->query_length && key < keys_last && key >= first_key(p, i) && key < last_key(p, i)) {
          score = masked(p, mask, mask_index(p, b, h, i, key), s[r][j]);
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
      int any = 0;
      for (int j = 0; j < TILE; ++j) {
        now = fmax(now, row[j]);
        any |= row[j] != HIDDEN;
      }
      if (now == HIDDEN && any) now = 0;  // nothing but NaN
      for (int j = 0; j < TILE; ++j) {
        row[j] = exp_weight(row[j], now);
        total += row[j];
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
          value = v[b * p->v[0] + g * p->v[1] + (key0 + j) * p->v[2] + (c0 + c) * p->v[3]];
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
          if (row >= rows || column >= columns) continue;
          const long at = out0 + (long)row * columns + column;
          out[at] = out[at] * shrinks[row] + o[r][c];
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }

  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  for (int n = me; n < rows * columns; n += SIDE * SIDE) {
    const REAL total = totals[n / columns];
    out[out0 + n] = total == 0 ? (REAL)0 : out[out0 + n] / total;
  }
  if (me < rows) {
    const long row = (b * p->query_heads + h) * p->query_length + row0 + me;
    lse[row] = totals[me] == 0 ? HIDDEN : maxima[me] + log(totals[me]);
  }
}
