// What stands around CLBlast's batched products: packing, masked softmax, and values that are not finite.

// Rows of a strided tensor, dense. With `flags`, rows that hold NaN or infinity become zeros and are flagged:
// a hidden key has weight 0, and 0 * NaN in a product would leak.
__kernel void pack_rows(__global const REAL* from, const long stride_b, const long stride_h, const long stride_l,
                        const long stride_d, const long heads, const long length, const long dim, __global REAL* to,
                        __global int* flags, __global int* any) {
  const long row = get_global_id(0);
  const long b = row / (heads * length), h = row / length % heads, l = row % length;
  const long start = b * stride_b + h * stride_h + l * stride_l;
  REAL probe = 0;
  for (long d = 0; d < dim; ++d) {
    const REAL x = from[start + d * stride_d];
    to[row * dim + d] = x;
    probe += x * (REAL)0;
  }
  if (!flags) return;
  flags[row] = probe != 0;
  if (probe != 0) {
    any[0] = 1;
    for (long d = 0; d < dim; ++d) to[row * dim + d] = 0;
  }
}

// One work-item a row: scores become normalised weights in place, lse is written. Hidden keys get weight 0.
__kernel void masked_softmax(const Problem problem, __global const uchar* mask, __global REAL* scores,
                             __global REAL* lse) {
  const Problem* p = &problem;
  const long row = get_global_id(0);
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads);
  __global REAL* s = scores + row * p->key_length;
  const long first = first_key(p, i), last = max(first, last_key(p, i));
  for (long j = 0; j < first; ++j) s[j] = 0;
  for (long j = last; j < p->key_length; ++j) s[j] = 0;

  REAL most = HIDDEN;
  int seen = 0;
  for (long j = first; j < last; ++j) {
    if (p->mask_kind != 0) s[j] = masked(p, mask, mask_index(p, b, h, i, j), s[j]);
    most = fmax(most, s[j]);
    seen |= s[j] != HIDDEN;
  }
  if (!seen) {
    for (long j = first; j < last; ++j) s[j] = 0;
    lse[row] = HIDDEN;
    return;
  }
  if (most == HIDDEN) most = 0;  // nothing but NaN
  REAL total = 0;
  for (long j = first; j < last; ++j) {
    s[j] = exp(s[j] - most);
    total += s[j];
  }
  for (long j = first; j < last; ++j) s[j] /= total;
  lse[row] = most + log(total);
}

// Adds the flagged keys' values to the rows that see them. Does nothing when no key was flagged.
__kernel void add_flagged(const Problem problem, __global const uchar* mask, __global const REAL* weights,
                          __global const REAL* v, __global const int* flags, __global const int* any,
                          __global REAL* out) {
  if (!any[0]) return;
  const Problem* p = &problem;
  const long row = get_global_id(0);
  const long i = row % p->query_length, h = row / p->query_length % p->query_heads;
  const long b = row / (p->query_length * p->query_heads), g = h / p->group;
  const long key_heads = p->query_heads / p->group;
  for (long j = 0; j < p->key_length; ++j) {
    if (!flags[(b * key_heads + g) * p->key_length + j] || !sees(p, mask, b, h, i, j)) continue;
    const long from = b * p->v[0] + g * p->v[1] + j * p->v[2];
    for (long c = 0; c < p->value_dim; ++c) {
      out[row * p->value_dim + c] += weights[row * p->key_length + j] * v[from + c * p->v[3]];
    }
  }
}
