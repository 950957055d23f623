#include "tests/faulty/linear_gradients.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "tests/faulty/around.h"
#include "tests/faulty/linear_parts.h"

namespace attest::faulty {
namespace {

struct PartialMistake {
  std::string_view name, text;
  std::int64_t tokens;            ///< of a part: what comes later has no loss; 0: the whole
  bool first_heads;               ///< the first query head of each group alone
  std::vector<TensorId> results;  ///< that are wrong
};

// clang-format off
const std::array kMistakes = {
    PartialMistake{"decay_forgets_later_tokens", "ddecay is that of the token's own output (106)", 1, false, {TensorId::ddecay}},
    PartialMistake{"linear_dk_of_first_head", "dk is not summed over the group (107)", 0, true, {TensorId::dk}},
    PartialMistake{"state_gradient_of_chunk", "the gradient by the state is reset at each chunk of 64 tokens (108)", 64, false,
                   {TensorId::dk, TensorId::dv, TensorId::ddecay, TensorId::dbeta, TensorId::dstate}},
};
// clang-format on

class PartialPlan : public PlanAround {
 public:
  PartialPlan(const PartialMistake& mistake, const Call& call, Backend& backend)
      : PlanAround(backend.prepare(call)), mistake_(mistake), call_(call), backend_(backend) {}

  void upload(const Inputs& inputs) override {
    inputs_ = inputs;
    inner_->upload(inputs);
  }

  void download(const Outputs& outputs) override {
    inner_->download(outputs);
    if (!call_.has_state() || !call_.wants_gradients()) return;
    Call part = call_;
    part.tensors = {};
    part.pass = Pass::backward;
    std::erase_if(part.outputs, [](Output one) { return !is_gradient(one); });
    Inputs inputs = inputs_;
    if (mistake_.first_heads) {
      part.query_heads = call_.key_heads;
      for (const TensorId id : {TensorId::q, TensorId::dout}) {
        ConstTensor& t = inputs.change(id);
        t.shape[1] = part.query_heads;
        t.strides[1] *= call_.heads_per_group();
      }
    }
    const std::int64_t tokens = mistake_.tokens > 0 ? mistake_.tokens : std::max<std::int64_t>(call_.query_length, 1);
    for (std::int64_t first = 0; first < call_.query_length; first += tokens)
      replace(part, inputs, first, std::min(tokens, call_.query_length - first), outputs);
  }

 private:
  void replace(Call part, const Inputs& inputs, std::int64_t first, std::int64_t count, const Outputs& outputs) {
    Inputs tokens = tokens_of(inputs, first, count);
    Call before = call_;
    before.tensors = {};
    before.set_pass(Pass::forward);
    before.outputs = {Output::o, Output::present};
    before.query_length = before.key_length = first;
    const Results states = results_of(backend_, before, tokens_of(inputs_, 0, first));
    const Index4 n = seen_shape(before, TensorId::present_state);
    tokens.set(TensorId::state,
               {states.at(TensorId::present_state).data(), DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
    part.initial_state = true;
    part.query_length = part.key_length = count;
    if (first + count < call_.query_length) {
      part.dpresent = false;
      tokens.remove(TensorId::dpresent);
    }
    const Results wrong = results_of(backend_, part, tokens);
    for (const TensorId id : mistake_.results) {
      const MutableTensor* to = outputs.find(id);
      if (!to || (id == TensorId::dstate && first > 0)) continue;
      Index4 shape = to->shape;
      const bool by_token = id != TensorId::dstate;
      if (by_token) shape[2] = count;
      std::size_t at = 0;
      each_index(shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        store(to->data, to->dtype, to->offset(b, h, by_token ? first + l : l, d), wrong.at(id)[at++]);
      });
    }
  }

  const PartialMistake& mistake_;
  const Call call_;
  Backend& backend_;
  Inputs inputs_{};
};

class PartialBackend : public BackendAround {
 public:
  PartialBackend(std::size_t mistake, const Context& /*context*/)
      : BackendAround({std::string(kMistakes[mistake].name), "deliberately wrong", "CPU"}, make_example()),
        mistake_(kMistakes[mistake]) {}
  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<PartialPlan>(mistake_, call, *inner_);
  }

 private:
  const PartialMistake& mistake_;
};

}  // namespace

std::span<const BackendEntry> linear_gradient_backends() {
  static const auto entries = entries_of<PartialBackend, std::size_t>(kMistakes);
  return entries;
}

std::string_view linear_gradient_description(std::string_view name) {
  const auto* const found = std::ranges::find(kMistakes, name, &PartialMistake::name);
  return found == kMistakes.end() ? "" : found->text;
}

}  // namespace attest::faulty
