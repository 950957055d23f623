// The plug-in interface for C++20: a class like those in attest's tree becomes a plug-in by one line at its end.
//
//   class Mine : public attest::Backend { ... };          // backends/README.md; takes a const attest::Context&
//   ATTEST_PLUGIN_BACKEND(mine, Mine)
//
// Or a list of several: ATTEST_PLUGIN_BACKENDS(list), a std::span<const attest::BackendEntry> that is asked for once.
// Links attest::reference for its tables of options and tensors. Headers alone otherwise. Exceptions become codes and
// sentences; none crosses the boundary.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "attest_plugin.h"
#include "backends/backend.h"
#include "backends/side_by_side.h"
#include "reference/call/tensor_place.h"
#include "reference/options/options.h"

namespace attest::plugin {

// ---- what the host says, as the tree's own types
// ---------------------------------------------------------------------

inline std::vector<std::int64_t> list_of(const std::int64_t* numbers, std::int64_t count) {
  return numbers ? std::vector<std::int64_t>(numbers, numbers + count) : std::vector<std::int64_t>{};
}

/// The call that the host was given, member by member.
inline Call call_from(const attest_call& from) {
  Problem problem;
  Call& c = problem.call;
  const auto has = [&](const char* feature) { return attest_has(&from, feature) != 0; };
  c.op = static_cast<Op>(from.op);
  c.dtype = static_cast<DType>(from.dtype);
  c.batch = from.batch;
  c.query_heads = from.query_heads;
  c.key_heads = from.key_heads;
  c.query_length = from.query_length;
  c.key_length = from.key_length;
  c.key_dim = from.key_dim;
  c.value_dim = from.value_dim;
  if (has("scale")) c.scale = from.scale;
  c.causal = from.causal != 0;
  c.align = static_cast<Align>(from.align);
  c.window_left = from.window_left;
  c.window_right = from.window_right;
  c.prefix = from.prefix;
  c.prefix_causal = from.prefix_causal != 0;
  if (has("lengths"))
    c.lengths = LengthSpec{list_of(from.query_lengths, from.batch), list_of(from.key_lengths, from.batch)};
  if (has("segments"))
    c.segments =
        LengthSpec{list_of(from.query_segments, from.segment_count), list_of(from.key_segments, from.segment_count)};
  if (from.mask_kind != ATTEST_NO_MASK) {
    c.mask = MaskSpec{from.mask_kind == ATTEST_ADDITIVE_MASK, {}};
    for (std::size_t axis = 0; axis < 4; ++axis) c.mask->kept[axis] = from.mask_axes[axis] != 0;
  }
  if (has("mask.dtype")) c.tensor(TensorId::mask).dtype = static_cast<DType>(from.mask_dtype);
  if (has("blocks")) c.blocks = BlockSpec{from.block_rows, from.block_columns};
  if (has("softcap")) c.softcap = from.softcap;
  c.alibi = from.alibi != 0;
  c.sinks = from.sinks != 0;
  c.alibi_slopes.assign(from.given_slopes, from.given_slopes + from.given_slope_count);
  c.sink_values.assign(from.given_sinks, from.given_sinks + from.given_sink_count);
  c.dropout = from.dropout;
  c.dropout_seed = from.dropout_seed;
  c.past = from.past;
  c.past_lengths = list_of(from.past_lengths, from.batch);
  if (has("paged")) c.page_size = from.page_size;
  c.decay_per_head = from.decay_per_head != 0;
  c.beta_shared = from.beta_shared != 0;
  if (from.parts > 0) c.parts = from.parts;
  c.base2 = from.base2 != 0;
  c.qk_heads = from.qk_heads;
  c.dynamic = from.dynamic != 0;
  c.append = from.append != 0;
  c.latent = from.latent != 0;
  c.latent_apart = from.latent_apart != 0;
  if (from.select_count > 0) c.select = SelectSpec{from.select_count, from.select_block, from.select_shared != 0};
  c.scales = static_cast<Scales>(from.scales);
  c.unscaled_cap = from.unscaled_cap != 0;
  c.rope = static_cast<Rope>(from.rope);
  c.rope_dims = from.rope_dims;
  c.rope_positions = from.rope_positions;
  c.rotated_cache = from.rotated_cache != 0;
  if (has("norm")) c.norm = from.norm_eps;
  c.norm_after_rope = from.norm_after_rope != 0;
  if (has("l2norm")) c.l2norm = from.l2norm_eps;
  const auto scale = [](std::int32_t share, std::int64_t block) -> std::optional<ScaleSpec> {
    if (share == 0) return std::nullopt;
    return ScaleSpec{static_cast<ScaleShare>(share - 1), block};
  };
  c.q_scale = scale(from.q_scale, from.q_scale_block);
  c.k_scale = scale(from.k_scale, from.k_scale_block);
  c.v_scale = scale(from.v_scale, from.v_scale_block);
  for (const Option& option : options()) {
    if (option.kind == OptionKind::tensor && has(option.key.c_str())) option.parse(problem, {});
  }
  c.pass = static_cast<Pass>(from.pass);
  c.dlse = from.dlse != 0;
  c.outputs.clear();
  for (const Output output : values_of<Output>()) {
    if (from.outputs >> static_cast<unsigned>(output) & 1u) c.outputs.push_back(output);
  }
  c.layout = static_cast<Layout>(from.layout);
  c.gap = from.gap;
  for (std::uint64_t n = 0; n < from.placement_count; ++n) {
    const attest_placement& place = from.placements[n];
    const TensorRow* row = find_row(place.role);
    if (!row) continue;
    TensorSpec& spec = c.tensor(row->id);
    if (place.layout >= 0) spec.layout = static_cast<Layout>(place.layout);
    if (place.has_strides) std::copy_n(place.strides, 4, spec.strides.emplace().begin());
    spec.offset = place.offset;
    if (place.dtype >= 0) spec.dtype = static_cast<DType>(place.dtype);
  }
  return c;
}

inline DType type_of(const attest_data_type& type) {
  if (type.code == ATTEST_CODE_UINT) return DType::boolean;
  for (const Format& format : kFormats) {
    if (static_cast<std::uint8_t>(format.dlpack) == type.code && format.bits == type.bits) return format.type;
  }
  return DType::f32;
}

/// Views by name, of inputs or outputs; those of packed sequences count batches and rows as the call does.
template <class Views>
Views views_of(const attest_tensors& from, const Call& call) {
  Views to;
  for (std::uint64_t n = 0; n < from.count; ++n) {
    const attest_tensor& tensor = *from.list[n].tensor;
    const TensorRow* row = find_row(from.list[n].role);
    if (!row) continue;
    typename Views::View view{};
    if (tensor.data) view.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
    view.dtype = type_of(tensor.dtype);
    std::copy_n(tensor.shape, 4, view.shape.begin());
    std::copy_n(tensor.strides, 4, view.strides.begin());
    if (is_packed(call, row->id)) {
      view.starts = row->axes[2] == Axis::queries ? from.query_starts : from.key_starts;
      view.shape[0] = call.batch;
      view.shape[2] = extent_of(call, row->axes[2]);
    }
    to.set(row->id, view);
  }
  return to;
}

// ---- functions of the interface around a Backend and its plans
// -------------------------------------------------------

/// Runs a step, which may give a code of its own; what it throws becomes a code and a sentence.
template <class Step>
int guarded(attest_text* message, const Step& step) noexcept {
  try {
    if constexpr (std::is_same_v<decltype(step()), int>) return step();
    step();
    return ATTEST_OK;
  } catch (const std::bad_alloc&) {
    return attest_say(message, ATTEST_OUT_OF_MEMORY, "out of memory");
  } catch (const BackendUnavailable& error) {
    return attest_say(message, ATTEST_UNAVAILABLE, "%s", error.what());
  } catch (const std::exception& error) {
    return attest_say(message, ATTEST_FAILED, "%s", error.what());
  } catch (...) {
    return attest_say(message, ATTEST_FAILED, "something that is no std::exception");
  }
}

/// A backend with the strings that it lent to the host.
struct Instance {
  std::unique_ptr<Backend> backend;
  Identity identity;
  Conventions conventions;
  Arithmetic stated{};  ///< of the call that arithmetic() was asked about last
};

struct Planned {
  Call call;
  std::unique_ptr<Plan> plan;
};

inline Instance& instance_of(void* pointer) { return *static_cast<Instance*>(pointer); }
inline Planned& planned(void* pointer) { return *static_cast<Planned*>(pointer); }

inline int create(const attest_backend* self, const attest_context* context, void** made, attest_text* message) {
  return guarded(message, [&] {
    const auto& entry = *static_cast<const BackendEntry*>(self->user);
    if (!entry.make) throw BackendUnavailable(std::string(entry.unavailable));
    auto instance = std::make_unique<Instance>();
    instance->backend = entry.make({context->threads, context->device});
    instance->identity = instance->backend->identity();
    instance->conventions = instance->backend->conventions();
    *made = instance.release();
  });
}

inline void destroy(void* instance) { delete static_cast<Instance*>(instance); }

inline int identity(void* instance, attest_identity* to, attest_text* message) {
  return guarded(message, [&] {
    const Instance& own = instance_of(instance);
    to->contract = own.backend->contract();
    to->side_by_side = runs_side_by_side(*own.backend);
    to->library = own.identity.library.c_str();
    to->device = own.identity.device.c_str();
  });
}

inline int refuse(void* instance, const attest_call* call, attest_text* reason) {
  return guarded(reason, [&] {
    const auto refusal = instance_of(instance).backend->refuse(call_from(*call));
    return refusal ? attest_say(reason, ATTEST_REFUSED, "%s", refusal->reason.c_str()) : ATTEST_OK;
  });
}

inline attest_sum sum_from(const Sum& sum) {
  return {sum.promote, static_cast<std::int32_t>(sum.format), sum.width, sum.bits, sum.directed};
}

inline attest_operand_rounding rounding_from(const OperandRounding& own) {
  return {own.step,         own.rows,     own.columns,      own.slack,
          own.power_of_two, own.directed, own.mean_removed, static_cast<std::int32_t>(own.mean_format)};
}

inline void put(const Arithmetic& a, attest_arithmetic* to) {
  to->accumulator = static_cast<std::int32_t>(a.accumulator);
  to->stored_weights = static_cast<std::int32_t>(a.stored_weights);
  to->exp_ulps = a.exp_ulps;
  to->log_ulps = a.log_ulps;
  to->tanh_ulps = a.tanh_ulps;
  to->base2 = a.base2;
  to->scale = static_cast<std::int32_t>(a.scale);
  to->division = static_cast<std::int32_t>(a.division);
  to->normalised_before_storage = a.normalised_before_storage;
  to->key_block = a.key_block;
  to->lazy_threshold = a.lazy_threshold;
  to->stored_scores = static_cast<std::int32_t>(a.stored_scores);
  to->score_stores = a.score_stores;
  to->sum_of_stored = a.sum_of_stored;
  to->flush_to_zero = a.flush_to_zero;
  to->state_chunk = a.state_chunk;
  to->parts = a.parts;
  to->stored_parts = static_cast<std::int32_t>(a.stored_parts);
  to->fused_log2e = a.fused_log2e;
  to->no_maximum = a.no_maximum;
  to->weights_from_lse = a.weights_from_lse;
  to->kept_weights = a.kept_weights;
  to->delta_from_weights = a.delta_from_weights;
  to->stored_score_gradients = static_cast<std::int32_t>(a.stored_score_gradients);
  to->stored_head_gradients = static_cast<std::int32_t>(a.stored_head_gradients);
  to->varying_order = a.varying_order;
  to->query_operand = static_cast<std::int32_t>(a.query_operand);
  to->key_operand = static_cast<std::int32_t>(a.key_operand);
  to->value_operand = static_cast<std::int32_t>(a.value_operand);
  to->weight_operand = static_cast<std::int32_t>(a.weight_operand);
  to->score_sum = sum_from(a.score_sum);
  to->value_sum = sum_from(a.value_sum);
  to->weight_sum = sum_from(a.weight_sum);
  to->score_roundings = a.score_roundings;
  to->output_roundings = a.output_roundings;
  to->weight_factor = a.weight_factor;
  to->exp_absolute = a.exp_absolute;
  to->rescale_ulps = a.rescale_ulps;
  to->exp_argument = static_cast<std::int32_t>(a.exp_argument);
  to->query_rounding = rounding_from(a.query_rounding);
  to->key_rounding = rounding_from(a.key_rounding);
  to->value_rounding = rounding_from(a.value_rounding);
  to->weight_rounding = rounding_from(a.weight_rounding);
}

inline int arithmetic(void* instance, const attest_call* call, attest_arithmetic* to, attest_text* message) {
  return guarded(message, [&] {
    Instance& own = instance_of(instance);
    own.stated = own.backend->arithmetic(call_from(*call));
    put(own.stated, to);
  });
}

inline int arithmetic_of(void* instance, const attest_call*, const char* result, attest_arithmetic* to,
                         attest_text* message) {
  return guarded(message, [&] {
    const TensorRow* row = find_row(result);
    if (row) put(instance_of(instance).stated.of(row->id), to);
  });
}

inline int conventions(void* instance, attest_conventions* to, attest_text* message) {
  return guarded(message, [&] {
    const Conventions& c = instance_of(instance).conventions;
    to->align = c.align.c_str();
    to->window = c.window.c_str();
    to->mask_true = c.mask_true.c_str();
    to->empty_row = c.empty_row.c_str();
    to->hidden_nan = c.hidden_nan.c_str();
    to->lse_base = c.lse_base.c_str();
    to->lse_of_empty_row = c.lse_of_empty_row.c_str();
    to->softcap = c.softcap.c_str();
    to->softmax_f64 = c.softmax_f64.c_str();
    to->accumulation_f32 = c.accumulation_f32.c_str();
    to->same_bits = c.same_bits.c_str();
  });
}

inline int prepare(void* instance, const attest_call* call, void** made, attest_text* message) {
  return guarded(message, [&] {
    auto one = std::make_unique<Planned>();
    one->call = call_from(*call);
    one->plan = instance_of(instance).backend->prepare(one->call);
    if (!one->plan) throw BackendError("prepare returned no plan");
    *made = one.release();
  });
}

inline void drop(void* plan) { delete static_cast<Planned*>(plan); }

inline int upload(void* plan, const attest_tensors* inputs, attest_text* message) {
  return guarded(message, [&] { planned(plan).plan->upload(views_of<Inputs>(*inputs, planned(plan).call)); });
}

inline int run(void* plan, attest_text* message) {
  return guarded(message, [&] { planned(plan).plan->run(); });
}

inline int download(void* plan, const attest_tensors* outputs, attest_text* message) {
  return guarded(message, [&] { planned(plan).plan->download(views_of<Outputs>(*outputs, planned(plan).call)); });
}

inline int workspace(void* plan, std::uint64_t* bytes, attest_text* message) {
  return guarded(message, [&] { *bytes = planned(plan).plan->workspace_bytes(); });
}

inline int device_time(void* plan, std::int64_t* nanoseconds, attest_text* message) {
  return guarded(message, [&] {
    if (const auto time = planned(plan).plan->device_time()) *nanoseconds = time->count();
  });
}

/// The table of a list of backends. One for the whole library; lives as long as the process.
class Table {
 public:
  explicit Table(std::span<const BackendEntry> list) : entries_(list.begin(), list.end()) {
    for (const BackendEntry& entry : entries_) names_.emplace_back(entry.name);
    for (std::size_t n = 0; n < entries_.size(); ++n) {
      backends_.push_back({sizeof(attest_backend), names_[n].c_str(), &entries_[n], create, destroy, identity, refuse,
                           arithmetic, conventions, prepare, drop, upload, run, download, workspace, device_time,
                           arithmetic_of});
    }
    for (const attest_backend& backend : backends_) pointers_.push_back(&backend);
    table_ = ATTEST_PLUGIN_TABLE(pointers_.data(), static_cast<std::uint32_t>(pointers_.size()));
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  const attest_plugin* get() const { return &table_; }

 private:
  std::vector<BackendEntry> entries_;
  std::vector<std::string> names_;
  std::vector<attest_backend> backends_;
  std::vector<const attest_backend*> pointers_;
  attest_plugin table_{};
};

/// Never throws: without memory for its table a library has none.
template <class List>
const attest_plugin* table_for(std::uint32_t host_abi, const List& list) noexcept {
  if (host_abi != ATTEST_PLUGIN_ABI) return nullptr;
  try {
    static const Table* const table = new Table(list());
    return table->get();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace attest::plugin

/// The library's backends are those of a std::span<const attest::BackendEntry>. Stands once in a library.
#define ATTEST_PLUGIN_BACKENDS(list)                                                                            \
  extern "C" ATTEST_PLUGIN_EXPORT const attest_plugin* attest_plugin_entry(std::uint32_t host_abi) {            \
    return attest::plugin::table_for(host_abi, []() -> std::span<const attest::BackendEntry> { return list; }); \
  }

/// The library has one backend, `name`, of this class, which is made from a const attest::Context&.
#define ATTEST_PLUGIN_BACKEND(name, Class)                                      \
  static const attest::BackendEntry attest_plugin_rows[] = {                    \
      {#name,                                                                   \
       [](const attest::Context& context) -> std::unique_ptr<attest::Backend> { \
         return std::make_unique<Class>(context);                               \
       },                                                                       \
       ""}};                                                                    \
  ATTEST_PLUGIN_BACKENDS(attest_plugin_rows)
