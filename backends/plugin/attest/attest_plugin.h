/* The interface between attest and an implementation of attention in a shared library, in C11.
 *
 * A plug-in is a library that exports one function, attest_plugin_entry. README.md beside this file is the standard:
 * what each side promises, who owns what, which threads call, how versions grow. examples/ holds whole plug-ins.
 *
 * Every struct begins with its size in bytes. Members are only ever appended, never moved, removed or given another
 * meaning. Elements of arrays (attest_placement, attest_named_tensor) and the tensors, which DLPack fixes, have no size
 * and never grow. Pointers are the host's unless a member says otherwise, and NULL where there is nothing.
 */
#ifndef ATTEST_PLUGIN_H
#define ATTEST_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this interface. Another number means that neither side can read the other. */
#define ATTEST_PLUGIN_ABI 2u

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

enum { ATTEST_DEVICE_CPU = 1 }; /* DLDeviceType */
/* DLDataTypeCode */
enum {
  ATTEST_CODE_INT = 0,
  ATTEST_CODE_UINT = 1,
  ATTEST_CODE_FLOAT = 2,
  ATTEST_CODE_BFLOAT = 4,
  ATTEST_CODE_E4M3 = 10,
  ATTEST_CODE_E5M2 = 12,
  ATTEST_CODE_E8M0 = 14,
  ATTEST_CODE_E2M1 = 17
};

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

/* Types of storage; of 8 and 4 bits those of single tensors, never a call's. Two elements of 4 bits lie in each byte,
 * the one with the even number in its lower half; rows are dense, and strides count elements: all but the last are
 * even. */
enum {
  ATTEST_F64 = 0,
  ATTEST_F32 = 1,
  ATTEST_F16 = 2,
  ATTEST_BF16 = 3,
  ATTEST_E4M3 = 4, /* DLPack: code 10 with 8 bits; no infinity, NaN 0x7f and 0xff */
  ATTEST_E5M2 = 5, /* code 12; as IEEE 754 would have it */
  ATTEST_I8 = 6,
  ATTEST_E2M1 = 7, /* code 17 with 4 bits: 0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives */
  ATTEST_I4 = 8,   /* code 0 with 4 bits, from -8 to 7 */
  ATTEST_E8M0 = 11 /* code 14, of scales alone: 2^(code - 127), of code 0xff NaN */
};
/* op */
enum {
  ATTEST_ATTENTION = 0,
  ATTEST_LINEAR = 1,
  ATTEST_GATED = 2,
  ATTEST_DELTA = 3,
  ATTEST_GATED_DELTA = 4,
  ATTEST_MERGE = 5
};
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
  ATTEST_OUT_PRESENT = 64,
  ATTEST_OUT_DQ = 128,
  ATTEST_OUT_DK = 256,
  ATTEST_OUT_DV = 512,
  ATTEST_OUT_DMASK = 1024,
  ATTEST_OUT_DSINKS = 2048,
  ATTEST_OUT_DDECAY = 4096,
  ATTEST_OUT_DBETA = 8192,
  ATTEST_OUT_DSTATE = 16384,
  ATTEST_OUT_MAX = 32768,
  ATTEST_OUT_SUM = 65536
};
enum { ATTEST_NO_ROPE = 0, ATTEST_ROPE_HALVES = 1, ATTEST_ROPE_INTERLEAVED = 2 }; /* rope */
enum { ATTEST_NO_SCALES = 0, ATTEST_SCALES_OF_HEADS = 1, ATTEST_SCALES_OF_QUERIES = 2, ATTEST_SCALES_OF_BOTH = 3 };
enum { ATTEST_FORWARD = 0, ATTEST_BACKWARD = 1, ATTEST_BOTH = 2 }; /* pass */
#define ATTEST_UNBOUNDED INT64_MAX                                 /* a side of a window that is open */

/* What a call uses, in words: those of attest_call.features that this header knows. A backend refuses every call with a
 * word that it does not know, those that don't exist yet included: see attest_refuse_others. One type and one operator
 * are always among them. */
/* clang-format off */
static const char* const attest_known_features[] = {
  "dtype=f64", "dtype=f32", "dtype=f16", "dtype=bf16",
  "op=attention", "op=linear", "op=gated", "op=delta", "op=gated_delta",
  "batch", "heads",           /* not 1 */
  "grouped heads",            /* query_heads is not key_heads */
  "seq=LqxLk",                /* query_length is not key_length */
  "dim=Dqk/Dv",               /* key_dim is not value_dim */
  "a size 0",                 /* a batch, head count or length */
  "scale",                    /* not 1/sqrt(key_dim) */
  "causal", "align=bottom-right", "window", "prefix",
  "lengths",                  /* of keys, per batch */
  "lengths of queries",       /* too */
  "segments", "mask=bool", "mask=add",
  "mask.dtype",               /* the type of an additive mask is said; its tensor has it in any case */
  "blocks", "softcap", "alibi", "sinks", "dropout", "past", "paged", "decay=head", "beta=one", "state",
  "out=lse", "out=max", "out=sum", "out=weights", "out=raw", "out=capped", "out=biased", "out=present",
  "strides",                  /* q, k, v, mask or o is not dense in the order of its axes, or begins at an offset */
  "layout=thd",               /* packed sequences: one after another without padding */
  "prefix=causal",            /* the prefix escapes the window alone, not the diagonal */
  "alibi per batch",          /* slopes of each batch */
  "gap",                      /* packed sequences have rows between them that belong to none */
  "past per batch",           /* past_lengths: sequences have different numbers of cached keys */
  "strides of other tensors", /* any but q, k, v, mask and o is not dense, or begins at an offset */
  "pass=backward",            /* gradients, from saved results */
  "pass=both",                /* results and gradients in one plan */
  "dlse",                     /* the loss depends on lse, too */
  "out=dq", "out=dk", "out=dv", "out=dmask", "out=dsinks",
  "dpresent",                 /* the loss depends on the last state, too */
  "out=ddecay", "out=dbeta", "out=dstate",
  "op=merge",                 /* of partial results of attention */
  "parts",                    /* not 2 */
  "base=2",                   /* of the logsumexps of a merge */
  "qk_heads",                 /* linear attention has fewer heads of q and k than states */
  "dynamic",                  /* lengths and page table are data: "query_lengths" and "key_lengths" */
  "select",                   /* the keys that a query sees are listed by number: "indices" */
  "latent",                   /* values are the first columns of the keys */
  "append",                   /* "new_k" and "new_v" are written into the cache k and v before it is read */
  "mixed types",              /* a tensor other than the mask is not of the call's type: see attest_placement */
  "stored=e4m3", "stored=e5m2", "stored=i8", "stored=e2m1", "stored=i4", /* q, k or v, cached ones too, are */
  "scales=head", "scales=query", /* the scale is multiplied by "head_scales", by "query_scales" */
  "softcap=unscaled",         /* the cap applies to <q,k>, and the scale to what it leaves */
  "rope=halves", "rope=interleaved", /* q and k are rotated by "cos" and "sin" */
  "rope of some features",    /* the first ones */
  "rope.positions",           /* "q_positions" and "k_positions" say the rows of the tables */
  "rope.cache=rotated",       /* cached keys are, and normalised, already */
  "norm",                     /* RMS norm of each row of q and k */
  "norm=after",               /* behind the rotation, not in front of it */
  "latent.parts=apart",       /* "q_rope" and "k_rope": columns of q and k behind the values */
  "l2norm",                   /* linear attention divides each row of q and k by sqrt(sum of squares + eps) */
  "q.scale", "k.scale", "v.scale", /* codes of q, k or v have scales: "q_scales", ... */
  "scales in e4m3", "scales in e8m0" /* and these are stored so */
};
/* clang-format on */

/* A tensor that the case asks to be stored in another way than `layout` and `dtype` say. Views say it in full; few look
 * here. */
typedef struct attest_placement {
  const char* role; /* of attest_named_tensor */
  int32_t layout;   /* of this tensor alone, or -1 */
  int32_t has_strides;
  int64_t strides[4]; /* elements, axes b, h, l, d */
  int64_t offset;     /* elements before the first */
  int32_t dtype;      /* of this tensor alone, or -1 */
  int32_t reserved;
} attest_placement;

typedef struct attest_call {
  uint64_t size;
  const char* const* features; /* words: see attest_known_features */
  uint64_t feature_count;
  const char* line;  /* the call as a case line, for messages */
  int32_t op, dtype; /* dtype: storage of q, k, v, out and what has no type of its own */
  int64_t batch, query_heads, key_heads, query_length, key_length, key_dim, value_dim;
  double scale; /* of the scores, whether the case says it or not */
  int32_t causal, align;
  int64_t window_left, window_right; /* keys beside the diagonal, or ATTEST_UNBOUNDED; W shows W + 1 */
  int64_t prefix;                    /* keys that every query sees */
  int32_t prefix_causal;             /* keys of the prefix right of the diagonal stay hidden */
  int32_t layout;
  const int64_t* query_lengths; /* batch; NULL: every one is query_length */
  const int64_t* key_lengths;   /* batch; NULL: every one is key_length */
  int64_t segment_count;
  const int64_t* query_segments; /* lengths of documents; NULL: those of the keys */
  const int64_t* key_segments;
  int32_t mask_kind, mask_dtype;
  int32_t mask_axes[4];              /* B, H, Q, K: 0 where the mask is broadcast */
  int64_t block_rows, block_columns; /* sizes of the blocks of a block mask, or 0 */
  double softcap;                    /* 0: none */
  int32_t alibi, sinks;
  const double *given_slopes, *given_sinks; /* as the case gives them; the inputs have them in any case */
  int64_t given_slope_count, given_sink_count;
  double dropout;              /* share of the weights that is dropped */
  uint64_t dropout_seed;       /* 0 without dropout */
  int64_t past;                /* cached keys, in tensors of their own: the most that any batch has */
  const int64_t* past_lengths; /* batch; NULL: every one is past. New keys are numbered from there on */
  int64_t page_size;           /* rows of a page of cached keys, or 0 */
  int32_t decay_per_head, beta_shared;
  uint32_t outputs; /* ATTEST_OUT_... */
  int64_t gap;      /* packed: rows between two sequences; their lengths say where each ends */
  const attest_placement* placements;
  uint64_t placement_count;
  int32_t pass;  /* ATTEST_FORWARD, ... */
  int32_t dlse;  /* there is a "dlse" */
  int64_t parts; /* results that are merged; 0 of other operators */
  int32_t base2; /* a merge takes and gives logsumexps in base 2 */
  int32_t reserved;
  int64_t qk_heads;      /* of linear attention, each for key_heads / qk_heads states; 0: as many as states */
  int32_t dynamic;       /* lengths and page table are data of a run; query_lengths and key_lengths above are NULL */
  int32_t append;        /* row i of "new_k" and "new_v" becomes key K - n + i of a sequence of n queries and K keys */
  int32_t latent;        /* "v" is a view of the first V columns of "k", and "past_v" of "past_k" */
  int32_t select_shared; /* lists of "indices" are the same for all heads */
  int64_t select_count;  /* numbers of a list of "indices"; 0: there are no lists */
  int64_t select_block;  /* keys that a number stands for */
  int32_t scales, unscaled_cap; /* ATTEST_SCALES_...; softcap applies to <q,k> before the scale */
  int32_t rope;                 /* ATTEST_ROPE_... */
  int32_t rotated_cache;        /* cached keys are rotated and normalised already; new ones before append writes them */
  int64_t rope_dims;            /* features that are rotated, the first ones; 0: all */
  int64_t rope_positions;       /* positions come as tensors, each below this number; 0: places in the sequence */
  double norm_eps;              /* of the RMS norm of rows of q and k; 0: there is none */
  int32_t norm_after_rope;
  int32_t latent_apart; /* the columns of q and k behind the values are "q_rope" and "k_rope" */
  double l2norm_eps;    /* of linear attention, under the root of the sum of squares; 0: rows are not normalised */
  /* What has one scale: 0: there are none; 1: the tensor; 2: a head; 3: a row; 4: a block of a row. */
  int32_t q_scale, k_scale, v_scale;
  int32_t reserved_scale;
  int64_t q_scale_block, k_scale_block, v_scale_block; /* elements of a block; 0 where there are none */
} attest_call;

/* ---- what a call reads and writes ----------------------------------------------------------------------------------
 * All of it is the host's. Inputs, and the structs that describe them, stay until the next upload or the plan's end and
 * are read only; outputs stay for the length of download.
 *
 * Each tensor has a role and four axes. Letters are sizes of the call: B batch, H and G query and key heads, L and S
 * lengths of queries and keys, D and V dimensions of keys and values.
 *
 * Inputs:
 *   "q"              B,H,L,D       packed: 1,H,rows,D. With qk_heads this is the number of heads of q and k
 *   "k"              B,G,S,D       packed: 1,G,rows,D; pages: pages,G,page_size,D; cached: S - past new ones
 *   "v"              B,G,S,V       likewise
 *   "mask"           B,H,L,S       uint8, 1 = visible, or floating, to be added
 *   "past_k"         B,G,past,D
 *   "past_v"         B,G,past,V
 *   "q_scales"       B,H,L,n       of codes of 8 or 4 bits, strides 0 where they are shared; n blocks of a row, or 1
 *   "k_scales"       B,G,S,n       likewise, of all keys, cached ones first; pages: pages,G,page_size,n
 *   "v_scales"       B,G,S,n       likewise; latent values have the scales of their keys
 *   "past_lengths"   B,1,1,1       int32: cached keys of each batch, where they differ
 *   "page_table"     B,1,1,pages   int32: of a sequence, -1 beyond its length
 *   "blocks"         B,H,rows,columns  of blocks: uint8, 1 = visible
 *   "indices"        B,G,L,n       int32: numbers of keys, or of blocks of select_block; -1: none; packed as q
 *   "slopes"         B,H,1,1       float64, of ALiBi
 *   "sinks"          1,H,1,1       float64, logits; -inf: that head has none
 *   "keep"           B,H,L,S       uint8, 1 = kept by dropout. Absent: drawn by Philox, see README.md
 *   "decay"          B,G,L,D       logarithms; packed as k
 *   "beta"           B,G,L,1       likewise
 *   "past_state"     B,G,D,V
 *   "part_o"         n*B,H,L,V     partial results, that of part x and batch b at x*B + b
 *   "part_lse"       n*B,H,L,1     their logsumexps; -inf: an empty part, whose o is not read
 *   "new_k"          B,G,L,D       keys that append writes; packed as q
 *   "new_v"          B,G,L,V       likewise
 *   "query_lengths"  B,1,1,1       int32, of dynamic: at most L. They change between uploads, and the page table does
 *   "key_lengths"    B,1,1,1       int32, likewise at most S; new keys are counted
 *   "cos"            1,1,P,R/2     of each position's angles. A key stands at its number; query i at i plus the number
 *                                  of the key on its diagonal: P reaches all of them
 *   "sin"            1,1,P,R/2     likewise
 *   "q_positions"    B,1,L,1       int32: rows of cos and sin instead. Packed: 1,1,rows,1
 *   "k_positions"    B,1,S,1       likewise, of all keys, cached ones first, wherever they lie
 *   "q_norm"         1,1,1,D       weights of the norm of q
 *   "k_norm"         1,1,1,D       and of k
 *   "head_scales"    1,H,1,1       multiply the scale
 *   "query_scales"   B,1,L,1       likewise. Packed: 1,1,rows,1
 *   "q_rope"         B,H,L,D-V     of latent_apart, where q and k have V columns; laid out as q
 *   "k_rope"         B,G,S,D-V     laid out as k: packed, or in pages of the same numbers
 *   "saved_o"        B,H,L,V       of the forward pass, where that isn't run
 *   "saved_lse"      B,H,L,1       likewise
 *   "do"             B,H,L,V       the loss's derivatives by o
 *   "dlse"           B,H,L,1       and by lse
 *   "dpresent"       B,G,D,V       and by the last state
 * Outputs, each where it was asked for:
 *   "o"              B,H,L,V       always there in a forward pass. Packed: 1,H,rows,V
 *   "lse"            B,H,L,1       in the accumulator's type. Packed: 1,H,rows,1
 *   "max"            B,H,L,1       the largest score of a row, its sink among them; likewise
 *   "sum"            B,H,L,1       of exp(score - max) over its keys and its sink; likewise
 *   "raw"            B,H,L,S       this and the next three in the storage type
 *   "capped"         B,H,L,S
 *   "biased"         B,H,L,S
 *   "weights"        B,H,L,S
 *   "present_k"      B,G,S,D
 *   "present_v"      B,G,S,V
 *   "present_state"  B,G,D,V
 *   "cache_k"        B,G,S,D       the cache behind a call with append: as k, every element that isn't new as it was
 *   "cache_v"        B,G,S,V       likewise, as v
 *   "dq"             B,H,L,D       packed as q
 *   "dk"             B,G,S,D       of all keys, cached ones first, wherever they lie. Packed: 1,G,rows,D
 *   "dv"             B,G,S,V       likewise
 *   "dmask"          B,H,L,S       1 along an axis on which the mask is broadcast
 *   "dsinks"         1,H,1,1       in the accumulator's type
 *   "ddecay"         B,G,S,D       1 along an axis on which the decay is broadcast
 *   "dbeta"          B,G,S,1       likewise, of beta
 *   "dstate"         B,G,D,V       by past_state
 */

typedef struct attest_named_tensor {
  const char* role;
  const attest_tensor* tensor;
} attest_named_tensor;

typedef struct attest_tensors {
  uint64_t size;
  uint64_t count;
  const attest_named_tensor* list;
  const int64_t *query_starts,
      *key_starts; /* packed: B + 1 row numbers, of q, o and lse and of k and v; NULL for pages */
} attest_tensors;

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
enum {
  ATTEST_OPERAND_EXACT = 0,
  ATTEST_OPERAND_TF32 = 1,
  ATTEST_OPERAND_BF16 = 2,
  ATTEST_OPERAND_F16 = 3,
  ATTEST_OPERAND_E4M3 = 4,
  ATTEST_OPERAND_E5M2 = 5,
  ATTEST_OPERAND_INT8 = 6,
  ATTEST_OPERAND_U8 = 7,
  ATTEST_OPERAND_INT4 = 8,
  ATTEST_OPERAND_E2M1 = 9,
  ATTEST_OPERAND_BF16X3 = 10
};
enum { ATTEST_SUM_ACCUMULATOR = 0, ATTEST_SUM_F32 = 1, ATTEST_SUM_BF16 = 2, ATTEST_SUM_F16 = 3, ATTEST_SUM_EXACT = 4 };

/* How terms are added. It never grows. Before: one by one in the accumulator's type. */
typedef struct attest_sum {
  int64_t promote;  /* terms after which the sum goes into the accumulator, and starts anew; 0: never */
  int32_t format;   /* ATTEST_SUM_...: in which it is kept until then */
  int32_t width;    /* terms that are aligned to the largest of them and added at once; before: 1 */
  int32_t bits;     /* of the fraction, that are kept of aligned terms and of their sum; 0: the format's */
  int32_t directed; /* roundings cut towards zero */
} attest_sum;

/* How an operand becomes a number of its format. It never grows. Before: to nearest, as it is. */
typedef struct attest_operand_rounding {
  double step;          /* x / step is rounded; 0: the largest of a group over the format's largest; before: 1 */
  int64_t rows;         /* tokens of a group, of weights keys; 0: all */
  int64_t columns;      /* features of a group; 0: all */
  double slack;         /* by how much a step and what is rounded in it may be larger; before: 2^-14 */
  int32_t power_of_two; /* a step of 0 is a power of two, and what is too large for it saturates */
  int32_t directed;     /* cut towards zero */
  int32_t mean_removed; /* of k: its mean over all keys is taken from it first */
  int32_t mean_format;  /* ATTEST_OPERAND_...: in which that mean is kept */
} attest_operand_rounding;

/* How results are rounded; the error bound is derived from it (reference/arithmetic/arithmetic.h and ERROR_BOUNDS.md
 * say more). The host fills in what plain loops in the accumulator's type do; write what differs. */
typedef struct attest_arithmetic {
  uint64_t size;
  int32_t accumulator;    /* ATTEST_F32 or ATTEST_F64: type of every sum. Before: F64 for f64, F32 otherwise */
  int32_t stored_weights; /* type in which exp(s - m) enters P*V; before: the accumulator's */
  double exp_ulps, log_ulps, tanh_ulps;  /* errors of these functions; before: 2 each */
  int32_t base2;                         /* scores in units of log 2, and exp2 */
  int32_t scale, division;               /* ATTEST_SCALE_..., ATTEST_DIVISION_... */
  int32_t normalised_before_storage;     /* P is divided by its sum before P*V */
  int64_t key_block;                     /* keys per step of an online softmax; 0: one pass */
  double lazy_threshold;                 /* nats by which the running maximum may lag */
  int32_t stored_scores, score_stores;   /* type in which scores are kept between steps, and how often */
  int32_t sum_of_stored;                 /* the row sum adds the weights as stored */
  int32_t flush_to_zero;                 /* subnormals may become 0 */
  int64_t state_chunk;                   /* linear attention: tokens that enter the state together; 0: one by one */
  int64_t parts;                         /* keys cut into so many runs, whose divided results are merged; 0: not cut */
  int32_t stored_parts;                  /* type in which a part's result waits; before: the accumulator's */
  int32_t fused_log2e;                   /* exp2(fma(s, log2(e), -m*log2(e))) of scores in base e */
  int32_t no_maximum;                    /* exp(s): no maximum is subtracted */
  int32_t weights_from_lse;              /* weights as an output are exp(s - lse) */
  int32_t kept_weights;                  /* of gradients: P is a forward pass's, and not exp(s - lse) */
  int32_t delta_from_weights;            /* D is the sum of P*dP, and not of do*o */
  int32_t stored_score_gradients;        /* type in which dS enters dq and dk; F64: the accumulator's */
  int32_t stored_head_gradients;         /* type in which dk and dv of one query head wait to be summed; likewise */
  int32_t varying_order;                 /* sums go in an order that changes, as by atomics: no bits are promised */
  int32_t query_operand, key_operand;    /* ATTEST_OPERAND_...: what q and k are rounded to on their way into Q*K */
  int32_t value_operand, weight_operand; /* likewise v and the weights on their way into P*V */
  attest_sum score_sum, value_sum, weight_sum; /* how Q*K, P*V and the weights of a row are added */
  int32_t score_roundings, output_roundings;   /* products behind Q*K and P*V, by scales of their operands */
  double weight_factor;                        /* multiplies weights before they become weight_operand; before: 1 */
  double exp_absolute;                         /* error of a weight besides exp_ulps */
  double rescale_ulps;  /* of exp where it rescales what was summed; before: -1, as exp and exp_absolute */
  int32_t exp_argument; /* ATTEST_OPERAND_...: what the argument of exp is rounded to */
  attest_operand_rounding query_rounding, key_rounding, value_rounding, weight_rounding; /* steps of the operands */
} attest_arithmetic;

/* What a backend does where the field disagrees (backends/conventions.h lists the values). NULL: as attest does it.
 * Strings are the plug-in's, and stay until the instance is destroyed. */
typedef struct attest_conventions {
  uint64_t size;
  const char *align, *window, *mask_true, *empty_row, *hidden_nan, *lse_base, *lse_of_empty_row, *softcap, *softmax_f64,
      *accumulation_f32;
  const char* same_bits; /* relations that keep every bit (attest relate --list): "repeat, threads, batch" */
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
  int (*upload)(void* plan, const attest_tensors* inputs, attest_text* message);
  int (*run)(void* plan, attest_text* message); /* what is timed */
  int (*download)(void* plan, const attest_tensors* outputs, attest_text* message);
  int (*workspace)(void* plan, uint64_t* bytes, attest_text* message);        /* may be NULL: 0 */
  int (*device_time)(void* plan, int64_t* nanoseconds, attest_text* message); /* may be NULL; leave -1: no such clock */
  /* Of one result, by the role of its tensor, where it is rounded otherwise; filled in with what `arithmetic` said.
   * Called for the results of a call right after `arithmetic` for that call. */
  int (*arithmetic_of)(void* instance, const attest_call* call, const char* result, attest_arithmetic* arithmetic,
                       attest_text* message); /* may be NULL */
} attest_backend;

typedef struct attest_plugin {
  uint64_t size;
  uint32_t abi;           /* ATTEST_PLUGIN_ABI */
  uint32_t backend_count; /* 1 or more */
  const attest_backend* const* backends;
  /* attest_known_features. Of words that are no option by themselves the host refuses others on the plug-in's behalf.
   */
  const char* const* known_features;
  uint64_t known_feature_count;
  /* Sizes of the structs as the plug-in was compiled with them. */
  uint64_t backend_size, call_size, tensors_size, tensor_size, context_size, identity_size, arithmetic_size,
      conventions_size, text_size;
} attest_plugin;

/* All members of attest_plugin: static const attest_plugin table = ATTEST_PLUGIN_TABLE(pointers, count); */
#define ATTEST_PLUGIN_TABLE(pointers, count)                                                                       \
  {                                                                                                                \
    sizeof(attest_plugin), ATTEST_PLUGIN_ABI, (count), (pointers), attest_known_features,                          \
        sizeof attest_known_features / sizeof *attest_known_features, sizeof(attest_backend), sizeof(attest_call), \
        sizeof(attest_tensors), sizeof(attest_tensor), sizeof(attest_context), sizeof(attest_identity),            \
        sizeof(attest_arithmetic), sizeof(attest_conventions), sizeof(attest_text)                                 \
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

static inline int attest_lists(const char* const* words, uint64_t count, const char* word) {
  uint64_t n = 0;
  while (n < count && strcmp(words[n], word) != 0) ++n;
  return n < count;
}

/* Whether the call uses a feature, such as "softcap". */
static inline int attest_has(const attest_call* call, const char* feature) {
  return attest_lists(call->features, call->feature_count, feature);
}

/* For refuse(): ATTEST_OK where the call uses nothing but `known`; otherwise it names the first other feature. */
static inline int attest_refuse_others(const attest_call* call, const char* const* known, uint64_t count,
                                       attest_text* reason) {
  for (uint64_t n = 0; n < call->feature_count; ++n) {
    if (!attest_lists(known, count, call->features[n]))
      return attest_say(reason, ATTEST_REFUSED, "%s: not supported", call->features[n]);
  }
  return ATTEST_OK;
}

/* The tensor with a role, such as "past_k"; NULL: the call has none. */
static inline const attest_tensor* attest_find(const attest_tensors* tensors, const char* role) {
  uint64_t n = 0;
  while (n < tensors->count && strcmp(tensors->list[n].role, role) != 0) ++n;
  return n < tensors->count ? tensors->list[n].tensor : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
