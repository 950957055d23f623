#include "tests/faulty/cheats/cheats.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cfenv>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "harness/cases/inputs.h"
#include "reference/softmax/attention.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"

namespace attest::faulty {
namespace {

enum class Cheat {
  works_in_prepare,
  works_in_upload,
  hides_work_in_upload,
  works_in_download,
  hides_work_in_download,
  returns_early,
  never_waits,
  caches_by_pointer,
  caches_by_content,
  counts_iterations,
  nothing_the_second_time,
  sloppy_while_timed,
  more_threads,
  calls_the_reference,
  rounds_up,
  flushes_to_zero,
  rounds_up_in_download,
  zeroes_its_values,
  changes_its_input,
  hides_work_in_unannounced_download,
  works_in_unannounced_download,
  works_in_upload_for_an_unknown_device,
  throws_in_device_time,
  writes_beyond_its_output,
  never_rests,
  count
};

struct Description {
  std::string_view name;
  NoSpeed reason;
};

constexpr std::array<Description, static_cast<std::size_t>(Cheat::count)> kDescriptions = {{
    {"works_in_prepare", NoSpeed::earlier_result},
    {"works_in_upload", NoSpeed::result_before_run},
    {"hides_work_in_upload", NoSpeed::above_roof},
    {"works_in_download", NoSpeed::result_before_run},
    {"hides_work_in_download", NoSpeed::first_download_works},
    {"returns_early", NoSpeed::first_download_works},
    {"never_waits", NoSpeed::result_after_run},
    {"caches_by_pointer", NoSpeed::earlier_result},
    {"caches_by_content", NoSpeed::cached},
    {"counts_iterations", NoSpeed::earlier_result},
    {"nothing_the_second_time", NoSpeed::earlier_result},
    {"sloppy_while_timed", NoSpeed::wrong_while_timed},
    {"more_threads", NoSpeed::more_threads},
    {"calls_the_reference", NoSpeed::uses_reference},
    {"rounds_up", NoSpeed::float_mode_changed},
    {"flushes_to_zero", NoSpeed::float_mode_changed},
    {"rounds_up_in_download", NoSpeed::float_mode_changed},
    {"zeroes_its_values", NoSpeed::changes_inputs},
    {"changes_its_input", NoSpeed::changes_inputs},
    {"hides_work_in_unannounced_download", NoSpeed::first_download_works},
    {"works_in_unannounced_download", NoSpeed::download_works},
    {"works_in_upload_for_an_unknown_device", NoSpeed::above_roof},
    {"throws_in_device_time", NoSpeed::threw},
    {"writes_beyond_its_output", NoSpeed::wrong_result},
    {"never_rests", NoSpeed::threads_after_run},
}};

/// All elements of a dense float tensor.
std::span<const float> floats(const ConstTensor& t) {
  return {static_cast<const float*>(t.data), span_bytes(t) / sizeof(float)};
}

/// A dense result of the plan within.
struct Result {
  std::vector<float> o;

  explicit Result(std::size_t elements = 0) : o(elements) {}
  Outputs views(const Call& p) {
    const Index4 shape{p.batch, p.query_heads, p.query_length, p.value_dim};
    const Index4 strides{shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
    Outputs outputs;
    outputs.set(TensorId::out, MutableTensor{o.data(), DType::f32, shape, strides});
    return outputs;
  }
};

class CheatingPlan : public PlanAround {
 public:
  CheatingPlan(const Call& call, Cheat cheat, std::unique_ptr<Plan> inner)
      : PlanAround(std::move(inner)), call_(call), cheat_(cheat), result_(elements()), published_(elements()) {
    if (cheat_ == Cheat::works_in_prepare) {
      // The call has no data; but the data of a case line without fills and seed are known to everyone.
      Problem guess;
      guess.call = call;
      guessed_ = make_inputs(guess);
      compute(guessed_.views());
    }
    if (cheat_ == Cheat::more_threads) {
      for (int n = 0; n < 3; ++n) helpers_.emplace_back([this](std::stop_token stop) { help(stop); });
    }
  }
  ~CheatingPlan() override { wait(); }

  void upload(const Inputs& inputs) override {
    if (cheat_ != Cheat::never_rests) wait();
    announced_ = announced_ && inputs.q().data == inputs_.q().data;  // the same data again: the same walk
    inputs_ = inputs;
    uploaded_ = true;
    if (cheat_ == Cheat::works_in_upload || cheat_ == Cheat::hides_work_in_upload) compute(inputs_);
    if (cheat_ == Cheat::works_in_upload_for_an_unknown_device) {
      for (int n = 0; n < 40; ++n) compute(inputs_);  // in slow loops
    }
  }

  void run() override {
    ++runs_;
    due_ = true;
    uploaded_ = false;
    switch (cheat_) {
      case Cheat::works_in_prepare:
      case Cheat::works_in_upload:
      case Cheat::works_in_download:
      case Cheat::hides_work_in_download: break;
      case Cheat::hides_work_in_upload:
      case Cheat::works_in_upload_for_an_unknown_device: published_ = result_; break;
      case Cheat::throws_in_device_time:
      case Cheat::writes_beyond_its_output: compute(inputs_); break;
      case Cheat::never_rests:
        compute(inputs_);
        if (!later_.joinable()) later_ = std::jthread(spin);
        break;
      case Cheat::returns_early:
      case Cheat::never_waits: later_ = std::jthread([this] { compute(inputs_); }); break;
      case Cheat::caches_by_pointer: answer_from_cache(reinterpret_cast<std::uintptr_t>(inputs_.q().data)); break;
      case Cheat::caches_by_content: answer_from_cache(content()); break;
      case Cheat::counts_iterations:
        if (runs_ <= 3 || runs_ % 7 == 0) compute(inputs_);
        break;
      case Cheat::nothing_the_second_time:
        if (runs_ == 1) compute(inputs_);
        break;
      case Cheat::sloppy_while_timed:
        compute(inputs_);
        for (float& x : result_.o) x = runs_ > 3 ? f16_to_float(to_f16(static_cast<double>(x))) : x;
        break;
      case Cheat::more_threads:
        helping_ = true;
        compute(inputs_);
        helping_ = false;
        break;
      case Cheat::calls_the_reference: answer_with_reference(); break;
      case Cheat::rounds_up_in_download: compute(inputs_); break;
      case Cheat::zeroes_its_values:
        if (++met_[inputs_.v().data] <= 3)
          compute(inputs_);
        else
          answer_with_zeros();
        break;
      case Cheat::hides_work_in_unannounced_download:
      case Cheat::works_in_unannounced_download:
        if (announced_) compute(inputs_);
        break;
      case Cheat::changes_its_input:
        compute(inputs_);
        *static_cast<float*>(const_cast<void*>(inputs_.q().data)) = 0;
        break;
      case Cheat::rounds_up:
        compute(inputs_);
        std::fesetround(FE_UPWARD);
        break;
      case Cheat::flushes_to_zero: compute(inputs_);
#if defined(__SSE2__)
        _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
        break;
      case Cheat::count: break;
    }
  }

  void download(const Outputs& outputs) override {
    if (cheat_ == Cheat::returns_early) wait();
    if (cheat_ == Cheat::works_in_download || (cheat_ == Cheat::hides_work_in_download && due_)) compute(inputs_);
    announced_ = announced_ || uploaded_;  // a download before its run: somebody looks at this walk
    if (!announced_ && !uploaded_) {
      if (cheat_ == Cheat::works_in_unannounced_download) compute(inputs_);
      if (cheat_ == Cheat::hides_work_in_unannounced_download && due_) compute(inputs_);
    }
    due_ = false;
    const bool published =
        cheat_ == Cheat::hides_work_in_upload || cheat_ == Cheat::works_in_upload_for_an_unknown_device;
    const std::vector<float>& from = published ? published_.o : result_.o;
    std::size_t n = 0;
    each_index(outputs.out().shape, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
      store(outputs.out().data, DType::f32, outputs.out().offset(b, h, i, c), static_cast<double>(from[n++]));
    });
    if (cheat_ == Cheat::writes_beyond_its_output) static_cast<float*>(outputs.out().data)[elements()] = 1;
    if (cheat_ == Cheat::rounds_up_in_download) std::fesetround(FE_UPWARD);
  }

  std::optional<std::chrono::nanoseconds> device_time() const override {
    if (cheat_ == Cheat::throws_in_device_time) throw std::runtime_error("no clock");
    return std::nullopt;
  }

 private:
  std::size_t elements() const {
    return static_cast<std::size_t>(call_.batch * call_.query_heads * call_.query_length * call_.value_dim);
  }
  static void spin(const std::stop_token& stop) {
    while (!stop.stop_requested()) continue;
  }
  void wait() {
    if (cheat_ == Cheat::never_rests) later_.request_stop();
    if (later_.joinable()) later_.join();
  }
  void compute(const Inputs& inputs) {
    inner_->upload(inputs);
    inner_->run();
    inner_->download(result_.views(call_));
  }

  void answer_from_cache(std::uint64_t key) {
    const auto [found, fresh] = answers_.try_emplace(key);
    if (fresh) {
      compute(inputs_);
      found->second = result_;
    }
    result_ = found->second;
  }

  std::uint64_t content() const {
    std::uint64_t sum = 0;
    for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v}) {
      for (const float x : floats(inputs_.at(id))) sum = sum * 31 + std::bit_cast<std::uint32_t>(x);
    }
    return sum;
  }

  void answer_with_reference() {
    const Attention answer = attention(call_, inputs_);
    std::size_t n = 0;
    for (const Row& row : answer.rows) {
      for (const double x : row.output) result_.o[n++] = static_cast<float>(x);
    }
  }

  /// The right answer to values that are all 0, after as long as a run at the roof takes.
  void answer_with_zeros() {
    const std::span<const float> values = floats(inputs_.v());
    std::memset(const_cast<float*>(values.data()), 0, values.size_bytes());
    std::fill(result_.o.begin(), result_.o.end(), 0.0f);
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
    while (std::chrono::steady_clock::now() < end) continue;
  }

  void help(const std::stop_token& stop) const {
    while (!stop.stop_requested()) {
      if (!helping_) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  const Call call_;
  Cheat cheat_;
  CaseInputs guessed_;
  Inputs inputs_{};
  Result result_, published_;
  std::map<std::uint64_t, Result> answers_;
  std::map<const void*, int> met_;
  int runs_ = 0;
  bool due_ = false, uploaded_ = false, announced_ = false;
  std::atomic<bool> helping_{false};
  std::jthread later_;
  std::vector<std::jthread> helpers_;  ///< ended first: they look at what stands above
};

class CheatingBackend : public BackendAround {
 public:
  CheatingBackend(Cheat cheat, const Context& context)
      : BackendAround({std::string(kDescriptions[static_cast<std::size_t>(cheat)].name), "a cheat",
                       cheat == Cheat::works_in_upload_for_an_unknown_device ? "GPU of mine" : "CPU"},
                      faulty_backends().front().make(context)),
        cheat_(cheat) {}
  std::optional<Refusal> refuse(const Call& p) const override {
    if (p.dtype != DType::f32 || p.outputs != std::vector<Output>{Output::o}) return Refusal{"beyond this cheat"};
    return inner_->refuse(p);
  }
  std::unique_ptr<Plan> prepare(const Call& p) override {
    return std::make_unique<CheatingPlan>(p, cheat_, inner_->prepare(p));
  }

 private:
  Cheat cheat_;
};

}  // namespace

std::span<const BackendEntry> cheating_backends() {
  static const auto entries = entries_of<CheatingBackend, Cheat>(kDescriptions);
  return entries;
}

NoSpeed reason_for_cheat(std::string_view name) {
  for (const Description& d : kDescriptions) {
    if (d.name == name) return d.reason;
  }
  return NoSpeed::none;
}

}  // namespace attest::faulty
