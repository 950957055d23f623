#include "harness/backends/plugin/plugin_backend.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <new>

#include "harness/backends/plugin/arithmetic_rules.h"
#include "harness/backends/plugin/flat_call.h"
#include "harness/backends/plugin/flat_tensors.h"
#include "harness/backends/plugin/sized.h"
#include "harness/base/missing.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "reference/options/options.h"

namespace attest {
namespace {

constexpr std::size_t kMaxSentence = 1024, kMaxString = 200;

/// A rule that an answer breaks.
std::string broken(const std::string& what) { return "breaks the plug-in interface: " + what; }

/// Where a plug-in writes its sentences. Made for each step: it must cost next to nothing.
class Message {
 public:
  Message() { data_[0] = '\0'; }
  attest_text* get() { return &text_; }
  /// As a line for people.
  std::string sentence() {
    data_.back() = '\0';
    return printable_line(std::string(data_.data(), strnlen(data_.data(), data_.size())));
  }

 private:
  std::array<char, kMaxSentence> data_;
  attest_text text_{sizeof(attest_text), data_.data(), kMaxSentence};
};

/// What a code other than ATTEST_OK means in any step.
[[noreturn]] void fail(const char* step, int code, Message& message) {
  if (code == ATTEST_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code != ATTEST_FAILED)
    throw BackendError(broken(fmt::format("{} returned {}, which is no code for it", step, code)));
  const std::string sentence = message.sentence();
  if (names_what_is_missing(sentence))
    throw UnusableBackend("what the plug-in needs is not on this machine: " + sentence +
                          "; install it, or leave it out");
  throw BackendError(sentence.empty() ? std::string(step) + " failed without a sentence" : sentence);
}

void expect_ok(const char* step, int code, Message& message) {
  if (code != ATTEST_OK) fail(step, code, message);
}

/// A string that a backend states of itself.
std::string stated(const char* name, const char* text) {
  if (!text) throw BackendError(broken(fmt::format("{} is NULL", name)));
  const std::string value(text, strnlen(text, kMaxString + 1));
  if (value.empty()) throw BackendError(broken(fmt::format("{} is empty", name)));
  if (value.size() > kMaxString)
    throw BackendError(broken(fmt::format("{} is longer than {} bytes", name, kMaxString)));
  return printable_line(value);
}

class PluginPlan : public Plan {
 public:
  PluginPlan(const attest_plugin& sizes, const attest_backend& functions, std::unique_ptr<const FlatCall> call,
             void* plan)
      : functions_(functions),
        call_(std::move(call)),
        plan_(plan),
        inputs_(sizes.tensors_size),
        outputs_(sizes.tensors_size) {}
  ~PluginPlan() override { functions_.drop(plan_); }
  PluginPlan(const PluginPlan&) = delete;
  PluginPlan& operator=(const PluginPlan&) = delete;

  void upload(const Inputs& inputs) override {
    Message message;
    expect_ok("upload", functions_.upload(plan_, inputs_.set(inputs), message.get()), message);
  }

  void run() override {
    Message message;
    expect_ok("run", functions_.run(plan_, message.get()), message);
  }

  void download(const Outputs& outputs) override {
    Message message;
    expect_ok("download", functions_.download(plan_, outputs_.set(outputs), message.get()), message);
  }

  std::size_t workspace_bytes() const override {
    if (!functions_.workspace) return 0;
    Message message;
    std::uint64_t bytes = 0;
    expect_ok("workspace", functions_.workspace(plan_, &bytes, message.get()), message);
    if (bytes > std::uint64_t{1} << 50)
      throw BackendError(broken(fmt::format("workspace states {} bytes: more than any machine has", bytes)));
    return static_cast<std::size_t>(bytes);
  }

  std::optional<std::chrono::nanoseconds> device_time() const override {
    if (!functions_.device_time) return std::nullopt;
    Message message;
    std::int64_t nanoseconds = -1;
    expect_ok("device_time", functions_.device_time(plan_, &nanoseconds, message.get()), message);
    if (nanoseconds < 0) return std::nullopt;
    return std::chrono::nanoseconds(nanoseconds);
  }

 private:
  const attest_backend& functions_;
  std::unique_ptr<const FlatCall> call_;  ///< the plan may refer to it
  void* plan_;
  FlatTensors inputs_, outputs_;
};

/// A number of attest_arithmetic as the enumeration that it stands for.
template <class E>
E enumerator(const char* member, std::int32_t value) {
  // Arithmetic is done in floating types, which come first.
  const auto count = static_cast<std::int32_t>(std::is_same_v<E, DType> ? kWideTypes.size() : kNames<E>.size());
  if (value < 0 || value >= count)
    throw BackendError(broken(fmt::format("arithmetic: {} is {}, and not from 0 to {}", member, value, count - 1)));
  return static_cast<E>(value);
}

bool flag(const char* member, std::int32_t value) {
  if (value != 0 && value != 1)
    throw BackendError(broken(fmt::format("arithmetic: {} is {}, and not 0 or 1", member, value)));
  return value == 1;
}

Sum sum_from(const std::string& member, const attest_sum& from) {
  return {enumerator<SumFormat>((member + ".format").c_str(), from.format), from.promote, from.width, from.bits,
          flag((member + ".directed").c_str(), from.directed)};
}

OperandRounding rounding_from(const std::string& member, const attest_operand_rounding& from) {
  return {from.step,
          from.rows,
          from.columns,
          from.slack,
          flag((member + ".power_of_two").c_str(), from.power_of_two),
          flag((member + ".directed").c_str(), from.directed),
          flag((member + ".mean_removed").c_str(), from.mean_removed),
          enumerator<OperandFormat>((member + ".mean_format").c_str(), from.mean_format)};
}

void set_defaults(attest_arithmetic& a, const Call& call) {
  const Arithmetic plain;
  a.accumulator = a.stored_weights = a.stored_scores = a.stored_parts =
      static_cast<std::int32_t>(accumulator_of(call.dtype));
  a.stored_score_gradients = static_cast<std::int32_t>(plain.stored_score_gradients);
  a.stored_head_gradients = static_cast<std::int32_t>(plain.stored_head_gradients);
  a.exp_ulps = plain.exp_ulps;
  a.log_ulps = plain.log_ulps;
  a.tanh_ulps = plain.tanh_ulps;
  a.weight_factor = plain.weight_factor;
  a.rescale_ulps = plain.rescale_ulps;
  a.score_sum.width = a.value_sum.width = a.weight_sum.width = 1;
  for (attest_operand_rounding* own : {&a.query_rounding, &a.key_rounding, &a.value_rounding, &a.weight_rounding}) {
    own->step = OperandRounding().step;
    own->slack = OperandRounding().slack;
  }
}

Arithmetic checked(const attest_arithmetic& from) {
  Arithmetic a;
  a.accumulator = enumerator<DType>("accumulator", from.accumulator);
  a.stored_weights = enumerator<DType>("stored_weights", from.stored_weights);
  a.exp_ulps = from.exp_ulps;
  a.log_ulps = from.log_ulps;
  a.tanh_ulps = from.tanh_ulps;
  a.base2 = flag("base2", from.base2);
  a.scale = enumerator<ScalePlacement>("scale", from.scale);
  a.division = enumerator<Division>("division", from.division);
  a.normalised_before_storage = flag("normalised_before_storage", from.normalised_before_storage);
  a.key_block = from.key_block;
  a.lazy_threshold = from.lazy_threshold;
  a.stored_scores = enumerator<DType>("stored_scores", from.stored_scores);
  a.score_stores = from.score_stores;
  a.sum_of_stored = flag("sum_of_stored", from.sum_of_stored);
  a.flush_to_zero = flag("flush_to_zero", from.flush_to_zero);
  a.state_chunk = from.state_chunk;
  a.parts = from.parts;
  a.stored_parts = enumerator<DType>("stored_parts", from.stored_parts);
  a.fused_log2e = flag("fused_log2e", from.fused_log2e);
  a.no_maximum = flag("no_maximum", from.no_maximum);
  a.weights_from_lse = flag("weights_from_lse", from.weights_from_lse);
  a.kept_weights = flag("kept_weights", from.kept_weights);
  a.delta_from_weights = flag("delta_from_weights", from.delta_from_weights);
  a.stored_score_gradients = enumerator<DType>("stored_score_gradients", from.stored_score_gradients);
  a.stored_head_gradients = enumerator<DType>("stored_head_gradients", from.stored_head_gradients);
  a.varying_order = flag("varying_order", from.varying_order);
  a.query_operand = enumerator<OperandFormat>("query_operand", from.query_operand);
  a.key_operand = enumerator<OperandFormat>("key_operand", from.key_operand);
  a.value_operand = enumerator<OperandFormat>("value_operand", from.value_operand);
  a.weight_operand = enumerator<OperandFormat>("weight_operand", from.weight_operand);
  a.score_sum = sum_from("score_sum", from.score_sum);
  a.value_sum = sum_from("value_sum", from.value_sum);
  a.weight_sum = sum_from("weight_sum", from.weight_sum);
  a.score_roundings = from.score_roundings;
  a.output_roundings = from.output_roundings;
  a.weight_factor = from.weight_factor;
  a.exp_absolute = from.exp_absolute;
  a.exp_argument = enumerator<OperandFormat>("exp_argument", from.exp_argument);
  a.rescale_ulps = from.rescale_ulps;
  a.query_rounding = rounding_from("query_rounding", from.query_rounding);
  a.key_rounding = rounding_from("key_rounding", from.key_rounding);
  a.value_rounding = rounding_from("value_rounding", from.value_rounding);
  a.weight_rounding = rounding_from("weight_rounding", from.weight_rounding);
  if (const auto fault = fault_of(a)) throw BackendError(broken("arithmetic: " + *fault));
  return a;
}

}  // namespace

PluginBackend::PluginBackend(std::shared_ptr<const PluginTable> plugin, std::size_t index, const Context& context)
    : plugin_(std::move(plugin)), functions_(plugin_->backends.at(index)) {
  if (functions_.create) {
    Sized<attest_context> asked(sizes().context_size);
    asked->threads = context.threads;
    asked->device = context.device.c_str();
    Message message;
    const int code = functions_.create(plugin_->originals[index], asked.get(), &instance_, message.get());
    if (code == ATTEST_UNAVAILABLE) {
      const std::string why = message.sentence();
      throw BackendUnavailable(why.empty() ? "its create() says so, without a reason" : why);
    }
    if (code != ATTEST_OK) {
      try {
        fail("create", code, message);
      } catch (const BackendError& error) {
        throw BackendUnavailable(error.what());
      }
    }
  }
  try {
    read_identity();
    read_conventions();
  } catch (const BackendError& error) {
    if (functions_.destroy) functions_.destroy(instance_);
    throw BackendUnavailable(error.what());
  }
}

PluginBackend::~PluginBackend() {
  if (functions_.destroy) functions_.destroy(instance_);
}

void PluginBackend::read_identity() {
  Sized<attest_identity> answer(sizes().identity_size);
  Message message;
  expect_ok("identity", functions_.identity(instance_, answer.get(), message.get()), message);
  identity_ = {functions_.name, stated("identity: library", answer->library),
               stated("identity: device", answer->device), plugin_->path};
  if (answer->contract < 1) {
    throw BackendError(
        broken(fmt::format("identity: contract is {}: state the version that the backend was written "
                           "for, such as {}",
                           answer->contract, kContractVersion)));
  }
  contract_ = answer->contract;
  if (answer->side_by_side != 0 && answer->side_by_side != 1)
    throw BackendError(broken(fmt::format("identity: side_by_side is {}, and not 0 or 1", answer->side_by_side)));
  side_by_side_ = answer->side_by_side == 1;
}

void PluginBackend::read_conventions() {
  if (!functions_.conventions) return;
  struct Member {
    std::string Conventions::*to;
    const char* attest_conventions::*from;
    const char* name;
  };
  using A = attest_conventions;
  using C = Conventions;
  constexpr Member members[] = {{&C::align, &A::align, "align"},
                                {&C::window, &A::window, "window"},
                                {&C::mask_true, &A::mask_true, "mask_true"},
                                {&C::empty_row, &A::empty_row, "empty_row"},
                                {&C::hidden_nan, &A::hidden_nan, "hidden_nan"},
                                {&C::lse_base, &A::lse_base, "lse_base"},
                                {&C::lse_of_empty_row, &A::lse_of_empty_row, "lse_of_empty_row"},
                                {&C::softcap, &A::softcap, "softcap"},
                                {&C::softmax_f64, &A::softmax_f64, "softmax_f64"},
                                {&C::accumulation_f32, &A::accumulation_f32, "accumulation_f32"},
                                {&C::same_bits, &A::same_bits, "same_bits"}};
  static_assert(std::size(members) == kConventionFields.size(), "a convention that the interface doesn't carry");
  Sized<attest_conventions> answer(sizes().conventions_size);
  Message message;
  expect_ok("conventions", functions_.conventions(instance_, answer.get(), message.get()), message);
  for (const Member& member : members) {
    const char* text = (*answer.get()).*member.from;
    if (text) conventions_.*member.to = stated(member.name, text);
  }
}

std::optional<Refusal> PluginBackend::refuse(const Call& call) const {
  if (const auto option = unsupported_option(call)) {
    return Refusal{
        *option + ": version " + std::to_string(ATTEST_PLUGIN_ABI) + " of the plug-in interface has no member for it",
        RefusalCause::no_plugin_member};
  }
  const FlatCall flat(call, sizes().call_size);
  for (std::uint64_t n = 0; n < flat.get()->feature_count; ++n) {
    const char* word = flat.get()->features[n];
    // An option of its own is held by the version of the contract, in refusal_of().
    if (find_option(word) || attest_lists(sizes().known_features, sizes().known_feature_count, word)) continue;
    return Refusal{std::string(word) + ": younger than the attest_plugin.h that the plug-in was built with",
                   RefusalCause::younger_than_header};
  }
  Message message;
  const int code = functions_.refuse(instance_, flat.get(), message.get());
  if (code == ATTEST_OK) return std::nullopt;
  if (code != ATTEST_REFUSED) fail("refuse", code, message);
  const std::string why = message.sentence();
  if (why.empty()) throw BackendError(broken("refuse gave no sentence"));
  return Refusal{why};
}

Arithmetic PluginBackend::arithmetic(const Call& call) const {
  const FlatCall flat(call, sizes().call_size);
  Sized<attest_arithmetic> answer(sizes().arithmetic_size);
  set_defaults(*answer.get(), call);
  Message message;
  expect_ok("arithmetic", functions_.arithmetic(instance_, flat.get(), answer.get(), message.get()), message);
  Arithmetic stated = checked(*answer.get());
  for (const TensorId result : functions_.arithmetic_of ? outputs_of(call) : std::vector<TensorId>{}) {
    Sized<attest_arithmetic> own = answer;
    expect_ok("arithmetic_of",
              functions_.arithmetic_of(instance_, flat.get(), row_of(result).name.data(), own.get(), message.get()),
              message);
    if (const Arithmetic other = checked(*own.get()); other != stated.of(result))
      stated.of_results.push_back({result, other});
  }
  return stated;
}

std::unique_ptr<Plan> PluginBackend::prepare(const Call& call) {
  auto flat = std::make_unique<const FlatCall>(call, sizes().call_size);
  void* plan = nullptr;
  Message message;
  expect_ok("prepare", functions_.prepare(instance_, flat->get(), &plan, message.get()), message);
  if (!plan) throw BackendError(broken("prepare returned ATTEST_OK and no plan"));
  return std::make_unique<PluginPlan>(sizes(), functions_, std::move(flat), plan);
}

}  // namespace attest
