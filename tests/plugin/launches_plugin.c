/* launches_c: attention of servers as plain loops, as a plug-in in C11: lengths and page tables that are data, and a
 * cache that a run appends to. What else there is it refuses. */
#include <attest/attest_plugin.h>
#include <attest/attest_plugin_tensor.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const char* const known[] = {
  "dtype=f64", "dtype=f32", "dtype=f16", "dtype=bf16", "op=attention", "batch", "heads", "grouped heads", "seq=LqxLk",
  "dim=Dqk/Dv", "a size 0", "scale", "causal", "align=bottom-right", "lengths", "lengths of queries", "paged",
  "layout=thd", "gap", "strides", "strides of other tensors", "mixed types", "dynamic", "append", "out=lse"
};
/* clang-format on */

enum { KEYS, VALUES };

typedef struct plan {
  const attest_call* call;
  const attest_tensors* in;
  attest_tensor cache[2]; /* of its own where the call appends, else as they were given */
  int64_t strides[2][4];
  double *out, *lse, *scores; /* dense: B,H,L and V or 1; S */
} plan;

static size_t bytes_of(const attest_tensor* t) { return t->dtype.bits / 8; }

static char* place(const attest_tensor* t, int64_t at) {
  return (char*)t->data + t->byte_offset + (size_t)at * bytes_of(t);
}

static int64_t integer(const plan* p, const char* role, int64_t b, int64_t n) {
  const attest_tensor* t = attest_find(p->in, role);
  return (int64_t)attest_load(t, attest_at(t, NULL, b, 0, 0, n));
}
static int64_t queries_of(const plan* p, int64_t b) {
  if (p->call->dynamic) return integer(p, "query_lengths", b, 0);
  return p->call->query_lengths ? p->call->query_lengths[b] : p->call->query_length;
}
static int64_t keys_of(const plan* p, int64_t b) {
  if (p->call->dynamic) return integer(p, "key_lengths", b, 0);
  return p->call->key_lengths ? p->call->key_lengths[b] : p->call->key_length;
}
static int64_t stored_queries(const plan* p, int64_t b) {
  return p->call->layout == ATTEST_THD ? queries_of(p, b) : p->call->query_length;
}

/* Feature 0 of key or value j. */
static int64_t row_of_key(const plan* p, int which, int64_t b, int64_t g, int64_t j) {
  const attest_tensor* t = &p->cache[which];
  const int64_t size = p->call->page_size;
  if (size > 0) return attest_at(t, NULL, integer(p, "page_table", b, j / size), g, j % size, 0);
  return attest_at(t, p->call->layout == ATTEST_THD ? p->in->key_starts : NULL, b, g, j, 0);
}

static double element(const attest_tensor* t, int64_t row, int64_t d) {
  return attest_load(t, row + d * t->strides[3]);
}

/* A dense copy, bit for bit. The one before it is given back. */
static int take(plan* p, int which, const attest_tensor* from) {
  attest_tensor* to = &p->cache[which];
  const int64_t* n = from->shape;
  int64_t* s = p->strides[which];
  void* const before = to->data;
  *to = *from;
  s[0] = n[1] * n[2] * n[3], s[1] = n[2] * n[3], s[2] = n[3], s[3] = 1;
  to->data = realloc(before, (size_t)(n[0] * s[0] + 1) * bytes_of(from));
  if (!to->data) return 0;
  to->byte_offset = 0;
  to->strides = s;
  for (int64_t b = 0; b < n[0]; ++b)
    for (int64_t g = 0; g < n[1]; ++g)
      for (int64_t l = 0; l < n[2]; ++l)
        for (int64_t d = 0; d < n[3]; ++d)
          memcpy(place(to, attest_at(to, NULL, b, g, l, d)), place(from, attest_at(from, NULL, b, g, l, d)),
                 bytes_of(from));
  return 1;
}

static void give(const plan* p, int which, const attest_tensor* to) {
  const attest_tensor* from = &p->cache[which];
  const int64_t* n = from->shape;
  for (int64_t b = 0; to && b < n[0]; ++b)
    for (int64_t g = 0; g < n[1]; ++g)
      for (int64_t l = 0; l < n[2]; ++l)
        for (int64_t d = 0; d < n[3]; ++d)
          memcpy(place(to, attest_at(to, NULL, b, g, l, d)), place(from, attest_at(from, NULL, b, g, l, d)),
                 bytes_of(from));
}

static void append(const plan* p, int which, const attest_tensor* fresh) {
  const attest_tensor* cache = &p->cache[which];
  for (int64_t b = 0; b < p->call->batch; ++b) {
    const int64_t n = queries_of(p, b), first = keys_of(p, b) - n;
    for (int64_t g = 0; g < p->call->key_heads; ++g)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t d = 0; d < fresh->shape[3]; ++d)
          attest_store(cache, row_of_key(p, which, b, g, first + i) + d,
                       attest_load(fresh, attest_at(fresh, p->in->query_starts, b, g, i, d)));
  }
}

static void attend(const plan* p, int64_t b, int64_t h, int64_t i) {
  const attest_call* c = p->call;
  const attest_tensor *q = attest_find(p->in, "q"), *keys = &p->cache[KEYS], *values = &p->cache[VALUES];
  const int64_t row = (b * c->query_heads + h) * c->query_length + i, g = h / (c->query_heads / c->key_heads);
  const int64_t n = queries_of(p, b), offset = c->align == ATTEST_BOTTOM_RIGHT ? keys_of(p, b) - n : 0;
  int64_t end = i < n ? keys_of(p, b) : 0;
  if (c->causal && end > i + offset + 1) end = i + offset + 1;
  double max = -(double)INFINITY, sum = 0;
  for (int64_t j = 0; j < end; ++j) {
    const int64_t key = row_of_key(p, KEYS, b, g, j);
    double score = 0;
    for (int64_t d = 0; d < c->key_dim; ++d)
      score += attest_load(q, attest_at(q, p->in->query_starts, b, h, i, d)) * element(keys, key, d);
    p->scores[j] = score * c->scale;
    if (!(p->scores[j] <= max)) max = p->scores[j];
  }
  double* out = p->out + row * c->value_dim;
  for (int64_t d = 0; d < c->value_dim; ++d) out[d] = 0;
  for (int64_t j = 0; j < end; ++j) {
    const double weight = exp(p->scores[j] - max);
    const int64_t value = row_of_key(p, VALUES, b, g, j);
    sum += weight;
    for (int64_t d = 0; d < c->value_dim; ++d) out[d] += weight * element(values, value, d);
  }
  for (int64_t d = 0; end > 0 && d < c->value_dim; ++d) out[d] /= sum;
  p->lse[row] = end > 0 ? max + log(sum) : -(double)INFINITY;
}

static int identity(void* instance, attest_identity* identity, attest_text* message) {
  (void)instance, (void)message;
  identity->contract = 9;
  identity->library = "plain C11 loops";
  identity->device = "CPU, 1 thread";
  return ATTEST_OK;
}

static int refuse(void* instance, const attest_call* call, attest_text* reason) {
  (void)instance;
  return attest_refuse_others(call, known, sizeof known / sizeof *known, reason);
}

static int arithmetic(void* instance, const attest_call* call, attest_arithmetic* a, attest_text* message) {
  (void)instance, (void)call, (void)message;
  a->accumulator = a->stored_weights = a->stored_scores = ATTEST_F64;
  a->exp_ulps = a->log_ulps = 1;
  return ATTEST_OK;
}

static void drop(void* pointer) {
  plan* p = pointer;
  if (p->call->append) free(p->cache[KEYS].data), free(p->cache[VALUES].data);
  free(p->out), free(p->lse), free(p->scores);
  free(p);
}

static int prepare(void* instance, const attest_call* call, void** made, attest_text* message) {
  (void)instance;
  plan* p = calloc(1, sizeof *p);
  if (!p) return attest_say(message, ATTEST_OUT_OF_MEMORY, "no memory for a plan");
  const size_t rows = (size_t)(call->batch * call->query_heads * call->query_length);
  p->call = call;
  p->out = malloc((rows * (size_t)call->value_dim + 1) * sizeof(double));
  p->lse = malloc((rows + 1) * sizeof(double));
  p->scores = malloc(((size_t)call->key_length + 1) * sizeof(double));
  *made = p;
  if (p->out && p->lse && p->scores) return ATTEST_OK;
  drop(p);
  return attest_say(message, ATTEST_OUT_OF_MEMORY, "no memory for %zu rows", rows);
}

static int upload(void* pointer, const attest_tensors* inputs, attest_text* message) {
  plan* p = pointer;
  p->in = inputs;
  for (int which = KEYS; which <= VALUES; ++which) {
    const attest_tensor* given = attest_find(inputs, which == KEYS ? "k" : "v");
    if (!p->call->append)
      p->cache[which] = *given;
    else if (!take(p, which, given))
      return attest_say(message, ATTEST_OUT_OF_MEMORY, "no memory for the cache");
  }
  return ATTEST_OK;
}

static int run(void* pointer, attest_text* message) {
  (void)message;
  plan* p = pointer;
  if (p->call->append) {
    append(p, KEYS, attest_find(p->in, "new_k"));
    append(p, VALUES, attest_find(p->in, "new_v"));
  }
  for (int64_t b = 0; b < p->call->batch; ++b)
    for (int64_t h = 0; h < p->call->query_heads; ++h)
      for (int64_t i = 0; i < stored_queries(p, b); ++i) attend(p, b, h, i);
  return ATTEST_OK;
}

static void write(const plan* p, const attest_tensor* to, const int64_t* starts, const double* from) {
  const attest_call* c = p->call;
  for (int64_t b = 0; to && b < c->batch; ++b)
    for (int64_t h = 0; h < c->query_heads; ++h)
      for (int64_t i = 0; i < stored_queries(p, b); ++i) {
        const int64_t row = (b * c->query_heads + h) * c->query_length + i, width = to->shape[3];
        for (int64_t d = 0; d < width; ++d) attest_store(to, attest_at(to, starts, b, h, i, d), from[row * width + d]);
      }
}

static int download(void* pointer, const attest_tensors* outputs, attest_text* message) {
  (void)message;
  const plan* p = pointer;
  write(p, attest_find(outputs, "o"), outputs->query_starts, p->out);
  write(p, attest_find(outputs, "lse"), outputs->query_starts, p->lse);
  give(p, KEYS, attest_find(outputs, "cache_k"));
  give(p, VALUES, attest_find(outputs, "cache_v"));
  return ATTEST_OK;
}

static const attest_backend launches_c = {.size = sizeof(attest_backend),
                                          .name = "launches_c",
                                          .identity = identity,
                                          .refuse = refuse,
                                          .arithmetic = arithmetic,
                                          .prepare = prepare,
                                          .drop = drop,
                                          .upload = upload,
                                          .run = run,
                                          .download = download};
static const attest_backend* const backends[] = {&launches_c};
static const attest_plugin table = ATTEST_PLUGIN_TABLE(backends, 1);

const attest_plugin* attest_plugin_entry(uint32_t host_abi) { return host_abi == ATTEST_PLUGIN_ABI ? &table : NULL; }
