#include "tests/faulty/linear_states.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "tests/faulty/around.h"
#include "tests/faulty/linear_parts.h"

namespace attest::faulty {
namespace {

struct StateMistake {
  std::string_view name, text;
  bool carries;        ///< a packed sequence starts from the last state of the one before
  std::int64_t chunk;  ///< the last state is that behind the last whole chunk of so many tokens; 0: behind all
};

constexpr std::array kMistakes = {
    StateMistake{"state_of_sequence_before", "a packed sequence goes on with the state of the one before (176)", true,
                 0},
    StateMistake{"state_of_whole_chunks", "the last state leaves out tokens behind the last whole chunk of 64 (177)",
                 false, 64},
};

class StatePlan : public PlanAround {
 public:
  StatePlan(const StateMistake& mistake, const Call& call, Backend& backend)
      : PlanAround(backend.prepare(call)), mistake_(mistake), call_(call), backend_(backend) {}

  void upload(const Inputs& inputs) override {
    inputs_ = inputs;
    inner_->upload(inputs);
  }

  void download(const Outputs& outputs) override {
    inner_->download(outputs);
    if (!call_.has_state() || call_.wants_gradients()) return;
    Results before;
    for (std::int64_t b = 0; b < call_.batch; ++b) {
      Call one = call_;
      one.tensors = {};
      one.batch = 1;
      one.lengths.reset();
      one.layout = Layout::bhld;
      one.gap = 0;
      one.outputs = {Output::o, Output::present};
      const std::int64_t tokens = call_.query_count(b);
      one.query_length = one.key_length = mistake_.chunk > 0 ? tokens / mistake_.chunk * mistake_.chunk : tokens;
      Inputs inputs = sequence_of(inputs_, b, one.query_length);
      if (mistake_.carries && call_.packed_sequences() && b > 0) {
        one.initial_state = true;
        inputs.set(TensorId::state, view_of(before.at(TensorId::present_state), seen_shape(one, TensorId::state)));
      }
      Results wrong = results_of(backend_, one, inputs);
      if (mistake_.carries) replace(one, TensorId::out, b, wrong, outputs);
      replace(one, TensorId::present_state, b, wrong, outputs);
      before = std::move(wrong);
    }
  }

 private:
  static void replace(const Call& one, TensorId id, std::int64_t b, const Results& wrong, const Outputs& outputs) {
    const MutableTensor* to = outputs.find(id);
    if (!to) return;
    std::size_t at = 0;
    each_index(seen_shape(one, id), [&](std::int64_t, std::int64_t h, std::int64_t l, std::int64_t d) {
      store(to->data, to->dtype, to->offset(b, h, l, d), wrong.at(id)[at++]);
    });
  }

  const StateMistake& mistake_;
  const Call call_;
  Backend& backend_;
  Inputs inputs_{};
};

class StateBackend : public BackendAround {
 public:
  StateBackend(std::size_t mistake, const Context& /*context*/)
      : BackendAround({std::string(kMistakes[mistake].name), "deliberately wrong", "CPU"}, make_example()),
        mistake_(kMistakes[mistake]) {}
  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<StatePlan>(mistake_, call, *inner_);
  }

 private:
  const StateMistake& mistake_;
};

}  // namespace

std::span<const BackendEntry> linear_state_backends() {
  static const auto entries = entries_of<StateBackend, std::size_t>(kMistakes);
  return entries;
}

std::string_view linear_state_description(std::string_view name) {
  const auto* const found = std::ranges::find(kMistakes, name, &StateMistake::name);
  return found == kMistakes.end() ? "" : found->text;
}

}  // namespace attest::faulty
