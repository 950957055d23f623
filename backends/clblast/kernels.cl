// What stands around CLBlast's batched products: packing, masked softmax, and values that are not finite.

// Rows of q, dense. Rows of packed sequences that are not stored become 0.
__kernel void pack_queries(COMMON, __global REAL* to) {
  const Problem* p = &problem;
  const long row = get_global_id(0);
  if (row >= p->batch * p->query_heads * p->query_length) return;
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads);
  const int stored = i < tables[b * TABLE_WIDTH + 3];
  const long from = stored ? query_row(p, tables, b, h, i) : 0;
  for (long d = 0; d < p->key_dim; ++d) to[row * p->key_dim + d] = stored ? LOAD(q, from + d * p->q[3]) : (REAL)0;
}

// Rows of k and v, dense, from wherever they are stored; keys that no row may see become 0. Values that hold NaN or
// infinity become zeros and are flagged: a hidden key has weight 0, and 0 * NaN in a product would leak.
__kernel void pack_keys(COMMON, __global REAL* to_k, __global REAL* to_v, __global int* flags, __global int* any) {
  const Problem* p = &problem;
  const long row = get_global_id(0);
  if (row >= p->batch * p->key_heads * p->key_length) return;
  const long j = row % p->key_length, g = row / p->key_length % p->key_heads, b = row / (p->key_length * p->key_heads);
  const int stored = j < tables[b * TABLE_WIDTH + 4];
  const Features key = key_features(p, tables, k, past_k, b, g, stored ? j : 0);
  const Features value = value_features(p, tables, v, past_v, b, g, stored ? j : 0);
  for (long d = 0; d < p->key_dim; ++d) to_k[row * p->key_dim + d] = stored ? LOAD(key.from, d * key.step) : (REAL)0;
  REAL probe = 0;
  for (long d = 0; d < p->value_dim; ++d) {
    const REAL x = stored ? LOAD(value.from, d * value.step) : (REAL)0;
    to_v[row * p->value_dim + d] = x;
    probe += x * (REAL)0;
  }
  flags[row] = probe != 0;
  if (probe != 0) {
    any[0] = 1;
    for (long d = 0; d < p->value_dim; ++d) to_v[row * p->value_dim + d] = 0;
  }
}

// One work-item a row: scores become normalised weights in place, lse is written. Hidden keys get weight 0.
__kernel void masked_softmax(COMMON, __global REAL* scores) {
  const Problem* p = &problem;
  const long row = get_global_id(0);
  if (row >= p->batch * p->query_heads * p->query_length) return;
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads);
  __global REAL* s = scores + row * p->key_length;
  const RowKeys range = row_keys(p, rows, b, i);
  const REAL sink = sink_of(p, small, h);

  REAL most = sink;
  int seen = p->has_sinks;
  for (long j = 0; j < p->key_length; ++j) {
    s[j] = in_range(&range, j) ? biased(p, mask, small, blocks, b, h, i, j, range.diagonal, capped(p, softcap, s[j])) : HIDDEN;
    most = fmax(most, s[j]);
    seen |= s[j] != HIDDEN;
  }
  lse[row] = sink;
  if (most == HIDDEN && seen) most = 0;  // nothing but NaN
  REAL total = p->has_sinks ? exp(sink - most) : (REAL)0;
  for (long j = 0; j < p->key_length; ++j) {
    s[j] = s[j] == HIDDEN ? (REAL)0 : exp(s[j] - most);
    total += s[j];
  }
  if (!seen) return;
  for (long j = 0; j < p->key_length; ++j) {
    s[j] /= total;
    if (p->dropout) s[j] *= keep_factor(p, keep, kept, b, h, i, j);
  }
  lse[row] = most + log(total);
}

// Adds the flagged keys' values to the rows that see them. Does nothing when no key was flagged.
__kernel void add_flagged(COMMON, __global const REAL* weights, __global const int* flags, __global const int* any) {
  if (!any[0]) return;
  const Problem* p = &problem;
  const long row = get_global_id(0);
  if (row >= p->batch * p->query_heads * p->query_length) return;
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads), g = h / p->group;
  const RowKeys range = row_keys(p, rows, b, i);
  for (long j = 0; j < p->key_length; ++j) {
    if (!flags[(b * p->key_heads + g) * p->key_length + j] || !sees(p, mask, blocks, &range, b, h, i, j)) continue;
    const Features value = value_features(p, tables, v, past_v, b, g, j);
    for (long c = 0; c < p->value_dim; ++c) {
      out[row * p->value_dim + c] += weights[row * p->key_length + j] * LOAD(value.from, c * value.step);
    }
  }
}
