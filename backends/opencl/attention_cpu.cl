// Fused attention for CPU devices: each work-item (a work-group of one) attends one tile of queries after another.
//
// A CPU wants long runs of wide vectors and no barriers. "Local" memory is just the work-item's scratch: the query tile,
// K^T of one key tile in panels, V of one key tile, the scores of a block of rows, the output so far.
// The host defines VW (lanes of a vector: 4, 8 or 16), REALV, INTV, AS_INTV and AS_REALV.

#define PANEL (2 * VW)
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

// The vector at an address in scratch, whose parts and rows all begin at whole vectors: vloadn and vstoren, which may
// begin anywhere, are done in pieces of four by some compilers.
#define VECTOR(at) (*(__local REALV*)(at))

// The lanes of a vector to one, half by half.
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define ADDED(a, b) ((a) + (b))
#define DEFINE_FOLD(name, op)                                                              \
  inline REAL CAT_(name, 2)(CAT(REAL, 2) x) { return op(x.lo, x.hi); }                     \
  inline REAL CAT_(name, 4)(CAT(REAL, 4) x) { return CAT_(name, 2)(op(x.lo, x.hi)); }      \
  inline REAL CAT_(name, 8)(CAT(REAL, 8) x) { return CAT_(name, 4)(op(x.lo, x.hi)); }      \
  inline REAL CAT_(name, 16)(CAT(REAL, 16) x) { return CAT_(name, 8)(op(x.lo, x.hi)); }
DEFINE_FOLD(largest_of, LARGER)
DEFINE_FOLD(sum_of, ADDED)

// A vector of elements that lie side by side, as REAL.
#if defined(STORE_F16)
#define LOAD_LANES(pointer, index) CAT(vload_half, VW)(0, (__global const half*)(pointer) + (index))
#elif defined(STORE_BF16)
#define LOAD_LANES(pointer, index) \
  CAT(as_float, VW)(CAT(convert_uint, VW)(CAT(vload, VW)(0, (pointer) + (index))) << 16)
#else
#define LOAD_LANES(pointer, index) CAT(vload, VW)(0, (pointer) + (index))
#endif

inline int not_finite(REAL x) { return !(fabs(x) < (REAL)INFINITY); }

#define MAGIC (12582912.0f + 127.0f)
#define LOWEST (-127 * 0.693147180559945f)

// exp for x <= 0: 0 where the result would be subnormal, NaN for NaN.
inline REALV exp_weights(REALV x) {
#ifdef REAL_IS_DOUBLE
  const REALV e = exp(x);
  return x <= (REALV)(-708.39641853226411) ? (REALV)(0.0) : e;
#else
  const REALV bounded = x < (REALV)(LOWEST) ? (REALV)(LOWEST) : x;
  // Adding 1.5 * 2^23 + 127 rounds to an integer and leaves n + 127 in the low bits: the exponent of 2^n, all zero for
  // the smallest n, so that such a weight is exactly 0.
  const REALV shifted = fma(bounded, (REALV)(1.44269504088896341f), (REALV)(MAGIC));
  const REALV n = shifted - (REALV)(MAGIC);
  REALV r = fma(n, (REALV)(-0.693359375f), bounded);
  r = fma(n, (REALV)(2.12194440e-4f), r);
  // exp(r) = 1 + r + r^2 (c2 + c3 r + ... + c6 r^4), within 0.2 units of roundoff over the range of r.
  REALV p = fma((REALV)(1.3926250394e-3f), r, (REALV)(8.3632329479e-3f));
  p = fma(p, r, (REALV)(4.1666552424e-2f));
  p = fma(p, r, (REALV)(1.6666576266e-1f));
  p = fma(p, r, (REALV)(0.5f));
  const REALV tail = fma(p, r * r, r), power = AS_REALV(AS_INTV(shifted) << 23);
  return fma(tail, power, power);
#endif
}

// Six rows against two vectors of columns: C (+)= A * B with C in registers.
#define ROW_DECLARE(r) REALV c##r##0 = (REALV)(0), c##r##1 = (REALV)(0);
#define ROW_STEP(r, t) { const REALV f = (REALV)(a[r * lda + (t)]); c##r##0 = fma(f, b0, c##r##0); c##r##1 = fma(f, b1, c##r##1); }
#define STEP(t)                                                                                                       \
  {                                                                                                                   \
    const REALV b0 = VECTOR(b + (t) * ldb), b1 = VECTOR(b + (t) * ldb + VW);                                          \
    ROW_STEP(0, t) ROW_STEP(1, t) ROW_STEP(2, t) ROW_STEP(3, t) ROW_STEP(4, t) ROW_STEP(5, t)                         \
  }
#define ROW_STORE(r)                                                     \
  if (r < rows) {                                                        \
    __local REAL* to = c + r * ldc;                                      \
    VECTOR(to) = add ? VECTOR(to) + c##r##0 : c##r##0;                   \
    VECTOR(to + VW) = add ? VECTOR(to + VW) + c##r##1 : c##r##1;         \
  }

inline void block6(__local const REAL* a, int lda, __local const REAL* b, int ldb, int depth, __local REAL* c, int ldc,
                   int rows, int add) {
  ROW_DECLARE(0) ROW_DECLARE(1) ROW_DECLARE(2) ROW_DECLARE(3) ROW_DECLARE(4) ROW_DECLARE(5)
  int t = 0;
  for (; t + 4 <= depth; t += 4) {
    STEP(t) STEP(t + 1) STEP(t + 2) STEP(t + 3)
  }
  for (; t < depth; ++t) STEP(t)
  ROW_STORE(0) ROW_STORE(1) ROW_STORE(2) ROW_STORE(3) ROW_STORE(4) ROW_STORE(5)
}

// Tiles hold whole blocks of six rows: a ragged last block computes with rows of zeros.
inline void multiply(__local const REAL* a, int lda, __local const REAL* b, int ldb, int depth, __local REAL* c,
                     int ldc, int rows, int add) {
  for (int r = 0; r < rows; r += 6) block6(a + r * lda, lda, b, ldb, depth, c + r * ldc, ldc, rows - r, add);
}

__constant int lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Cap, ALiBi, mask and blocks on scores of keys [first, last) of the tile, whether the row sees them or not: by vectors
// where a mask's keys lie side by side.
inline void bias_row(const Problem* p, REAL softcap, __global const uchar* mask, __global const REAL* small,
                     __global const uchar* blocks, long b, long h, long i, long key0, long diagonal, int first,
                     int last, __local REAL* row) {
  const long far = diagonal - key0, at = p->mask_kind ? mask_index(p, b, h, i, key0) : 0;
  const int whole_vectors = !p->has_softcap && !p->block_rows && p->mask_kind <= 2 &&
                            (!p->mask_kind || p->mask[3] == 1) && far < (1 << 30) && far > -(1 << 30);
  const INTV lanes = CAT(convert_, INTV)(CAT(vload, VW)(0, lane_numbers));
  const REALV slope = (REALV)(p->has_slopes ? slope_of(p, small, b, h) : 0);
  int j = first;
  for (; whole_vectors && j + VW <= last; j += VW) {
    REALV score = VECTOR(row + j);
    if (p->has_slopes) {
      const INTV ahead = (INTV)((int)far - j) - lanes;
      score -= slope * CAT(convert_, REALV)(ahead < (INTV)(0) ? -ahead : ahead);
    }
    if (p->mask_kind == 1) {
      const INTV seen = CAT(convert_, INTV)(CAT(vload, VW)(0, mask + at + j)) != (INTV)(0);
      score = seen ? score : (REALV)(HIDDEN);
    } else if (p->mask_kind == 2) {
      const REALV bias = CAT(convert_, REALV)(CAT(vload, VW)(0, (__global const float*)mask + at + j));
      score = (bias == (REALV)(HIDDEN) ? (REALV)(0) : score) + bias;  // a hidden key may hold NaN
    }
    VECTOR(row + j) = score;
  }
  for (; j < last; ++j) row[j] = biased(p, mask, small, blocks, b, h, i, key0 + j, diagonal, capped(p, softcap, row[j]));
}

// Scores of query i against keys [first, last) of the tile that begins at key0, to weights relative to the row's maximum,
// which moves on; its total and the output so far with it. `first` begins a panel; scores are written to the end of one.
inline void row_weights(const Problem* p, REAL softcap, __global const uchar* mask, __global const long* rows,
                        __global const REAL* small, __global const uchar* blocks, long b, long h, long i, long key0,
                        int first, int last, __local REAL* row, __local REAL* maximum, __local REAL* total_of_row,
                        __local REAL* o, int padded_columns) {
  const int padded_last = (last + PANEL - 1) / PANEL * PANEL;
  const RowKeys range = row_keys(p, rows, b, i);
  const int plain = !p->has_softcap && !p->has_slopes && !p->mask_kind && !p->block_rows;
  if (!plain) bias_row(p, softcap, mask, small, blocks, b, h, i, key0, range.diagonal, first, last, row);
  const int from = (int)clamp(range.band_first - key0, (long)first, (long)last);
  const int to = (int)clamp(range.band_last - key0, (long)from, (long)last);
  for (int j = first; j < from; ++j) {
    if (key0 + j < range.prefix_first || key0 + j >= range.prefix_last) row[j] = HIDDEN;
  }
  for (int j = to; j < padded_last; ++j) row[j] = HIDDEN;

  // NaN in a row makes its total NaN below, whatever the maximum becomes.
  REALV most = (REALV)(HIDDEN);
  for (int j = first; j < padded_last; j += VW) {
    const REALV score = VECTOR(row + j);
    most = LARGER(score, most);
  }
  const REAL before = *maximum, now = fmax(before, CAT(largest_of, VW)(most));
  if (now == HIDDEN) {  // nothing seen yet, or nothing but NaN
    for (int j = first; j < last; ++j) {
      if (row[j] != row[j]) *total_of_row = NAN;
      row[j] = 0;
    }
    return;
  }
  if (before != now) {
    const REAL shrink = exp(before - now);
    *total_of_row *= shrink;
    for (int c = 0; c < padded_columns; c += VW) VECTOR(o + c) *= shrink;
    *maximum = now;
  }
  REALV total = (REALV)(0);
  for (int j = first; j < padded_last; j += VW) {
    const REALV e = exp_weights(VECTOR(row + j) - now);
    VECTOR(row + j) = e;
    total += e;
  }
  *total_of_row += CAT(sum_of, VW)(total);
}

// O / total and the logsumexp of a row among all rows.
inline void finish_row(long row, int columns, __local const REAL* o, REAL maximum, REAL total, __global REAL* out,
                       __global REAL* lse) {
  const int empty = total == 0;
  const REAL factor = empty ? (REAL)0 : (REAL)1 / total;
  for (int c = 0; c < columns; ++c) out[row * columns + c] = empty ? (REAL)0 : o[c] * factor;
  lse[row] = empty ? HIDDEN : maximum + log(total);
}

// One query for each of some heads that share their keys, as when tokens are generated: keys and values are read once for
// all of them, where they lie. `heads` at most are taken by one work-item.
inline void attend_heads(COMMON, const int heads, const int tile_keys, const long number, __local REAL* queries,
                         __local REAL* products, __local REAL* scores, __local REAL* sums, __local REAL* softmax) {
  const Problem* p = &problem;
  const int dim = (int)p->key_dim, columns = (int)p->value_dim;
  const int padded_columns = (columns + PANEL - 1) / PANEL * PANEL;
  const int whole_dim = dim / VW * VW, whole_columns = columns / VW * VW;
  const long parts = (p->group + heads - 1) / heads, part = number % parts, head = number / parts;
  const long b = head / p->key_heads, g = head % p->key_heads, h0 = g * p->group + part * heads;
  const int count = (int)min((long)heads, p->group - part * heads);
  if (tables[b * TABLE_WIDTH + 3] < 1) return;
  __local REAL* maxima = softmax;
  __local REAL* totals = softmax + heads;
  for (int r = 0; r < count; ++r) {
    for (int c = 0; c < padded_columns; ++c) sums[r * padded_columns + c] = 0;
    maxima[r] = sink_of(p, small, h0 + r);  // a sink is a key without a value
    totals[r] = p->has_sinks ? 1 : 0;
    const long from = query_row(p, tables, b, h0 + r, 0);
    for (int t = 0; t < dim; ++t) queries[r * dim + t] = LOAD(q, from + t * p->q[3]) * scale;
  }
  const RowKeys range = row_keys(p, rows, b, 0);
  long keys_first = p->key_length, keys_last = 0;
  widen(&range, 0, p->key_length, &keys_first, &keys_last);

  for (long key0 = keys_first; key0 < keys_last; key0 += tile_keys) {
    long seen_first = key0 + tile_keys, seen_last = key0;
    widen(&range, key0, min(key0 + tile_keys, keys_last), &seen_first, &seen_last);
    int any = 0;
    for (int r = 0; r < count && seen_first < seen_last; ++r) {
      any |= any_block(p, blocks, b, h0 + r, 0, 1, seen_first, seen_last);
    }
    if (!any) continue;
    const int first = (int)(seen_first - key0) / PANEL * PANEL, last = (int)(seen_last - key0);

    for (int j = first; j < last; ++j) {
      const Features key = key_features(p, tables, k, past_k, b, g, key0 + j);
      for (int r = 0; r < count; ++r) {
        __local const REAL* query = queries + r * dim;
        REALV partial = (REALV)(0);
        REAL score = 0;
        int t = 0;
        if (key.step == 1) {
          for (; t < whole_dim; t += VW) partial = fma(CAT(vload, VW)(0, query + t), LOAD_LANES(key.from, t), partial);
          score = CAT(sum_of, VW)(partial);
        }
        for (; t < dim; ++t) score = fma(query[t], LOAD(key.from, t * key.step), score);
        scores[r * tile_keys + j] = score;
      }
    }
    for (int r = 0; r < count; ++r) {
      row_weights(p, softcap, mask, rows, small, blocks, b, h0 + r, 0, key0, first, last, scores + r * tile_keys,
                  maxima + r, totals + r, sums + r * padded_columns, padded_columns);
      for (int j = first; p->dropout && j < last; ++j) {
        scores[r * tile_keys + j] *= keep_factor(p, keep, kept, b, h0 + r, 0, key0 + j);
      }
    }
    // Summed by themselves first: one sum over all keys would round more than what is stated.
    for (int c = 0; c < count * padded_columns; ++c) products[c] = 0;
    for (int j = first; j < last; ++j) {
      const Features value = value_features(p, tables, v, past_v, b, g, key0 + j);
      for (int r = 0; r < count; ++r) {
        const REAL weight = scores[r * tile_keys + j];
        // A hidden key has weight 0, and 0 * NaN would leak.
        if (weight == 0 && !sees(p, mask, blocks, &range, b, h0 + r, 0, key0 + j)) continue;
        __local REAL* product = products + r * padded_columns;
        int c = 0;
        for (; value.step == 1 && c < whole_columns; c += VW)
          VECTOR(product + c) = fma((REALV)(weight), LOAD_LANES(value.from, c), VECTOR(product + c));
        for (; c < columns; ++c) product[c] = fma(weight, LOAD(value.from, c * value.step), product[c]);
      }
    }
    for (int c = 0; c < count * padded_columns; ++c) sums[c] += products[c];
  }
  for (int r = 0; r < count; ++r) {
    finish_row((b * p->query_heads + h0 + r) * p->query_length, columns, sums + r * padded_columns, maxima[r], totals[r],
               out, lse);
  }
}

// One tile of queries. Tiles are counted with the last ones of all heads first: with a causal mask they are the longest.
inline void attend_tile(COMMON, const int tile_rows, const int block_rows, const int tile_keys, const long number,
                        __local REAL* queries, __local REAL* panels, __local REAL* values, __local REAL* scores,
                        __local REAL* sums, __local REAL* softmax, __local int* suspects) {
  const Problem* p = &problem;
  const int dim = (int)p->key_dim, columns = (int)p->value_dim;
  const int padded_columns = (columns + PANEL - 1) / PANEL * PANEL;
  const long tiles = (p->query_length + tile_rows - 1) / tile_rows, heads = p->batch * p->query_heads;
  const long tile = tiles - 1 - number / heads, head = number % heads;
  const long b = head / p->query_heads, h = head % p->query_heads, g = h / p->group;
  const long row0 = tile * tile_rows;
  // Rows of packed sequences that are not stored have no result; padding has an empty one.
  const int count = (int)min((long)tile_rows, tables[b * TABLE_WIDTH + 3] - row0);
  if (count <= 0) return;
  __local REAL* maxima = softmax;
  __local REAL* totals = softmax + tile_rows;
  const REAL sink = sink_of(p, small, h);

  long keys_first = p->key_length, keys_last = 0;
  for (int r = 0; r < count; ++r) {
    for (int c = 0; c < padded_columns; ++c) sums[r * padded_columns + c] = 0;
    maxima[r] = sink;  // a sink is a key without a value
    totals[r] = p->has_sinks ? 1 : 0;
    const RowKeys range = row_keys(p, rows, b, row0 + r);
    widen(&range, 0, p->key_length, &keys_first, &keys_last);
  }
  for (int r = 0; r < count && keys_first < keys_last; ++r) {
    const long from = query_row(p, tables, b, h, row0 + r);
    for (int t = 0; t < dim; ++t) queries[r * dim + t] = LOAD(q, from + t * p->q[3]) * scale;
  }

  const int ragged = count % block_rows;
  for (int r = count; r < (count + 5) / 6 * 6; ++r) {
    for (int t = 0; t < dim; ++t) queries[r * dim + t] = 0;
  }
  for (int r = ragged; r < (ragged + 5) / 6 * 6; ++r) {
    for (int j = 0; j < tile_keys; ++j) scores[r * tile_keys + j] = 0;
  }

  for (long key0 = keys_first; key0 < keys_last; key0 += tile_keys) {
    const int keys = (int)min((long)tile_keys, keys_last - key0);
    // A tile of keys that no row sees is not even read.
    long tile_first = key0 + keys, tile_last = key0;
    for (int r = 0; r < count; ++r) {
      const RowKeys range = row_keys(p, rows, b, row0 + r);
      widen(&range, key0, key0 + keys, &tile_first, &tile_last);
    }
    if (tile_first >= tile_last || !any_block(p, blocks, b, h, row0, count, tile_first, tile_last)) continue;
    const int padded_keys = (keys + PANEL - 1) / PANEL * PANEL;
    int bad = 0;

    for (int j = 0; j < padded_keys; j += 4) {  // four keys side by side: single elements would be scattered
      __local REAL* panel = panels + j / PANEL * PANEL * dim + j % PANEL;
      Features key[4];
      for (int n = 0; n < 4; ++n) key[n] = key_features(p, tables, k, past_k, b, g, key0 + min(j + n, keys - 1));
      for (int t = 0; t < dim; ++t) {
        *(__local CAT(REAL, 4)*)(panel + t * PANEL) =
            (CAT(REAL, 4))(LOAD(key[0].from, t * key[0].step), LOAD(key[1].from, t * key[1].step),
                           LOAD(key[2].from, t * key[2].step), LOAD(key[3].from, t * key[3].step));
      }
    }
    for (int j = 0; j < keys; ++j) {
      const Features value = value_features(p, tables, v, past_v, b, g, key0 + j);
      int strange = 0;
      if (value.step == 1) {
        for (int c = 0; c < columns; ++c) {
          const REAL x = LOAD(value.from, c);
          values[j * padded_columns + c] = x;
          strange |= not_finite(x);
        }
      } else {
        for (int c = 0; c < columns; ++c) {
          const REAL x = LOAD(value.from, c * value.step);
          values[j * padded_columns + c] = x;
          strange |= not_finite(x);
        }
      }
      for (int c = columns; c < padded_columns; ++c) values[j * padded_columns + c] = 0;
      // A hidden key has weight 0 and 0 * NaN would leak: such keys enter as zeros and are added one by one below.
      suspects[j] = strange;
      if (strange) {
        bad = 1;
        for (int c = 0; c < columns; ++c) values[j * padded_columns + c] = 0;
      }
    }

    for (int block = 0; block < count; block += block_rows) {
      const int block_count = min(block_rows, count - block);
      long seen_first = key0 + keys, seen_last = key0;
      for (int r = 0; r < block_count; ++r) {
        const RowKeys range = row_keys(p, rows, b, row0 + block + r);
        widen(&range, key0, key0 + keys, &seen_first, &seen_last);
      }
      if (seen_first >= seen_last || !any_block(p, blocks, b, h, row0 + block, block_count, seen_first, seen_last)) continue;
      const int first = (int)(seen_first - key0) / PANEL * PANEL, last = (int)(seen_last - key0);
      const int padded_last = (last + PANEL - 1) / PANEL * PANEL;

      for (int j = first; j < padded_last; j += PANEL) {
        multiply(queries + block * dim, dim, panels + j * dim, PANEL, dim, scores + j, tile_keys, block_count, 0);
      }

      for (int r = 0; r < block_count; ++r) {
        __local REAL* row = scores + r * tile_keys;
        const long i = row0 + block + r;
        row_weights(p, softcap, mask, rows, small, blocks, b, h, i, key0, first, last, row, maxima + block + r,
                    totals + block + r, sums + (block + r) * padded_columns, padded_columns);
      }

      if (p->dropout) {
        for (int r = 0; r < block_count; ++r) {
          for (int j = first; j < last; ++j) {
            scores[r * tile_keys + j] *= keep_factor(p, keep, kept, b, h, row0 + block + r, key0 + j);
          }
        }
      }
      for (int c = 0; c < padded_columns; c += PANEL) {
        multiply(scores + first, tile_keys, values + first * padded_columns + c, padded_columns, last - first,
                 sums + block * padded_columns + c, padded_columns, block_count, 1);
      }
      if (!bad) continue;
      for (int j = first; j < last; ++j) {
        if (!suspects[j]) continue;
        const Features value = value_features(p, tables, v, past_v, b, g, key0 + j);
        for (int r = 0; r < block_count; ++r) {
          const RowKeys range = row_keys(p, rows, b, row0 + block + r);
          if (!sees(p, mask, blocks, &range, b, h, row0 + block + r, key0 + j)) continue;
          const REAL weight = scores[r * tile_keys + j];
          for (int c = 0; c < columns; ++c) {
            sums[(block + r) * padded_columns + c] += weight * LOAD(value.from, c * value.step);
          }
        }
      }
    }
  }

  for (int r = 0; r < count; ++r) {
    finish_row((b * p->query_heads + h) * p->query_length + row0 + r, columns, sums + r * padded_columns, maxima[r],
               totals[r], out, lse);
  }
}

// Every work-group takes tiles from one counter until none is left: drivers hand out work-groups in runs as long as half
// of all, which would leave threads idle when tiles differ or a core is slowed down. The counter goes on from launch to
// launch; `base` is where this one starts. With `heads` a tile is one query of so many heads.
__kernel void attend_cpu(COMMON, const int tile_rows, const int block_rows, const int tile_keys,
                         volatile __global uint* counter, const uint base, const uint tiles, const int heads,
                         __local REAL* queries, __local REALV* panels, __local REALV* values, __local REALV* scores, __local REALV* sums,
                         __local REAL* softmax, __local int* suspects) {
  for (;;) {
    const uint number = atomic_inc(counter) - base;
    if (number >= tiles) return;
    if (heads > 0) {
      attend_heads(COMMON_VALUES, heads, tile_keys, number, queries, (__local REAL*)values, (__local REAL*)scores,
                   (__local REAL*)sums, softmax);
      continue;
    }
    attend_tile(COMMON_VALUES, tile_rows, block_rows, tile_keys, number, queries, (__local REAL*)panels,
                (__local REAL*)values, (__local REAL*)scores, (__local REAL*)sums, softmax, suspects);
  }
}
