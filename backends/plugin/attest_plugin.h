/* The interface between attest and an implementation of attention in a shared library, in C11.
 *
 * A plug-in is a library that exports one function, attest_plugin_entry. README.md beside this file is the standard:
 * what each side promises, who owns what, which threads call, how versions grow. examples/ holds whole plug-ins.
 *
 * Every struct begins with its size in bytes, but for attest_placement and the tensors, which DLPack fixes. Members are
 * only ever appended, never moved, removed or given another meaning. Pointers are the host's unless a member says
 * otherwise, and NULL where there is nothing.
 */
#ifndef ATTEST_PLUGIN_H
#define ATTEST_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this interface. Another number means that neither side can read the other. */
#define ATTEST_PLUGIN_ABI 1u

/* In front of the one function that a plug-in exports. */
#define ATTEST_PLUGIN_EXPORT __attribute__((visibility("default")))

/* What a function of a plug-in returns. Other than ATTEST_OK it writes a sentence into its attest_text. */
enum {
  ATTEST_OK = 0,
  ATTEST_REFUSED = 1,      /* refuse() alone: the call is not for this backend */
  ATTEST_FAILED = 2,       /* the verdict of the case becomes `fail` with the sentence */
  ATTEST_UNAVAILABLE = 3,  /* create() alone: this machine lacks what the backend needs */
  ATTEST_OUT_OF_MEMORY = 4 /* the verdict becomes `crashed` with isolation, `fail` without */
};

/* Room for a sentence; the host's, for the length of the call. `data` is never NULL and starts as "". */
typedef struct attest_text {
  uint64_t size;
  char* data;
  uint64_t capacity; /* bytes, the closing 0 included */
} attest_text;

/* ---- tensors, as DLPack describes them -----------------------------------------------------------------------------
 * attest_tensor has the layout of DLPack's DLTensor (dmlc/dlpack, versions 0.2 to 1.x): a pointer to one may be cast.
 */

enum { ATTEST_DEVICE_CPU = 1 };                                                                    /* DLDeviceType */
enum { ATTEST_CODE_INT = 0, ATTEST_CODE_UINT = 1, ATTEST_CODE_FLOAT = 2, ATTEST_CODE_BFLOAT = 4 }; /* DLDataTypeCode */

typedef struct attest_device {
  int32_t device_type, device_id;
} attest_device;

typedef struct attest_data_type {
  uint8_t code, bits;
  uint16_t lanes;
} attest_data_type;

typedef struct attest_tensor {
  void* data;
  attest_device device;
  int32_t ndim;
  attest_data_type dtype;
  int64_t* shape;   /* ndim extents */
  int64_t* strides; /* ndim, in elements; never NULL; 0 on broadcast axes of inputs */
  uint64_t byte_offset;
} attest_tensor;

/* ---- a call --------------------------------------------------------------------------------------------------------
 * Sizes and options of one attention call: all that a backend is told before data come. What each option means is
 * defined in attest's reference/README.md, formula by formula. */

enum { ATTEST_F64 = 0, ATTEST_F32 = 1, ATTEST_F16 = 2, ATTEST_BF16 = 3 }; /* types of storage */
enum { ATTEST_ATTENTION = 0, ATTEST_LINEAR = 1, ATTEST_GATED = 2, ATTEST_DELTA = 3, ATTEST_GATED_DELTA = 4 }; /* op */
enum { ATTEST_TOP_LEFT = 0, ATTEST_BOTTOM_RIGHT = 1 }; /* align */
enum { ATTEST_NO_MASK = 0, ATTEST_BOOLEAN_MASK = 1, ATTEST_ADDITIVE_MASK = 2 };
enum { ATTEST_BHLD = 0, ATTEST_BLHD = 1, ATTEST_BLD = 2, ATTEST_QKV = 3, ATTEST_KV = 4, ATTEST_THD = 5 }; /* layout */
/* Bits of attest_call.outputs. */
enum {
  ATTEST_OUT_O = 1,
  ATTEST_OUT_LSE = 2,
  ATTEST_OUT_WEIGHTS = 4,
  ATTEST_OUT_RAW = 8,
  ATTEST_OUT_CAPPED = 16,
  ATTEST_OUT_BIASED = 32,
  ATTEST_OUT_PRESENT = 64
};
#define ATTEST_UNBOUNDED INT64_MAX /* a side of a window that is open */

/* Bits of attest_call.features: what the call uses. A backend that knows a set of them refuses every call with another
 * bit, those that don't exist yet included: see attest_refuse_others. One bit of each type and operator is always set.
 */
#define ATTEST_HAS(n) (UINT64_C(1) << (n))
#define ATTEST_HAS_F64 ATTEST_HAS(0)
#define ATTEST_HAS_F32 ATTEST_HAS(1)
#define ATTEST_HAS_F16 ATTEST_HAS(2)
#define ATTEST_HAS_BF16 ATTEST_HAS(3)
#define ATTEST_HAS_ATTENTION ATTEST_HAS(4) /* softmax attention */
#define ATTEST_HAS_LINEAR ATTEST_HAS(5)    /* the four rules of linear attention */
#define ATTEST_HAS_GATED ATTEST_HAS(6)
#define ATTEST_HAS_DELTA ATTEST_HAS(7)
#define ATTEST_HAS_GATED_DELTA ATTEST_HAS(8)
#define ATTEST_HAS_BATCH ATTEST_HAS(9)             /* batch is not 1 */
#define ATTEST_HAS_HEADS ATTEST_HAS(10)            /* query_heads is not 1 */
#define ATTEST_HAS_GROUPED_HEADS ATTEST_HAS(11)    /* query_heads is not key_heads */
#define ATTEST_HAS_OTHER_KEY_LENGTH ATTEST_HAS(12) /* query_length is not key_length */
#define ATTEST_HAS_OTHER_VALUE_DIM ATTEST_HAS(13)  /* key_dim is not value_dim */
#define ATTEST_HAS_EMPTY ATTEST_HAS(14)            /* a batch, head count or length is 0 */
#define ATTEST_HAS_SCALE ATTEST_HAS(15)            /* scale is not 1/sqrt(key_dim) */
#define ATTEST_HAS_CAUSAL ATTEST_HAS(16)
#define ATTEST_HAS_BOTTOM_RIGHT ATTEST_HAS(17)
#define ATTEST_HAS_WINDOW ATTEST_HAS(18)
#define ATTEST_HAS_PREFIX ATTEST_HAS(19)
#define ATTEST_HAS_LENGTHS ATTEST_HAS(20)       /* of keys, per batch */
#define ATTEST_HAS_QUERY_LENGTHS ATTEST_HAS(21) /* of queries, too */
#define ATTEST_HAS_SEGMENTS ATTEST_HAS(22)
#define ATTEST_HAS_BOOLEAN_MASK ATTEST_HAS(23)
#define ATTEST_HAS_ADDITIVE_MASK ATTEST_HAS(24)
#define ATTEST_HAS_MASK_TYPE ATTEST_HAS(25) /* the type of an additive mask is said; its tensor has it in any case */
#define ATTEST_HAS_BLOCKS ATTEST_HAS(26)
#define ATTEST_HAS_SOFTCAP ATTEST_HAS(27)
#define ATTEST_HAS_ALIBI ATTEST_HAS(28)
#define ATTEST_HAS_SINKS ATTEST_HAS(29)
#define ATTEST_HAS_DROPOUT ATTEST_HAS(30)
#define ATTEST_HAS_PAST ATTEST_HAS(31)
#define ATTEST_HAS_PAGES ATTEST_HAS(32)
#define ATTEST_HAS_DECAY_PER_HEAD ATTEST_HAS(33)
#define ATTEST_HAS_BETA_SHARED ATTEST_HAS(34)
#define ATTEST_HAS_STATE ATTEST_HAS(35)
#define ATTEST_HAS_LSE ATTEST_HAS(36) /* outputs besides `out` */
#define ATTEST_HAS_WEIGHTS ATTEST_HAS(37)
#define ATTEST_HAS_RAW ATTEST_HAS(38)
#define ATTEST_HAS_CAPPED ATTEST_HAS(39)
#define ATTEST_HAS_BIASED ATTEST_HAS(40)
#define ATTEST_HAS_PRESENT ATTEST_HAS(41)
#define ATTEST_HAS_STRIDES ATTEST_HAS(42) /* a tensor is not dense in the order of its axes, or begins at an offset */
#define ATTEST_HAS_PACKED ATTEST_HAS(43)  /* sequences one after another without padding (layout thd) */
#define ATTEST_HAS_CAUSAL_PREFIX ATTEST_HAS(44)    /* the prefix escapes the window alone, not the diagonal */
#define ATTEST_HAS_SLOPES_PER_BATCH ATTEST_HAS(45) /* slopes have shape B,H */
#define ATTEST_HAS_GAP ATTEST_HAS(46)              /* packed sequences have rows between them that belong to none */
#define ATTEST_HAS_PLACED_OTHERS ATTEST_HAS(47)    /* other tensors have strides or offsets */
#define ATTEST_HAS_OTHER ATTEST_HAS(63) /* something that this interface can't tell; such a call never comes */
/* All that this header knows: stands in attest_plugin.known_features. */
#define ATTEST_FEATURES_KNOWN (ATTEST_HAS(48) - 1)

/* How the case asks a tensor to be stored. Views say it in full; few backends look here. */
typedef struct attest_placement {
  int32_t layout; /* of this tensor alone, or -1 */
  int32_t has_strides;
  int64_t strides[4]; /* elements, axes b, h, l, d */
  int64_t offset;     /* elements before the first */
} attest_placement;

#define ATTEST_OTHER_TENSORS 18

typedef struct attest_call {
  uint64_t size;
  uint64_t features; /* ATTEST_HAS_... */
  const char* line;  /* the call as a case line, for messages */
  int32_t op, dtype; /* dtype: storage of q, k, v and out */
  int64_t batch, query_heads, key_heads, query_length, key_length, key_dim, value_dim;
  double scale; /* of the scores, whether the case says it or not */
  int32_t causal, align;
  int64_t window_left, window_right; /* keys beside the diagonal, or ATTEST_UNBOUNDED; W shows W + 1 */
  int64_t prefix;                    /* keys that every query sees */
  const int64_t* query_lengths;      /* batch; NULL: every one is query_length */
  const int64_t* key_lengths;        /* batch; NULL: every one is key_length */
  int64_t segment_count;
  const int64_t* query_segments; /* lengths of documents; NULL: those of the keys */
  const int64_t* key_segments;
  int32_t mask_kind, mask_dtype;
  int32_t mask_axes[4];              /* B, H, Q, K: 0 where the mask is broadcast */
  int64_t block_rows, block_columns; /* sizes of the blocks of a block mask, or 0 */
  double softcap;                    /* 0: none */
  int32_t alibi, sinks;
  const double *given_slopes, *given_sinks; /* as the case gives them; attest_inputs has them in any case */
  int64_t given_slope_count, given_sink_count;
  double dropout;        /* share of the weights that is dropped */
  uint64_t dropout_seed; /* 0 without dropout */
  int64_t past;          /* cached keys, in tensors of their own */
  int64_t page_size;     /* rows of a page of cached keys, or 0 */
  int32_t decay_per_head, beta_shared, initial_state;
  uint32_t outputs; /* ATTEST_OUT_... */
  int32_t layout;
  int32_t prefix_causal;          /* keys of the prefix right of the diagonal stay hidden */
  attest_placement placements[5]; /* q, k, v, mask, out */
  int64_t gap;                    /* packed: rows between two sequences; their lengths say where each ends */
  /* past_k, past_v, page_table, blocks, slopes, sinks, keep, decay, beta, state, lse, raw, capped, biased, weights,
   * present_k, present_v, present_state */
  attest_placement other_placements[ATTEST_OTHER_TENSORS];
} attest_call;

/* ---- what a call reads and writes ----------------------------------------------------------------------------------
 * All of it is the host's. Inputs, and the structs that describe them, stay until the next upload or the plan's end and
 * are read only; outputs stay for the length of download. Letters are sizes of the call: B batch, H and G query and key
 * heads, L and S lengths of queries and keys, D and V dimensions of keys and values. */

typedef struct attest_inputs {
  uint64_t size;
  const attest_tensor* q;                   /* B,H,L,D; packed: 1,H,rows,D */
  const attest_tensor *k, *v;               /* B,G,S,D and B,G,S,V; packed: 1,G,rows,D; pages: pages,G,page_size,D */
  const attest_tensor* mask;                /* B,H,L,S; boolean: uint8, 1 = visible */
  const attest_tensor *past_k, *past_v;     /* B,G,past,D and V; k and v then hold the S - past new ones */
  const attest_tensor* page_table;          /* B,pages of a sequence: int32, -1 beyond its length */
  const attest_tensor* blocks;              /* B,H,rows,columns of blocks: uint8, 1 = visible; dense */
  const attest_tensor* slopes;              /* H: float64, of ALiBi; B,H with SLOPES_PER_BATCH */
  const attest_tensor* sinks;               /* H: float64, logits; -inf: that head has none */
  const attest_tensor* keep;                /* B,H,L,S: uint8, 1 = kept; dense. NULL: drawn by Philox, see README.md */
  const attest_tensor* decay;               /* B,G,L,D: logarithms */
  const attest_tensor* beta;                /* B,G,L,1 */
  const attest_tensor* state;               /* B,G,D,V */
  const int64_t *query_starts, *key_starts; /* packed: B + 1 row numbers */
} attest_inputs;

typedef struct attest_outputs {
  uint64_t size;
  const attest_tensor* out;                             /* B,H,L,V; packed: 1,H,rows,V. Always there */
  const attest_tensor* lse;                             /* B,H,L,1 in the accumulator's type; packed: 1,H,rows,1 */
  const attest_tensor *raw, *capped, *biased, *weights; /* B,H,L,S in the storage type */
  const attest_tensor *present_k, *present_v;           /* B,G,S,D and B,G,S,V */
  const attest_tensor* present_state;                   /* B,G,D,V */
  const int64_t* query_starts;                          /* packed: B + 1 row numbers of out and lse */
} attest_outputs;

/* ---- what a backend states ----------------------------------------------------------------------------------------
 */

typedef struct attest_context {
  uint64_t size;
  int32_t threads; /* 1 or more: the most that may compute at once */
  int32_t reserved;
  const char* device; /* part of a device's name; "" means the backend's choice */
} attest_context;

/* Strings are the plug-in's, and stay until the instance is destroyed. */
typedef struct attest_identity {
  uint64_t size;
  int32_t contract;     /* version of attest's contract that the backend was written for, as a number: 3 */
  int32_t side_by_side; /* 1: two plans may run at the same time, in two threads; 0: one at a time */
  const char* library;  /* name and version */
  const char* device;   /* what it runs on */
} attest_identity;

enum { ATTEST_SCALE_SCORE = 0, ATTEST_SCALE_FOLDED_LOG2E = 1, ATTEST_SCALE_SPLIT_ROOT = 2 };
enum {
  ATTEST_DIVISION_IEEE = 0,
  ATTEST_DIVISION_RECIPROCAL = 1,
  ATTEST_DIVISION_OPENCL = 2,
  ATTEST_DIVISION_OPENCL_RECIPROCAL = 3
};

/* How results are rounded; the error bound is derived from it (reference/arithmetic/arithmetic.h and ERROR_BOUNDS.md
 * say more). The host fills in what plain loops in the accumulator's type do; write what differs. */
typedef struct attest_arithmetic {
  uint64_t size;
  int32_t accumulator;    /* ATTEST_F32 or ATTEST_F64: type of every sum. Before: F64 for f64, F32 otherwise */
  int32_t stored_weights; /* type in which exp(s - m) enters P*V; before: the accumulator's */
  double exp_ulps, log_ulps, tanh_ulps; /* errors of these functions; before: 2 each */
  int32_t base2;                        /* scores in units of log 2, and exp2 */
  int32_t scale, division;              /* ATTEST_SCALE_..., ATTEST_DIVISION_... */
  int32_t normalised_before_storage;    /* P is divided by its sum before P*V */
  int64_t key_block;                    /* keys per step of an online softmax; 0: one pass */
  double lazy_threshold;                /* nats by which the running maximum may lag */
  int32_t stored_scores, score_stores;  /* type in which scores are kept between steps, and how often */
  int32_t sum_of_stored;                /* the row sum adds the weights as stored */
  int32_t flush_to_zero;                /* subnormals may become 0 */
  int64_t state_chunk;                  /* linear attention: tokens that enter the state together; 0: one by one */
  int64_t parts;                        /* keys cut into so many runs, whose divided results are merged; 0: not cut */
  int32_t stored_parts;                 /* type in which a part's result waits; before: the accumulator's */
  int32_t fused_log2e;                  /* exp2(fma(s, log2(e), -m*log2(e))) of scores in base e */
  int32_t no_maximum;                   /* exp(s): no maximum is subtracted */
  int32_t weights_from_lse;             /* weights as an output are exp(s - lse) */
} attest_arithmetic;

/* What a backend does where the field disagrees (backends/conventions.h lists the values). NULL: as attest does it.
 * Strings are the plug-in's, and stay until the instance is destroyed. */
typedef struct attest_conventions {
  uint64_t size;
  const char *align, *window, *mask_true, *empty_row, *hidden_nan, *lse_base, *lse_of_empty_row, *softcap, *softmax_f64,
      *accumulation_f32;
} attest_conventions;

/* ---- what a plug-in exports ---------------------------------------------------------------------------------------
 */

/* One backend. `instance` is what create() made, NULL where there is no create; a plan is what prepare() made. All
 * functions but those marked "may be NULL" are there. None may throw, or end or fork the process. */
typedef struct attest_backend {
  uint64_t size;
  const char* name; /* [a-z][a-z0-9_]*, 64 characters at most; not "reference" */
  void* user;       /* the plug-in's own */

  int (*create)(const struct attest_backend* self, const attest_context* context, void** instance,
                attest_text* message); /* may be NULL, with destroy */
  void (*destroy)(void* instance);
  int (*identity)(void* instance, attest_identity* identity, attest_text* message);
  int (*refuse)(void* instance, const attest_call* call, attest_text* reason);
  int (*arithmetic)(void* instance, const attest_call* call, attest_arithmetic* arithmetic, attest_text* message);
  int (*conventions)(void* instance, attest_conventions* conventions, attest_text* message); /* may be NULL */

  int (*prepare)(void* instance, const attest_call* call, void** plan, attest_text* message);
  void (*drop)(void* plan);
  int (*upload)(void* plan, const attest_inputs* inputs, attest_text* message);
  int (*run)(void* plan, attest_text* message); /* what is timed */
  int (*download)(void* plan, const attest_outputs* outputs, attest_text* message);
  int (*workspace)(void* plan, uint64_t* bytes, attest_text* message);        /* may be NULL: 0 */
  int (*device_time)(void* plan, int64_t* nanoseconds, attest_text* message); /* may be NULL; leave -1: no such clock */
} attest_backend;

typedef struct attest_plugin {
  uint64_t size;
  uint32_t abi;           /* ATTEST_PLUGIN_ABI */
  uint32_t backend_count; /* 1 or more */
  const attest_backend* const* backends;
  uint64_t known_features; /* ATTEST_FEATURES_KNOWN: calls with others are refused on the plug-in's behalf */
  /* Sizes of the structs as the plug-in was compiled with them. */
  uint64_t backend_size, call_size, inputs_size, outputs_size, tensor_size, context_size, identity_size,
      arithmetic_size, conventions_size, text_size;
} attest_plugin;

/* All members of attest_plugin: static const attest_plugin table = ATTEST_PLUGIN_TABLE(pointers, count); */
#define ATTEST_PLUGIN_TABLE(pointers, count)                                                                      \
  {                                                                                                               \
    sizeof(attest_plugin), ATTEST_PLUGIN_ABI, (count), (pointers), ATTEST_FEATURES_KNOWN, sizeof(attest_backend), \
        sizeof(attest_call), sizeof(attest_inputs), sizeof(attest_outputs), sizeof(attest_tensor),                \
        sizeof(attest_context), sizeof(attest_identity), sizeof(attest_arithmetic), sizeof(attest_conventions),   \
        sizeof(attest_text)                                                                                       \
  }

/* What a plug-in exports. `host_abi` is the host's ATTEST_PLUGIN_ABI. The table stays until the process ends. Called
 * once a process, from one thread, before anything else. NULL: the plug-in doesn't speak that version. */
ATTEST_PLUGIN_EXPORT const attest_plugin* attest_plugin_entry(uint32_t host_abi);

/* ---- helpers ------------------------------------------------------------------------------------------------------
 */

/* Writes a sentence, cut where it doesn't fit, and returns `code`: return attest_say(message, ATTEST_FAILED, "..."); */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4), unused))
#endif
static int
attest_say(attest_text* text, int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text->data, (size_t)text->capacity, format, arguments);
  va_end(arguments);
  return code;
}

/* The lowest bit of a set of features in words of the case language. */
static inline const char* attest_feature_name(uint64_t features) {
  /* clang-format off */
  static const char* const names[] = {
    "dtype=f64", "dtype=f32", "dtype=f16", "dtype=bf16", "op=attention", "op=linear", "op=gated", "op=delta",
    "op=gated_delta", "batch", "heads", "grouped heads", "seq=LqxLk", "dim=Dqk/Dv", "a size 0", "scale", "causal",
    "align=bottom-right", "window", "prefix", "lengths", "lengths of queries", "segments", "mask=bool", "mask=add",
    "mask.dtype", "blocks", "softcap", "alibi", "sinks", "dropout", "past", "paged", "decay=head", "beta=one",
    "state", "out=lse", "out=weights", "out=raw", "out=capped", "out=biased", "out=present", "strides", "layout=thd",
    "prefix=causal", "alibi per batch", "gap", "strides of other tensors",
  };
  /* clang-format on */
  unsigned n = 0;
  while (n < sizeof names / sizeof *names && !(features & ATTEST_HAS(n))) ++n;
  return n < sizeof names / sizeof *names ? names[n] : "an option that is younger than this plug-in";
}

/* For refuse(): ATTEST_OK where the call uses nothing but `mine`; otherwise it says what. */
static inline int attest_refuse_others(const attest_call* call, uint64_t mine, attest_text* reason) {
  const uint64_t others = call->features & ~mine;
  if (others == 0) return ATTEST_OK;
  return attest_say(reason, ATTEST_REFUSED, "%s: not supported", attest_feature_name(others));
}

#ifdef __cplusplus
}
#endif
#endif
