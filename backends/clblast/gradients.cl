// What stands around CLBlast's products in gradients. Rows of operands that hold NaN or infinity are zeros there and are
// flagged, since 0 * NaN would leak. The pairs of such rows are multiplied once more by themselves: where NaN is visible, dT
// is NaN, and so are dq and dk. What such a row of do gives to dv is added behind the products.

#define FLAGGED_QUERY 1
#define FLAGGED_DOUT 2

// Rows of q and do, dense, each head's filled up with zeros: one work-item a row.
__kernel void pack_rows(COMMON, GRADIENTS, __global REAL* to_q, __global REAL* to_dout, __global int* flags,
                        __global int* any) {
  const Problem* p = &problem;
  const long together = p->group * p->query_length, pitch = DEEP(together), at = get_global_id(0);
  if (at >= p->batch * p->key_heads * pitch) return;
  const long row = at / pitch * together + at % pitch, i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads);
  const int stored = at % pitch < together && i < tables[b * TABLE_WIDTH + 3];
  const Pair one = {b, h, h / p->group, i, 0, stored, 0};
  const long width = DEEP(p->key_dim), columns = DEEP(p->value_dim);
  to_q += at * width;
  to_dout += at * columns;
  REAL probe_q = 0, probe_dout = 0;
  for (long d = 0; d < width; ++d) {
    to_q[d] = query_at(p, tables, q, &one, 0, d);
    probe_q += to_q[d] * (REAL)0;
  }
  for (long c = 0; c < columns; ++c) {
    to_dout[c] = dout_at(p, dout, &one, 0, c);
    probe_dout += to_dout[c] * (REAL)0;
  }
  flags[at] = (probe_q != 0 ? FLAGGED_QUERY : 0) | (probe_dout != 0 ? FLAGGED_DOUT : 0);
  for (long d = 0; probe_q != 0 && d < width; ++d) to_q[d] = 0;
  if (probe_dout == 0) return;
  any[1] = 1;
  for (long c = 0; c < columns; ++c) to_dout[c] = 0;
}

// One work-item a row: scores become weights after dropout, and do * v becomes dT, both 0 where hidden. What fills up rows
// is 0 already.
__kernel void weigh_rows(COMMON, GRADIENTS, __global REAL* scores, __global REAL* products, __global const int* key_flags,
                          __global const int* row_flags, __global const int* any) {
  const Problem* p = &problem;
  const long row = get_global_id(0), width = DEEP(p->key_length);
  if (row >= p->batch * p->query_heads * p->query_length) return;
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads), g = h / p->group, packed = packed_row(p, row);
  __global REAL *s = scores + packed * width, *d = products + packed * width;
  const RowKeys range = row_keys(p, rows, b, i);
  const Span at = hide_unseen(p, &range, s, width);
  for (long j = 0; j < at.low; j += LANES) VECTOR(d + j) = (REALS)(0);
  for (long j = at.high; j < width; j += LANES) VECTOR(d + j) = (REALS)(0);

  const int flagged = row_flags[packed];
  key_flags += (b * p->key_heads + g) * width;
  for (long j = at.first; (flagged || any[0]) && j < at.last; ++j) {
    if (!in_range(&range, j) || (!flagged && !key_flags[j])) continue;
    const Pair pair = {b, h, g, i, j, 1, 1};
    s[j] = score_of(p, tables, scale, q, k, past_k, &pair);
    d[j] = product_of(p, tables, dout, v, past_v, &pair);
  }
  if (p->has_softcap || p->has_slopes || p->mask_kind || p->block_rows || p->dropout) {
    for (long j = at.first; j < at.last; ++j) {
      if (!in_range(&range, j)) continue;
      const REAL after = capped(p, softcap, s[j]), tangent = p->has_softcap ? after / softcap : (REAL)0;
      const REAL factor = p->dropout ? keep_factor(p, keep, kept, b, h, i, j) : (REAL)1;
      s[j] = biased(p, mask, small, blocks, b, h, i, j, range.diagonal, after);
      d[j] = (factor * d[j] + shift[row]) * (1 - tangent * tangent);
    }
  } else {
    for (long j = at.low; j < at.high; j += LANES) VECTOR(d + j) += shift[row];
  }
  for (long j = at.low; j < at.high; j += LANES) {
    const REALS score = VECTOR(s + j), weight = exp(score - lse[row]), gradient = weight * VECTOR(d + j);
    VECTOR(s + j) = select(weight, (REALS)(0), score == (REALS)(HIDDEN));
    VECTOR(d + j) = select(gradient, (REALS)(0), score == (REALS)(HIDDEN));
  }
  for (long j = at.first; p->dropout && j < at.last; ++j) s[j] *= keep_factor(p, keep, kept, b, h, i, j);
}

// Adds what flagged rows of do give to dv of the keys that they see: one work-item a key.
__kernel void add_flagged_rows(COMMON, GRADIENTS, __global REAL* dv, __global const REAL* weights, __global const int* flags,
                               __global const int* any) {
  if (!any[1]) return;
  const Problem* p = &problem;
  const long key = get_global_id(0), keys = DEEP(p->key_length);
  if (key >= p->batch * p->key_heads * p->key_length) return;
  const long j = key % p->key_length, g = key / p->key_length % p->key_heads, b = key / (p->key_length * p->key_heads);
  for (long h = g * p->group; h < (g + 1) * p->group; ++h) {
    for (long i = 0; i < p->query_length; ++i) {
      const long row = (b * p->query_heads + h) * p->query_length + i, packed = packed_row(p, row);
      const RowKeys range = row_keys(p, rows, b, i);
      if (!(flags[packed] & FLAGGED_DOUT) || !sees(p, mask, blocks, &range, b, h, i, j)) continue;
      const REAL weight = weights[packed * keys + j];
      for (long c = 0; c < p->value_dim; ++c) dv[key * p->value_dim + c] += weight * dout[row * p->value_dim + c];
    }
  }
}
