#include "harness/verdict/bitwise.h"

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "backends/refusal.h"
#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/plan_walk.h"
#include "reference/operators/operator_tensors.h"

namespace attest {
namespace {

/// Bits of every result of sequence b, whatever the layout.
std::vector<std::uint64_t> bits_of(const Call& p, const GuardedOutputs& outputs, std::int64_t b) {
  std::vector<std::uint64_t> bits;
  const auto add = [&](double value) { bits.push_back(std::bit_cast<std::uint64_t>(value)); };
  for (std::int64_t h = 0; h < p.query_heads; ++h) {
    for (std::int64_t i = 0; i < p.stored_queries(b); ++i) {
      for (std::int64_t c = 0; p.wants(Output::o) && c < p.value_dim; ++c) add(outputs.out(b, h, i, c));
      if (p.wants(Output::lse)) add(outputs.lse(b, h, i));
      for (Output stage : kScoreStages) {
        for (std::int64_t j = 0; p.wants(stage) && j < p.key_length; ++j) add(outputs.stage(stage, b, h, i, j));
      }
    }
  }
  const std::vector<PresentOutput> present = present_outputs(p);
  for (std::size_t n = 0; n < present.size(); ++n) {
    Index4 shape = present[n].shape;
    shape[0] = 1;
    each_index(shape, [&](std::int64_t, std::int64_t h, std::int64_t l, std::int64_t d) {
      add(outputs.present(n, b, h, l, d));
    });
  }
  return bits;
}

std::vector<std::uint64_t> bits_of(const Call& p, const GuardedOutputs& outputs) {
  std::vector<std::uint64_t> all;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const auto one = bits_of(p, outputs, b);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

/// Runs of one call, each held against the bits that it should have; those that differ are told of.
class Runs {
 public:
  Runs(const Call& call, const Inputs& inputs, std::vector<std::uint64_t> bits, const Differing& differing)
      : call_(call), inputs_(inputs), bits_(std::move(bits)), differing_(differing) {}

  bool same(const Backend& backend, Plan& plan, Cause cause) const {
    GuardedOutputs outputs(call_);
    walk(plan, inputs_, &outputs);
    if (bits_of(call_, outputs) == bits_) return true;
    if (differing_) differing_(backend, call_, inputs_, outputs, cause);
    return false;
  }
  bool same(Backend& backend, Cause cause) const { return same(backend, *make_plan(backend, call_), cause); }

 private:
  const Call& call_;
  const Inputs& inputs_;
  const std::vector<std::uint64_t> bits_;
  const Differing& differing_;
};

}  // namespace

std::optional<OneSequence> one_sequence(const Call& p, const Inputs& inputs, std::int64_t b) {
  if (p.batch < 2 || p.packed_sequences() || (p.dropout > 0 && !inputs.keep)) return std::nullopt;
  OneSequence one{p, inputs};
  one.call.batch = 1;
  if (p.lengths) {
    for (auto* list : {&one.call.lengths->query, &one.call.lengths->key}) {
      if (!list->empty()) *list = {(*list)[static_cast<std::size_t>(b)]};
    }
  }
  for (TensorSpec& spec : one.call.tensors) spec.strides.reset();  // the views below say where things lie
  const auto slice = [b](auto& tensor, std::size_t element) {
    if (!tensor.data || tensor.shape[0] == 0) return;
    tensor.data =
        static_cast<const std::byte*>(tensor.data) + b * tensor.strides[0] * static_cast<std::int64_t>(element);
    tensor.shape[0] = 1;
  };
  Inputs& in = one.inputs;
  slice(in.q, size_of(in.q.dtype));
  for (ConstTensor* t : {&in.k, &in.v, &in.past_k, &in.past_v}) {
    if (!in.pages) slice(*t, size_of(t->dtype));
  }
  for (const InputTensor& tensor : input_tensors()) slice(in.*tensor.place, size_of((in.*tensor.place).dtype));
  if (in.mask) slice(*in.mask, in.mask->additive ? size_of(in.mask->dtype) : 1);
  if (in.pages) in.pages->entries += b * in.pages->stride;
  if (in.blocks) in.blocks->data += b * in.blocks->heads * in.blocks->rows * in.blocks->columns;
  if (in.keep) in.keep += b * p.query_heads * p.query_length * p.key_length;
  return one;
}

BitwiseFacts bitwise_facts(Backend& backend, std::span<Backend* const> others, const Call& p, const Inputs& inputs,
                           const Differing& differing) {
  BitwiseFacts facts;
  GuardedOutputs outputs(p);
  walk_once(backend, p, inputs, outputs);
  const Runs whole(p, inputs, bits_of(p, outputs), differing);
  // All of them, also after one that differs: each may be wrong in its own way.
  facts.runs = true;
  const auto plan = make_plan(backend, p);
  for (int run = 0; run < 5; ++run) facts.runs = whole.same(backend, *plan, Cause::run_again) && *facts.runs;
  for (Backend* other : others) {
    facts.threads = whole.same(*other, Cause::other_threads) && facts.threads.value_or(true);
  }
  for (std::int64_t b : {std::int64_t{0}, p.batch - 1}) {
    const auto one = one_sequence(p, inputs, b);
    if (!one || refusal_of(backend, one->call)) continue;
    const Runs alone(one->call, one->inputs, bits_of(p, outputs, b), differing);
    facts.batch = alone.same(backend, Cause::without_batch) && facts.batch.value_or(true);
  }
  return facts;
}

}  // namespace attest
