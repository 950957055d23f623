#include "tests/faulty/stateful.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "reference/call/call.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"
#include "tests/faulty/around.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace attest::faulty {
namespace {

enum class Kept {
  keys_by_address,
  first_mask,
  first_mask_of_large,
  mask_for_causal,
  first_page_table,
  first_blocks,
  first_sinks,
  first_slopes,
  first_lengths,
  first_seed,
  last_plan,
  sums_in_output,
  sums_in_workspace,
  zeros_of_new_memory,
  state_of_first_run,
  state_of_first_run_of_large,
  state_of_first_download,
  shared_result,
  thread_of_prepare,
  threads_of_cores,
  count
};

struct Description {
  std::string_view name, text;
};

constexpr std::array<Description, static_cast<std::size_t>(Kept::count)> kDescriptions = {{
    {"packs_once_per_address", "keys are packed once for each address"},
    {"keeps_first_mask", "the mask of the first upload is used for ever"},
    {"keeps_first_mask_of_large", "likewise, but only above 20,000 multiply-adds"},
    {"keeps_mask_for_causal", "a causal call without a mask has the mask of an earlier one of its sizes (119)"},
    {"keeps_first_page_table", "the page table of the first upload is used for ever"},
    {"keeps_first_blocks", "the block mask of the first upload is used for ever"},
    {"keeps_first_sinks", "the sinks of the first upload are used for ever"},
    {"keeps_first_slopes", "the slopes of the first plan of these sizes are used for all"},
    {"keeps_first_lengths", "the lengths of the first plan of these sizes are used for all"},
    {"keeps_first_seed", "the dropout seed of the first plan of these sizes is used for all"},
    {"uses_last_plan", "a global says what the plan made last wants"},
    {"adds_to_output", "results are added to what the output holds"},
    {"adds_to_workspace", "sums start from what the last run left"},
    {"needs_zeroed_memory", "sums start from what new memory holds"},
    {"wrong_the_second_time", "a plan's second run is wrong"},
    {"wrong_the_second_time_large", "likewise, but only above 20,000 multiply-adds"},
    {"scales_at_each_download", "download divides what it hands out, in place"},
    {"shared_result", "all plans share one buffer of results"},
    {"thread_of_prepare", "a table belongs to the thread that made the plan"},
    {"more_threads_than_cores", "more threads than cores are too many"},
}};

constexpr double kLarge = 20'000;

std::vector<std::byte> bytes_at(const void* data, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(data);
  return {first, first + bytes};
}

/// The same for all plans of these sizes, whatever else their calls say.
std::string sizes_of(const Call& call) {
  Call sizes;
  sizes.op = call.op;
  sizes.dtype = call.dtype;
  sizes.batch = call.batch;
  sizes.query_heads = call.query_heads;
  sizes.key_heads = call.key_heads;
  sizes.query_length = call.query_length;
  sizes.key_length = call.key_length;
  sizes.key_dim = call.key_dim;
  sizes.value_dim = call.value_dim;
  return print_call(sizes);
}

template <class Change>
void each_output(const MutableTensor& t, Change change) {
  std::size_t n = 0;
  each_index(t.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    const std::int64_t at = t.offset(b, h, l, d);
    store(t.data, t.dtype, at, change(load(t.data, t.dtype, at), n++));
  });
}

struct KeptMask {
  std::vector<std::byte> bytes;
  ConstTensor view;
};

/// What plans of one backend have in common and shouldn't.
struct Shared {
  std::map<std::string, Call> first_calls;
  std::map<std::string, std::vector<double>> first_slopes;
  std::map<std::string, KeptMask> masks;
  const void *last_made = nullptr, *last_run = nullptr;
};

class StatefulPlan : public PlanAround {
 public:
  StatefulPlan(Kept kept, const Call& call, std::unique_ptr<Plan> plan, Shared& shared, int threads)
      : PlanAround(std::move(plan)), kept_(kept), call_(call), shared_(shared), threads_(threads) {
    shared_.last_made = this;
    if (kept_ == Kept::thread_of_prepare) prepared_here_ = true;
    if (kept_ == Kept::zeros_of_new_memory) workspace_.reset(take_zeros());
  }

  void upload(const Inputs& inputs) override {
    Inputs now = inputs;
    const bool large = dense_multiply_adds(call_) > kLarge;
    if (kept_ == Kept::keys_by_address) {
      ConstTensor& keys = now.change(TensorId::k);
      auto& packed = keys_[keys.data];
      if (packed.empty()) packed = bytes_at(keys.data, span_bytes(keys));
      keys.data = packed.data();
    }
    if (kept_ == Kept::first_mask || (kept_ == Kept::first_mask_of_large && large)) keep_first(now, TensorId::mask);
    if (kept_ == Kept::mask_for_causal) keep_mask(now);
    if (kept_ == Kept::first_page_table) keep_first(now, TensorId::page_table);
    if (kept_ == Kept::first_blocks) keep_first(now, TensorId::blocks);
    if (kept_ == Kept::first_sinks) keep_first(now, TensorId::sinks);
    if (now.slopes() && kept_ == Kept::first_slopes) {
      const auto [known, fresh] = shared_.first_slopes.try_emplace(sizes_of(call_));
      if (fresh) known->second = list_numbers(now.slopes());
      const bool by_batch = static_cast<std::int64_t>(known->second.size()) > call_.query_heads;
      now.set(TensorId::slopes, numbers_of_heads(known->second.data(), call_.batch, call_.query_heads, by_batch));
    }
    inner_->upload(now);
  }

  /// The tensor as it was when the plan saw it first.
  void keep_first(Inputs& now, TensorId id) {
    if (!now.has(id)) return;
    ConstTensor& tensor = now.change(id);
    tensor.data = first(tensor.data, span_bytes(tensor));
  }

  void keep_mask(Inputs& now) {
    KeptMask& kept = shared_.masks[sizes_of(call_)];
    if (now.mask()) {
      kept = {bytes_at(now.mask()->data, span_bytes(*now.mask())), *now.mask()};
    } else if (call_.causal && !kept.bytes.empty()) {
      first_ = kept.bytes;
      now.set(TensorId::mask, kept.view);
      now.change(TensorId::mask).data = first_.data();
    }
  }

  void run() override {
    inner_->run();
    ++runs_;
    downloads_ = 0;
    shared_.last_run = this;
    elsewhere_ = !prepared_here_;
  }

  void download(const Outputs& outputs) override {
    std::vector<double> before;
    each_output(outputs.out(), [&](double x, std::size_t) {
      before.push_back(x);
      return x;
    });
    inner_->download(outputs);
    ++downloads_;
    each_output(outputs.out(), [&](double x, std::size_t n) { return handed_out(x, n, before); });
  }

 private:
  /// The bytes of the first call of this.
  const void* first(const void* data, std::size_t bytes) {
    if (first_.empty()) first_ = bytes_at(data, bytes);
    return first_.data();
  }

  double handed_out(double x, std::size_t n, const std::vector<double>& before) {
    switch (kept_) {
      case Kept::last_plan: return shared_.last_made == this ? x : 2 * x + 1;
      case Kept::sums_in_output: return before[n] + x;
      case Kept::sums_in_workspace: {
        sums_.resize(std::max(sums_.size(), n + 1));
        return sums_[n] = (downloads_ == 1 ? sums_[n] : 0) + x;
      }
      case Kept::zeros_of_new_memory: return x + static_cast<double>(workspace_.get()[kFirstZero + n % 1000]);
      case Kept::state_of_first_run: return runs_ > 1 ? x + 1 : x;
      case Kept::state_of_first_run_of_large: return runs_ > 1 && dense_multiply_adds(call_) > kLarge ? x + 1 : x;
      case Kept::state_of_first_download: return downloads_ > 1 ? x / 2 + 1 : x;
      case Kept::shared_result: return shared_.last_run == this ? x : 2 * x + 1;
      case Kept::thread_of_prepare: return elsewhere_ ? x + 1 : x;
      case Kept::threads_of_cores:
        return threads_ > static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)) ? x + 1 : x;
      default: return x;
    }
  }

  /// So large that glibc takes it from the system, and so as zeros, unless somebody sees to it. What was freed before
  /// goes back first: as much of it could lie together.
  static float* take_zeros() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    return static_cast<float*>(std::malloc(40 << 20));
  }
  /// Not of the first page, which may be part of one that was in use.
  static constexpr std::size_t kFirstZero = 1 << 20;

  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };

  const Kept kept_;
  const Call call_;
  Shared& shared_;
  const int threads_;
  std::map<const void*, std::vector<std::byte>> keys_;
  std::vector<std::byte> first_;
  std::vector<double> sums_;
  std::unique_ptr<float, Free> workspace_;
  int runs_ = 0, downloads_ = 0;
  bool elsewhere_ = false;
  static thread_local bool prepared_here_;
};

thread_local bool StatefulPlan::prepared_here_ = false;

class StatefulBackend : public BackendAround {
 public:
  StatefulBackend(Kept kept, const Context& context)
      : BackendAround({std::string(kDescriptions[static_cast<std::size_t>(kept)].name), "deliberately wrong", "CPU"},
                      make_example()),
        kept_(kept),
        threads_(context.threads) {}
  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<StatefulPlan>(kept_, call, inner_->prepare(remembered(call)), shared_, threads_);
  }

 private:
  /// The call with what the first one of these sizes said.
  Call remembered(Call call) {
    const Call& first = shared_.first_calls.try_emplace(sizes_of(call), call).first->second;
    if (kept_ == Kept::first_seed && first.dropout == call.dropout) call.dropout_seed = first.dropout_seed;
    // Packed and paged keys beyond a length have no storage.
    const bool stored = !call.packed_sequences() && !call.page_size && !first.packed_sequences() && !first.page_size;
    if (kept_ == Kept::first_lengths && stored && call.lengths && first.lengths) call.lengths = first.lengths;
    return call;
  }

  const Kept kept_;
  const int threads_;
  Shared shared_;
};

const std::vector<BackendEntry>& entries() {
  static const auto all = entries_of<StatefulBackend, Kept>(kDescriptions);
  return all;
}

}  // namespace

std::span<const BackendEntry> stateful_backends() { return std::span(entries()).first(entries().size() - 1); }

const BackendEntry& oversubscribed_backend() { return entries().back(); }

std::string_view stateful_description(std::string_view name) {
  const auto found =
      std::find_if(kDescriptions.begin(), kDescriptions.end(), [&](const Description& d) { return d.name == name; });
  return found == kDescriptions.end() ? "" : found->text;
}

}  // namespace attest::faulty
