// Linear attention, token by token: the columns of a state don't know of each other, so each work-item takes one vector
// of columns of one key head through all tokens. The state lies where it is handed out from.
// The host defines VW (lanes of a vector: 4, 8 or 16) and REALV.

typedef struct {
  long key_heads, group, length, key_dim, value_dim, states;
  long q[4], k[4], v[4], decay[4], beta[4], initial[4];  // element strides
  long has_decay, is_delta, has_initial;
} LinearProblem;

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define LOAD_VECTOR(at) JOINED(vload, VW)(0, (at))
#define STORE_VECTOR(vector, at) JOINED(vstore, VW)((vector), 0, (at))

// `count` elements, `step` apart, and zeros behind them.
inline REALV lanes_of(__global const STORE* from, long at, long step, int count) {
  REAL lanes[VW];
  for (int n = 0; n < VW; ++n) lanes[n] = n < count ? LOAD(from, at + n * step) : (REAL)0;
  return JOINED(vload, VW)(0, lanes);
}

// out: B,H,L and state: B,Hkv,Dk, both with value_dim rounded up to whole vectors behind.
__kernel void attend_linear(const LinearProblem problem, const REAL scale, __global const STORE* q,
                            __global const STORE* k, __global const STORE* v, __global const STORE* decay,
                            __global const STORE* beta, __global const STORE* initial, __global REAL* out,
                            __global REAL* state) {
  const LinearProblem* p = &problem;
  const long panels = (p->value_dim + VW - 1) / VW, padded = panels * VW;
  const long item = get_global_id(0);
  if (item >= p->states * panels) return;
  const long column = item % panels * VW, head = item / panels, b = head / p->key_heads, g = head % p->key_heads;
  const int count = (int)min((long)VW, p->value_dim - column);
  __global REAL* held = state + head * p->key_dim * padded + column;
  for (long d = 0; d < p->key_dim; ++d) {
    const long at = b * p->initial[0] + g * p->initial[1] + d * p->initial[2] + column * p->initial[3];
    STORE_VECTOR(p->has_initial ? lanes_of(initial, at, p->initial[3], count) : (REALV)(0), held + d * padded);
  }
  for (long t = 0; t < p->length; ++t) {
    const long key = b * p->k[0] + g * p->k[1] + t * p->k[2];
    const long factor = b * p->decay[0] + g * p->decay[1] + t * p->decay[2];
    REALV written = lanes_of(v, b * p->v[0] + g * p->v[1] + t * p->v[2] + column * p->v[3], p->v[3], count);
    for (long d = 0; p->has_decay && d < p->key_dim; ++d)
      STORE_VECTOR(LOAD_VECTOR(held + d * padded) * exp(LOAD(decay, factor + d * p->decay[3])), held + d * padded);
    if (p->is_delta) {
      REALV read = (REALV)(0);
      for (long d = 0; d < p->key_dim; ++d)
        read = fma((REALV)(LOAD(k, key + d * p->k[3])), LOAD_VECTOR(held + d * padded), read);
      written = LOAD(beta, b * p->beta[0] + g * p->beta[1] + t * p->beta[2]) * (written - read);
    }
    for (long d = 0; d < p->key_dim; ++d) {
      const REALV moved = fma((REALV)(LOAD(k, key + d * p->k[3])), written, LOAD_VECTOR(held + d * padded));
      STORE_VECTOR(moved, held + d * padded);
    }
    for (long h = g * p->group; h < (g + 1) * p->group; ++h) {
      const long query = b * p->q[0] + h * p->q[1] + t * p->q[2];
      REALV read = (REALV)(0);
      for (long d = 0; d < p->key_dim; ++d)
        read = fma((REALV)(LOAD(q, query + d * p->q[3])), LOAD_VECTOR(held + d * padded), read);
      const long row = (b * p->key_heads * p->group + h) * p->length + t;
      STORE_VECTOR(scale * read, out + row * padded + column);
    }
  }
}
