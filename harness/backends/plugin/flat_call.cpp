#include "harness/backends/plugin/flat_call.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "harness/backends/plugin/feature_words.h"
#include "reference/call/tensor_table.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

/// Keys of the table of options that attest_call has members for (`seed` is that of dropout), or a word; those of one
/// tensor end alike for each, and an option that is a tensor is told by its role.
constexpr std::array<std::string_view, 45> kSupported = {
    "op",    "pass",           "dtype",      "batch",    "heads",        "seq",    "dim",     "scale",   "causal",
    "align", "window",         "prefix",     "lengths",  "segments",     "mask",   "blocks",  "softcap", "alibi",
    "sinks", "dropout",        "past",       "paged",    "decay",        "beta",   "parts",   "base",    "out",
    "seed",  "layout",         "gap",        "qk_heads", "dynamic",      "append", "latent",  "select",  "scales",
    "rope",  "rope.positions", "rope.cache", "norm",     "latent.parts", "l2norm", "q.scale", "k.scale", "v.scale"};
constexpr std::array<std::string_view, 4> kSupportedOfTensors = {".dtype", ".layout", ".strides", ".offset"};

static_assert(ATTEST_UNBOUNDED == Call::kUnbounded);

const std::int64_t* data_of(const std::vector<std::int64_t>& list) { return list.empty() ? nullptr : list.data(); }

}  // namespace

bool has_plugin_member(std::string_view key) {
  if (std::find(kSupported.begin(), kSupported.end(), key) != kSupported.end()) return true;
  return std::any_of(kSupportedOfTensors.begin(), kSupportedOfTensors.end(),
                     [&](std::string_view ending) { return key.ends_with(ending); });
}

std::optional<std::string> unsupported_option(const Call& call) {
  for (const Option* option : set_options(call)) {
    if (option->kind != OptionKind::tensor && !has_plugin_member(option->key)) return option->key;
  }
  return std::nullopt;
}

FlatCall::FlatCall(const Call& call, std::uint64_t call_size)
    : call_(call), line_(print_call(call)), words_(feature_words(call)), flat_(call_size) {
  const Call& c = call_;
  attest_call& f = *flat_.get();
  for (const std::string& word : words_) features_.push_back(word.c_str());
  f.features = features_.data();
  f.feature_count = features_.size();
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
    f.mask_dtype = static_cast<std::int32_t>(type_of(c, TensorId::mask));
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
  f.past_lengths = data_of(c.past_lengths);
  f.page_size = c.page_size.value_or(0);
  f.decay_per_head = c.decay_per_head;
  f.beta_shared = c.beta_shared;
  f.pass = static_cast<std::int32_t>(c.pass);
  f.dlse = c.dlse;
  f.parts = c.has_parts() ? c.parts : 0;
  f.base2 = c.base2;
  f.qk_heads = c.qk_heads;
  f.dynamic = c.dynamic;
  f.append = c.append;
  f.latent = c.latent;
  f.latent_apart = c.latent_apart;
  f.select_shared = c.select && c.select->shared;
  f.select_count = c.select ? c.select->count : 0;
  f.select_block = c.select ? c.select->block : 0;
  f.scales = static_cast<std::int32_t>(c.scales);
  f.unscaled_cap = c.unscaled_cap;
  f.rope = static_cast<std::int32_t>(c.rope);
  f.rope_dims = c.rope_dims;
  f.rope_positions = c.rope_positions;
  f.rotated_cache = c.rotated_cache;
  f.norm_eps = c.norm.value_or(0);
  f.norm_after_rope = c.norm_after_rope;
  f.l2norm_eps = c.l2norm.value_or(0);
  const auto set_scale = [](const std::optional<ScaleSpec>& from, std::int32_t& share, std::int64_t& block) {
    if (!from) return;
    share = static_cast<std::int32_t>(from->share) + 1;
    block = from->block;
  };
  set_scale(c.q_scale, f.q_scale, f.q_scale_block);
  set_scale(c.k_scale, f.k_scale, f.k_scale_block);
  set_scale(c.v_scale, f.v_scale, f.v_scale_block);
  for (const Output output : c.outputs) f.outputs |= 1u << static_cast<unsigned>(output);
  f.layout = static_cast<std::int32_t>(c.layout);
  for (const TensorRow& row : tensor_rows()) {
    const TensorSpec& from = c.tensor(row.id);
    if (from == TensorSpec{}) continue;
    attest_placement& to = placements_.emplace_back();
    to.role = row.name.data();  // a literal, so it ends in a 0
    to.layout = from.layout ? static_cast<std::int32_t>(*from.layout) : -1;
    to.has_strides = from.strides.has_value();
    if (from.strides) std::copy(from.strides->begin(), from.strides->end(), to.strides);
    to.offset = from.offset;
    to.dtype = from.dtype ? static_cast<std::int32_t>(*from.dtype) : -1;
  }
  f.placements = placements_.data();
  f.placement_count = placements_.size();
}

}  // namespace attest
