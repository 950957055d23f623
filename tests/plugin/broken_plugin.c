/* A right plug-in but for one rule of the interface, which a macro names: for the sentences that attest must find. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <attest/attest_plugin.h>

#if defined BREAK_MISSING_SYMBOL
void nobody_has_this(void);
#endif

#if defined BREAK_CRASHES_IN_CONSTRUCTOR || defined BREAK_EXITS_IN_CONSTRUCTOR
__attribute__((constructor)) static void constructor(void) {
#if defined BREAK_CRASHES_IN_CONSTRUCTOR
  raise(SIGSEGV);
#else
  _Exit(0);
#endif
}
#endif

#if defined BREAK_MODES_IN_CONSTRUCTOR
#include <fenv.h>
__attribute__((constructor)) static void constructor(void) { fesetround(FE_UPWARD); }
#endif

/* The library with BREAK_ANSWERS has a backend for each; `user` is the name. */
static int is(void* instance, const char* name) { return instance && strcmp(instance, name) == 0; }

static int create(const attest_backend* self, const attest_context* context, void** instance, attest_text* message) {
  (void)context;
  *instance = self->user;
  if (is(*instance, "unavailable")) return attest_say(message, ATTEST_UNAVAILABLE, "no such device here");
  if (is(*instance, "unavailable_for_no_reason")) return ATTEST_UNAVAILABLE;
  if (is(*instance, "create_returns_7")) return 7;
  if (is(*instance, "crashes_in_create")) raise(SIGSEGV);
  return ATTEST_OK;
}
static void destroy(void* instance) { (void)instance; }

static int identity(void* instance, attest_identity* to, attest_text* message) {
  static char longest[400];
  (void)message;
  to->contract = is(instance, "contract_0") ? 0 : 2;
  to->library = is(instance, "library_null") ? NULL : is(instance, "library_empty") ? "" : "broken";
  if (is(instance, "library_long")) to->library = memset(longest, 'x', sizeof longest - 1);
  to->device = "CPU";
  return ATTEST_OK;
}

static int refuse(void* instance, const attest_call* call, attest_text* reason) {
  (void)call;
  if (is(instance, "refuses_silently")) return ATTEST_REFUSED;
  if (is(instance, "refuses")) return attest_say(reason, ATTEST_REFUSED, "not today\n");
  if (is(instance, "refuse_returns_9")) return 9;
  return ATTEST_OK;
}

static int arithmetic(void* instance, const attest_call* call, attest_arithmetic* to, attest_text* message) {
  (void)call, (void)message;
  if (is(instance, "exp_nan")) to->exp_ulps = NAN;
  if (is(instance, "tanh_negative")) to->tanh_ulps = -1;
  if (is(instance, "accumulator_f16")) to->accumulator = ATTEST_F16;
  if (is(instance, "weights_77")) to->stored_weights = 77;
  if (is(instance, "base2_5")) to->base2 = 5;
  if (is(instance, "folded")) to->scale = ATTEST_SCALE_FOLDED_LOG2E;
  if (is(instance, "block_negative")) to->key_block = -4;
  if (is(instance, "stores_99")) to->score_stores = 99;
  return ATTEST_OK;
}

static int arithmetic_of(void* instance, const attest_call* call, const char* result, attest_arithmetic* to,
                         attest_text* message) {
  (void)call, (void)message;
  if (is(instance, "lse_otherwise") && strcmp(result, "lse") == 0) to->log_ulps = 10;
  if (is(instance, "lse_negative") && strcmp(result, "lse") == 0) to->log_ulps = -10;
  return ATTEST_OK;
}

static int conventions(void* instance, attest_conventions* to, attest_text* message) {
  (void)message;
  if (is(instance, "convention_empty")) to->lse_base = "";
  return ATTEST_OK;
}

static int prepare(void* instance, const attest_call* call, void** plan, attest_text* message) {
  (void)call;
  if (is(instance, "no_plan")) return ATTEST_OK;
  if (is(instance, "prepare_fails")) return attest_say(message, ATTEST_FAILED, "the compiler is gone");
  if (is(instance, "prepare_fails_silently")) return ATTEST_FAILED;
  if (is(instance, "out_of_memory")) return ATTEST_OUT_OF_MEMORY;
  *plan = instance ? instance : (void*)&prepare;
  return ATTEST_OK;
}
static void drop(void* plan) { (void)plan; }

static int upload(void* plan, const attest_tensors* inputs, attest_text* message) {
  (void)plan, (void)inputs, (void)message;
  return ATTEST_OK;
}

#if !defined BREAK_NO_RUN
static int run(void* plan, attest_text* message) {
  if (is(plan, "unterminated")) {
    memset(message->data, 'y', (size_t)message->capacity);
    return ATTEST_FAILED;
  }
  if (is(plan, "crashes_in_run")) raise(SIGSEGV);
  if (is(plan, "exits_in_run")) _Exit(0);
#if defined BREAK_MISSING_SYMBOL
  nobody_has_this();
#endif
  return ATTEST_OK;
}
#else
#define run NULL
#endif

static int download(void* plan, const attest_tensors* outputs, attest_text* message) {
  (void)plan, (void)outputs, (void)message;
  return ATTEST_OK; /* and nothing is written */
}

static int workspace(void* plan, uint64_t* bytes, attest_text* message) {
  (void)message;
  if (is(plan, "workspace_huge")) *bytes = UINT64_MAX;
  return ATTEST_OK;
}

#define BACKEND(text)                                                                                              \
  {                                                                                                                \
    sizeof(attest_backend), text, text, create, destroy, identity, refuse, arithmetic, conventions, prepare, drop, \
        upload, run, download, workspace, NULL, arithmetic_of                                                      \
  }

#if defined BREAK_ANSWERS
static attest_backend list[] = {BACKEND("unavailable"),      BACKEND("unavailable_for_no_reason"),
                                BACKEND("create_returns_7"), BACKEND("contract_0"),
                                BACKEND("library_null"),     BACKEND("library_empty"),
                                BACKEND("library_long"),     BACKEND("refuses_silently"),
                                BACKEND("refuses"),          BACKEND("refuse_returns_9"),
                                BACKEND("exp_nan"),          BACKEND("tanh_negative"),
                                BACKEND("accumulator_f16"),  BACKEND("weights_77"),
                                BACKEND("base2_5"),          BACKEND("folded"),
                                BACKEND("block_negative"),   BACKEND("stores_99"),
                                BACKEND("lse_otherwise"),    BACKEND("lse_negative"),
                                BACKEND("convention_empty"), BACKEND("no_plan"),
                                BACKEND("prepare_fails"),    BACKEND("prepare_fails_silently"),
                                BACKEND("out_of_memory"),    BACKEND("unterminated"),
                                BACKEND("workspace_huge"),   BACKEND("crashes_in_create"),
                                BACKEND("crashes_in_run"),   BACKEND("exits_in_run"),
                                BACKEND("writes_nothing")};
#elif defined BREAK_TWICE
static attest_backend list[] = {BACKEND("broken"), BACKEND("broken")};
#elif defined BREAK_NO_NAME
static attest_backend list[] = {BACKEND(NULL)};
#elif defined BREAK_BAD_NAME
static attest_backend list[] = {BACKEND("../x\033[2J")};
#elif defined BREAK_CALLED_REFERENCE
static attest_backend list[] = {BACKEND("reference")};
#elif defined BREAK_CALLED_EIGEN
static attest_backend list[] = {BACKEND("eigen")};
#else
static attest_backend list[] = {BACKEND("broken")};
#endif

#define COUNT (sizeof list / sizeof *list)
static const attest_backend* pointers[COUNT];
static attest_plugin table = ATTEST_PLUGIN_TABLE(pointers, COUNT);

#if defined BREAK_ENTRY_MISSING
#define attest_plugin_entry some_other_entry
ATTEST_PLUGIN_EXPORT const attest_plugin* some_other_entry(uint32_t host_abi);
#endif

const attest_plugin* attest_plugin_entry(uint32_t host_abi) {
  (void)host_abi;
  for (size_t n = 0; n < COUNT; ++n) pointers[n] = &list[n];
#if defined BREAK_ENTRY_NULL
  return NULL;
#elif defined BREAK_ABI_1
  table.abi = 1;
#elif defined BREAK_PLUGIN_SMALL
  table.size = 24;
#elif defined BREAK_CALL_SMALL
  table.call_size = 80;
#elif defined BREAK_NO_BACKEND
  table.backend_count = 0;
#elif defined BREAK_NULL_BACKEND
  pointers[0] = NULL;
#elif defined BREAK_BACKEND_SMALL
  list[0].size = 64;
#elif defined BREAK_CREATE_ALONE
  list[0].destroy = NULL;
#endif
  return &table;
}
