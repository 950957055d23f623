/* example_c: attention as plain loops in double, as a plug-in in C11. Replace run() by your kernel, then state how it
 * rounds. What it can't do it refuses with a sentence: linear attention.
 *
 *   cc -std=c11 -O2 -fPIC -shared example_c.c -lm -o libexample_c.so
 */
#include <math.h>
#include <stdlib.h>

#include <attest/attest_plugin.h>
#include <attest/attest_plugin_tensor.h>

/* What this backend knows; calls with anything else are refused by attest_refuse_others, options of the future too. */
/* clang-format off */
static const char* const known[] = {
  "dtype=f64", "dtype=f32", "dtype=f16", "dtype=bf16", "op=attention", "batch", "heads", "grouped heads", "seq=LqxLk",
  "dim=Dqk/Dv", "a size 0", "scale", "causal", "align=bottom-right", "window", "prefix", "prefix=causal", "lengths",
  "lengths of queries", "segments", "mask=bool", "mask=add", "mask.dtype", "blocks", "softcap", "alibi",
  "alibi per batch", "sinks", "dropout", "past", "past per batch", "paged", "layout=thd", "gap", "out=lse", "out=weights", "out=raw",
  "out=capped", "out=biased", "out=present", "strides", "strides of other tensors", "mixed types"
};
/* clang-format on */

/* One call made ready. Host and call stay as they are until drop(), inputs until the next upload(). */
typedef struct plan {
  const attest_call* call;
  const attest_tensors* in;
  const attest_tensor *q, *k, *v, *past_k, *past_v, *page_table, *mask, *blocks, *slopes, *sinks, *keep;
  double *out, *lse, *raw, *capped, *biased, *weights; /* dense: B,H,L and V, 1 or S */
} plan;

static size_t rows_of(const attest_call* c) { return (size_t)(c->batch * c->query_heads * c->query_length); }

/* The lengths of batch b. */
static int64_t queries_of(const attest_call* c, int64_t b) {
  return c->query_lengths ? c->query_lengths[b] : c->query_length;
}
static int64_t past_of(const attest_call* c, int64_t b) { return c->past_lengths ? c->past_lengths[b] : c->past; }
static int64_t keys_of(const attest_call* c, int64_t b) {
  const int64_t stored = c->page_size ? c->key_length : c->key_length - c->past + past_of(c, b);
  return c->key_lengths && c->key_lengths[b] < stored ? c->key_lengths[b] : stored;
}

/* Where query i and key j stand to each other: on the diagonal where *key == *diagonal. 0: in other segments. */
static int place(const attest_call* c, int64_t b, int64_t i, int64_t j, int64_t* diagonal, int64_t* key) {
  int64_t offset = past_of(c, b);
  if (c->past == 0 && c->align == ATTEST_BOTTOM_RIGHT) offset = keys_of(c, b) - queries_of(c, b);
  *diagonal = i + offset;
  *key = j;
  if (!c->key_segments) return 1;
  int64_t first_query = 0, first_key = 0;
  for (int64_t n = 0; n < c->segment_count; ++n) {
    const int64_t keys = c->key_segments[n], queries = c->query_segments ? c->query_segments[n] : keys;
    if (i < first_query + queries || j < first_key + keys) {
      *diagonal = i - first_query + (c->align == ATTEST_BOTTOM_RIGHT ? keys - queries : 0);
      *key = j - first_key;
      return i < first_query + queries && j < first_key + keys;
    }
    first_query += queries;
    first_key += keys;
  }
  return 0;
}

static double element(const attest_tensor* t, int64_t b, int64_t h, int64_t l, int64_t d) {
  return attest_load(t, attest_at(t, NULL, b, h, l, d));
}

static int sees(const plan* p, int64_t b, int64_t h, int64_t i, int64_t j) {
  const attest_call* c = p->call;
  int64_t diagonal, key;
  if (i >= queries_of(c, b) || j >= keys_of(c, b) || !place(c, b, i, j, &diagonal, &key)) return 0;
  if (c->prefix_causal && key > diagonal) return 0;
  if (key >= c->prefix) {
    if (c->causal && key > diagonal) return 0;
    if (c->window_left != ATTEST_UNBOUNDED && key < diagonal - c->window_left) return 0;
    if (c->window_right != ATTEST_UNBOUNDED && key - diagonal > c->window_right) return 0;
  }
  if (p->blocks && element(p->blocks, b, h, i / c->block_rows, j / c->block_columns) == 0) return 0;
  if (!p->mask) return 1;
  const double mask = element(p->mask, b, h, i, j);
  return c->mask_kind == ATTEST_BOOLEAN_MASK ? mask != 0 : mask != -(double)INFINITY;
}

/* Feature d of key (or value) j: in the cache, in a page or among the new ones. */
static double cached(const plan* p, const attest_tensor* now, const attest_tensor* past, int64_t b, int64_t g,
                     int64_t j, int64_t d) {
  const attest_call* c = p->call;
  if (p->page_table) {
    const int64_t page = (int64_t)element(p->page_table, b, 0, 0, j / c->page_size);
    return element(now, page, g, j % c->page_size, d);
  }
  const int64_t first = past_of(c, b); /* of the new keys */
  if (j < first) return element(past, b, g, j, d);
  return attest_load(now, attest_at(now, p->in->key_starts, b, g, j - first, d));
}

static void score(const plan* p, int64_t b, int64_t h, int64_t i, int64_t j, double* raw, double* capped,
                  double* biased) {
  const attest_call* c = p->call;
  const int64_t g = h / (c->query_heads / c->key_heads);
  double sum = 0;
  for (int64_t d = 0; d < c->key_dim; ++d) {
    const double query = attest_load(p->q, attest_at(p->q, p->in->query_starts, b, h, i, d));
    sum += query * cached(p, p->k, p->past_k, b, g, j, d);
  }
  *raw = sum * c->scale;
  *capped = c->softcap > 0 ? c->softcap * tanh(*raw / c->softcap) : *raw;
  *biased = *capped;
  if (c->mask_kind == ATTEST_ADDITIVE_MASK) *biased += element(p->mask, b, h, i, j);
  if (p->slopes) {
    int64_t diagonal, key;
    place(c, b, i, j, &diagonal, &key);
    *biased -= element(p->slopes, b, h, 0, 0) * (double)llabs(diagonal - key);
  }
}

/* Dropout: keep / (1 - p), given as a tensor or drawn by the seed. */
static double keep_factor(const plan* p, int64_t b, int64_t h, int64_t i, int64_t j) {
  if (!p->keep && p->call->dropout == 0) return 1;
  const int kept = p->keep ? element(p->keep, b, h, i, j) != 0 : attest_keeps(p->call, b, h, i, j);
  return kept ? 1 / (1 - p->call->dropout) : 0;
}

/* One row of queries. A stage that was asked for is written for every key, seen or not. */
static void attend(plan* p, int64_t b, int64_t h, int64_t i, double* scores) {
  const attest_call* c = p->call;
  const int64_t row = (b * c->query_heads + h) * c->query_length + i, S = c->key_length, V = c->value_dim;
  const int stages = p->raw || p->capped || p->biased;
  const double sink = p->sinks ? element(p->sinks, 0, h, 0, 0) : -(double)INFINITY;
  double max = sink;
  int any = sink != -(double)INFINITY; /* a head may have none */
  for (int64_t j = 0; j < S; ++j) {
    const int seen = sees(p, b, h, i, j);
    if (p->weights) p->weights[row * S + j] = 0;
    if (!seen && !stages) continue;
    double raw, capped, biased;
    score(p, b, h, i, j, &raw, &capped, &biased);
    if (p->raw) p->raw[row * S + j] = raw;
    if (p->capped) p->capped[row * S + j] = capped;
    if (p->biased) p->biased[row * S + j] = seen ? biased : -(double)INFINITY;
    if (!seen) continue;
    scores[j] = biased;
    max = any && !(biased > max) ? max : biased;
    any = 1;
  }
  for (int64_t d = 0; d < V; ++d) p->out[row * V + d] = 0;
  p->lse[row] = sink;
  if (!any) return; /* a row that sees nothing: output 0, lse -inf */
  double sum = sink != -(double)INFINITY ? exp(sink - max) : 0;
  for (int64_t j = 0; j < S; ++j) {
    if (!sees(p, b, h, i, j)) continue;
    const double weight = exp(scores[j] - max);
    sum += weight;
    if (p->weights) p->weights[row * S + j] = weight;
    const int64_t g = h / (c->query_heads / c->key_heads);
    const double kept = weight * keep_factor(p, b, h, i, j);
    for (int64_t d = 0; d < V; ++d) p->out[row * V + d] += kept * cached(p, p->v, p->past_v, b, g, j, d);
  }
  for (int64_t d = 0; d < V; ++d) p->out[row * V + d] /= sum;
  for (int64_t j = 0; p->weights && j < S; ++j) {
    if (p->weights[row * S + j] != 0) p->weights[row * S + j] /= sum;
  }
  p->lse[row] = max + log(sum);
}

/* ---- the interface -------------------------------------------------------------------------------------------------
 */

static int identity(void* instance, attest_identity* identity, attest_text* message) {
  (void)instance, (void)message;
  identity->contract = 4;
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
  a->accumulator = a->stored_weights = a->stored_scores = ATTEST_F64; /* whatever the storage is */
  a->exp_ulps = a->log_ulps = 1;                                      /* glibc's are below 1 ulp, its tanh below 2 */
  a->tanh_ulps = 2;
  return ATTEST_OK;
}

static int conventions(void* instance, attest_conventions* c, attest_text* message) {
  (void)instance, (void)message;
  c->accumulation_f32 = "f64";
  return ATTEST_OK;
}

static void drop(void* pointer) {
  plan* p = pointer;
  free(p->out), free(p->lse), free(p->raw), free(p->capped), free(p->biased), free(p->weights);
  free(p);
}

static int prepare(void* instance, const attest_call* call, void** made, attest_text* message) {
  (void)instance;
  plan* p = calloc(1, sizeof *p);
  if (!p) return attest_say(message, ATTEST_OUT_OF_MEMORY, "no memory for a plan");
  const size_t rows = rows_of(call), scores = rows * (size_t)call->key_length;
  struct {
    int wanted;
    double** to;
    size_t count;
  } lists[] = {{1, &p->out, rows * (size_t)call->value_dim},
               {1, &p->lse, rows + (size_t)call->key_length}, /* and the scores of a row */
               {call->outputs & ATTEST_OUT_RAW, &p->raw, scores},
               {call->outputs & ATTEST_OUT_CAPPED, &p->capped, scores},
               {call->outputs & ATTEST_OUT_BIASED, &p->biased, scores},
               {call->outputs & ATTEST_OUT_WEIGHTS, &p->weights, scores}};
  p->call = call;
  for (size_t n = 0; n < sizeof lists / sizeof *lists; ++n) {
    if (!lists[n].wanted) continue;
    *lists[n].to = malloc((lists[n].count + 1) * sizeof(double));
    if (*lists[n].to) continue;
    drop(p);
    return attest_say(message, ATTEST_OUT_OF_MEMORY, "no memory for %zu numbers", lists[n].count);
  }
  *made = p;
  return ATTEST_OK;
}

static int upload(void* pointer, const attest_tensors* inputs, attest_text* message) {
  (void)message;
  plan* p = pointer;
  p->in = inputs;
  p->q = attest_find(inputs, "q");
  p->k = attest_find(inputs, "k");
  p->v = attest_find(inputs, "v");
  p->past_k = attest_find(inputs, "past_k");
  p->past_v = attest_find(inputs, "past_v");
  p->page_table = attest_find(inputs, "page_table");
  p->mask = attest_find(inputs, "mask");
  p->blocks = attest_find(inputs, "blocks");
  p->slopes = attest_find(inputs, "slopes");
  p->sinks = attest_find(inputs, "sinks");
  p->keep = attest_find(inputs, "keep");
  return ATTEST_OK;
}

static int64_t stored_queries(const attest_call* c, int64_t b) {
  return c->layout == ATTEST_THD ? queries_of(c, b) : c->query_length;
}

static int run(void* pointer, attest_text* message) {
  (void)message;
  plan* p = pointer;
  for (int64_t b = 0; b < p->call->batch; ++b) {
    for (int64_t h = 0; h < p->call->query_heads; ++h) {
      for (int64_t i = 0; i < stored_queries(p->call, b); ++i) attend(p, b, h, i, p->lse + rows_of(p->call));
    }
  }
  return ATTEST_OK;
}

static void write(const plan* p, const attest_tensor* to, const int64_t* starts, const double* from) {
  const attest_call* c = p->call;
  for (int64_t b = 0; to && b < c->batch; ++b) {
    for (int64_t h = 0; h < c->query_heads; ++h) {
      for (int64_t i = 0; i < stored_queries(c, b); ++i) {
        const int64_t row = (b * c->query_heads + h) * c->query_length + i, width = to->shape[3];
        for (int64_t d = 0; d < width; ++d) attest_store(to, attest_at(to, starts, b, h, i, d), from[row * width + d]);
      }
    }
  }
}

/* The cache and what is new, as one tensor. */
static void write_present(const plan* p, const attest_tensor* to, const attest_tensor* now, const attest_tensor* past) {
  for (int64_t b = 0; to && b < to->shape[0]; ++b) {
    for (int64_t g = 0; g < to->shape[1]; ++g) {
      for (int64_t j = 0; j < to->shape[2]; ++j) {
        for (int64_t d = 0; d < to->shape[3]; ++d)
          attest_store(to, attest_at(to, NULL, b, g, j, d), cached(p, now, past, b, g, j, d));
      }
    }
  }
}

static int download(void* pointer, const attest_tensors* outputs, attest_text* message) {
  (void)message;
  const plan* p = pointer;
  write(p, attest_find(outputs, "o"), outputs->query_starts, p->out);
  write(p, attest_find(outputs, "lse"), outputs->query_starts, p->lse);
  write(p, attest_find(outputs, "raw"), NULL, p->raw);
  write(p, attest_find(outputs, "capped"), NULL, p->capped);
  write(p, attest_find(outputs, "biased"), NULL, p->biased);
  write(p, attest_find(outputs, "weights"), NULL, p->weights);
  write_present(p, attest_find(outputs, "present_k"), p->k, p->past_k);
  write_present(p, attest_find(outputs, "present_v"), p->v, p->past_v);
  return ATTEST_OK;
}

static int workspace(void* pointer, uint64_t* bytes, attest_text* message) {
  (void)message;
  *bytes = 8 * rows_of(((plan*)pointer)->call) * (uint64_t)(((plan*)pointer)->call->value_dim + 1);
  return ATTEST_OK;
}

static const attest_backend example_c = {.size = sizeof(attest_backend),
                                         .name = "example_c",
                                         .identity = identity,
                                         .refuse = refuse,
                                         .arithmetic = arithmetic,
                                         .conventions = conventions,
                                         .prepare = prepare,
                                         .drop = drop,
                                         .upload = upload,
                                         .run = run,
                                         .download = download,
                                         .workspace = workspace};
static const attest_backend* const backends[] = {&example_c};
static const attest_plugin table = ATTEST_PLUGIN_TABLE(backends, 1);

const attest_plugin* attest_plugin_entry(uint32_t host_abi) { return host_abi == ATTEST_PLUGIN_ABI ? &table : NULL; }
