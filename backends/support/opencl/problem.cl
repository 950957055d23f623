// What every kernel needs to know about a problem, and who sees what. REAL is float or double.

#ifdef HAS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define HIDDEN ((REAL)(-INFINITY))

typedef struct {
  long query_heads, group, query_length, key_length, key_dim, value_dim;
  long offset, left, right;
  long q[4], k[4], v[4], mask[4];
  long mask_kind;
} Problem;

// First key that causal and window leave to query i, and the one after the last.
inline long first_key(const Problem* p, long i) {
  return clamp(i + p->offset - p->left, 0L, p->key_length);
}

inline long last_key(const Problem* p, long i) {
  return clamp(i + p->offset + p->right + 1, 0L, p->key_length);
}

inline long mask_index(const Problem* p, long b, long h, long i, long j) {
  return b * p->mask[0] + h * p->mask[1] + i * p->mask[2] + j * p->mask[3];
}

// A score with the mask's part: -inf where the key is hidden, whatever the key held.
inline REAL masked(const Problem* p, __global const uchar* mask, long at, REAL score) {
  if (p->mask_kind == 1) return mask[at] ? score : HIDDEN;
  if (p->mask_kind == 2) {
    const float bias = ((__global const float*)mask)[at];
    return bias == -INFINITY ? HIDDEN : score + (REAL)bias;
  }
#ifdef HAS_DOUBLE
  if (p->mask_kind == 3) {
    const double bias = ((__global const double*)mask)[at];
    return bias == (double)(-INFINITY) ? HIDDEN : score + (REAL)bias;
  }
#endif
  return score;
}

// Whether query i sees key j, everything considered.
inline int sees(const Problem* p, __global const uchar* mask, long b, long h, long i, long j) {
  if (j < first_key(p, i) || j >= last_key(p, i)) return 0;
  if (p->mask_kind == 0) return 1;
  return masked(p, mask, mask_index(p, b, h, i, j), (REAL)0) != HIDDEN;
}
