#include "harness/backends/plugin/flat_call.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "reference/call/tensor_place.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

/// Keys of the table of options that attest_call has members for (`seed` is that of dropout); those of one tensor end
/// alike for each.
constexpr std::array<std::string_view, 29> kSupported = {
    "op",     "dtype",   "batch",    "heads", "seq",    "dim",     "scale",  "causal", "align",     "window",
    "prefix", "lengths", "segments", "mask",  "blocks", "softcap", "alibi",  "sinks",  "dropout",   "past",
    "paged",  "decay",   "beta",     "state", "out",    "seed",    "layout", "gap",    "mask.dtype"};
constexpr std::array<std::string_view, 3> kSupportedOfTensors = {".layout", ".strides", ".offset"};

bool is_told(const std::string& key) {
  if (std::find(kSupported.begin(), kSupported.end(), key) != kSupported.end()) return true;
  return std::any_of(kSupportedOfTensors.begin(), kSupportedOfTensors.end(),
                     [&](std::string_view ending) { return key.ends_with(ending); });
}

// What the interface's numbers mean is what these enumerations mean; one that grows must be looked at here.
static_assert(kFloatingTypes.size() == 4 && static_cast<int>(DType::bf16) == ATTEST_BF16);
static_assert(kNames<Op>.size() == 5 && static_cast<int>(Op::gated_delta) == ATTEST_GATED_DELTA);
static_assert(kNames<Align>.size() == 2 && static_cast<int>(Align::bottom_right) == ATTEST_BOTTOM_RIGHT);
static_assert(kNames<Layout>.size() == 6 && static_cast<int>(Layout::thd) == ATTEST_THD);
static_assert(kNames<Output>.size() == 7);
static_assert(ATTEST_OUT_PRESENT == 1 << static_cast<int>(Output::present));
static_assert(ATTEST_UNBOUNDED == Call::kUnbounded);

std::uint64_t when(bool used, std::uint64_t bit) { return used ? bit : 0; }

std::uint64_t feature_of(DType type) { return ATTEST_HAS_F64 << static_cast<int>(type); }
std::uint64_t feature_of(Op op) { return ATTEST_HAS_ATTENTION << static_cast<int>(op); }

std::uint64_t output_features(const Call& call) {
  std::uint64_t bits = 0;
  for (const Output output : call.outputs) {
    if (output != Output::o) bits |= ATTEST_HAS_LSE << (static_cast<int>(output) - static_cast<int>(Output::lse));
  }
  return bits;
}

/// Those whose places an attest_call has always had.
bool is_placed_first(TensorId id) { return has_layout(id) || id == TensorId::mask; }

/// Whether one of these tensors, or of all others, lies otherwise than the call's layout says.
bool is_any_placed(const Call& call, bool first) {
  return std::ranges::any_of(values_of<TensorId>(), [&](TensorId id) {
    return is_placed_first(id) == first && call.tensor(id) != TensorSpec{};
  });
}

bool is_strided(const Call& call) {
  return (call.layout != Layout::bhld && call.layout != Layout::thd) || is_any_placed(call, true);
}

const std::int64_t* data_of(const std::vector<std::int64_t>& list) { return list.empty() ? nullptr : list.data(); }

}  // namespace

std::optional<std::string> unsupported_option(const Call& call) {
  if (!call.past_lengths.empty()) return "past per batch";
  for (const Option* option : set_options(problem_of(call))) {
    if (!is_told(option->key)) return option->key;
  }
  return std::nullopt;
}

std::uint64_t features_of(const Call& c) {
  return feature_of(c.dtype) | feature_of(c.op) | output_features(c) | when(c.batch != 1, ATTEST_HAS_BATCH) |
         when(c.query_heads != 1, ATTEST_HAS_HEADS) | when(c.query_heads != c.key_heads, ATTEST_HAS_GROUPED_HEADS) |
         when(c.query_length != c.key_length, ATTEST_HAS_OTHER_KEY_LENGTH) |
         when(c.key_dim != c.value_dim, ATTEST_HAS_OTHER_VALUE_DIM) |
         when(c.batch * c.query_heads * c.query_length * c.key_length == 0, ATTEST_HAS_EMPTY) |
         when(c.scale.has_value(), ATTEST_HAS_SCALE) | when(c.causal, ATTEST_HAS_CAUSAL) |
         when(c.align == Align::bottom_right, ATTEST_HAS_BOTTOM_RIGHT) |
         when(c.window_left != Call::kUnbounded || c.window_right != Call::kUnbounded, ATTEST_HAS_WINDOW) |
         when(c.prefix != 0, ATTEST_HAS_PREFIX) | when(c.lengths.has_value(), ATTEST_HAS_LENGTHS) |
         when(c.lengths && !c.lengths->query.empty(), ATTEST_HAS_QUERY_LENGTHS) |
         when(c.segments.has_value(), ATTEST_HAS_SEGMENTS) |
         when(c.mask && !c.mask->additive, ATTEST_HAS_BOOLEAN_MASK) |
         when(c.mask && c.mask->additive, ATTEST_HAS_ADDITIVE_MASK) |
         when(c.mask_type.has_value(), ATTEST_HAS_MASK_TYPE) | when(c.blocks.has_value(), ATTEST_HAS_BLOCKS) |
         when(c.softcap.has_value(), ATTEST_HAS_SOFTCAP) | when(c.alibi || !c.alibi_slopes.empty(), ATTEST_HAS_ALIBI) |
         when(c.sinks || !c.sink_values.empty(), ATTEST_HAS_SINKS) | when(c.dropout != 0, ATTEST_HAS_DROPOUT) |
         when(c.past != 0, ATTEST_HAS_PAST) | when(c.page_size.has_value(), ATTEST_HAS_PAGES) |
         when(c.decay_per_head, ATTEST_HAS_DECAY_PER_HEAD) | when(c.beta_shared, ATTEST_HAS_BETA_SHARED) |
         when(c.initial_state, ATTEST_HAS_STATE) | when(is_strided(c), ATTEST_HAS_STRIDES) |
         when(c.packed_sequences(), ATTEST_HAS_PACKED) | when(c.prefix_causal, ATTEST_HAS_CAUSAL_PREFIX) |
         when(c.slopes_per_batch(), ATTEST_HAS_SLOPES_PER_BATCH) | when(c.gap > 0, ATTEST_HAS_GAP) |
         when(is_any_placed(c, false), ATTEST_HAS_PLACED_OTHERS) |
         when(unsupported_option(c).has_value(), ATTEST_HAS_OTHER);
}

FlatCall::FlatCall(const Call& call, std::uint64_t call_size)
    : call_(call), line_(print_case(problem_of(call))), flat_(call_size) {
  const Call& c = call_;
  attest_call& f = *flat_.get();
  f.features = features_of(c);
  f.line = line_.c_str();
  f.op = static_cast<std::int32_t>(c.op);
  f.dtype = static_cast<std::int32_t>(c.dtype);
  f.batch = c.batch;
  f.query_heads = c.query_heads;
  f.key_heads = c.key_heads;
  f.query_length = c.query_length;
  f.key_length = c.key_length;
  f.key_dim = c.key_dim;
  f.value_dim = c.value_dim;
  f.scale = c.scale_value();
  f.causal = c.causal;
  f.align = static_cast<std::int32_t>(c.align);
  f.window_left = c.window_left;
  f.window_right = c.window_right;
  f.prefix = c.prefix;
  f.prefix_causal = c.prefix_causal;
  f.gap = c.gap;
  if (c.lengths) {
    f.query_lengths = data_of(c.lengths->query);
    f.key_lengths = data_of(c.lengths->key);
  }
  if (c.segments) {
    f.segment_count = static_cast<std::int64_t>(c.segments->key.size());
    f.query_segments = data_of(c.segments->query);
    f.key_segments = data_of(c.segments->key);
  }
  if (c.mask) {
    f.mask_kind = c.mask->additive ? ATTEST_ADDITIVE_MASK : ATTEST_BOOLEAN_MASK;
    f.mask_dtype = static_cast<std::int32_t>(c.mask_dtype());
    std::copy(c.mask->kept.begin(), c.mask->kept.end(), f.mask_axes);
  }
  if (c.blocks) {
    f.block_rows = c.blocks->rows;
    f.block_columns = c.blocks->columns;
  }
  f.softcap = c.softcap.value_or(0);
  f.alibi = c.alibi;
  f.sinks = c.sinks;
  f.given_slope_count = static_cast<std::int64_t>(c.alibi_slopes.size());
  f.given_slopes = c.alibi_slopes.empty() ? nullptr : c.alibi_slopes.data();
  f.given_sink_count = static_cast<std::int64_t>(c.sink_values.size());
  f.given_sinks = c.sink_values.empty() ? nullptr : c.sink_values.data();
  f.dropout = c.dropout;
  f.dropout_seed = c.dropout_seed;
  f.past = c.past;
  f.page_size = c.page_size.value_or(0);
  f.decay_per_head = c.decay_per_head;
  f.beta_shared = c.beta_shared;
  f.initial_state = c.initial_state;
  for (const Output output : c.outputs) f.outputs |= 1u << static_cast<unsigned>(output);
  f.layout = static_cast<std::int32_t>(c.layout);
  attest_placement *placed = f.placements, *other = f.other_placements;
  const attest_placement* end = other + ATTEST_OTHER_TENSORS;
  for (const TensorId id : values_of<TensorId>()) {
    if (!is_placed_first(id) && other == end) break;  // a tensor that this interface can't tell of
    const TensorSpec& from = c.tensor(id);
    attest_placement& to = is_placed_first(id) ? *placed++ : *other++;
    to.layout = from.layout ? static_cast<std::int32_t>(*from.layout) : -1;
    to.has_strides = from.strides.has_value();
    if (from.strides) std::copy(from.strides->begin(), from.strides->end(), to.strides);
    to.offset = from.offset;
  }
}

}  // namespace attest
