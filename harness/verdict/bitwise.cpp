#include "harness/verdict/bitwise.h"

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "backends/refusal.h"
#include "harness/comparison/compare.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/plan_execution.h"
#include "reference/call/tensor_table.h"

namespace attest {
namespace {

/// Bits of every result of sequence b, whatever the layout.
std::vector<std::uint64_t> bits_of(const Call& p, const GuardedOutputs& outputs, std::int64_t b) {
  std::vector<std::uint64_t> bits;
  for (const TensorId id : results_of(p)) {
    Index4 shape = seen_shape(p, id);
    shape[0] = 1;
    if (row_of(id).axes[2] == Axis::queries) shape[2] = p.stored_queries(b);
    each_index(shape, [&](std::int64_t, std::int64_t h, std::int64_t l, std::int64_t d) {
      bits.push_back(std::bit_cast<std::uint64_t>(outputs.at(id, b, h, l, d)));
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
    execute(plan, inputs_, &outputs);
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
  if (p.batch < 2 || p.packed_sequences() || !p.past_lengths.empty() || (p.dropout > 0 && !inputs.keep()))
    return std::nullopt;
  OneSequence one{p, inputs};
  one.call.batch = 1;
  if (p.lengths) {
    for (auto* list : {&one.call.lengths->query, &one.call.lengths->key}) {
      if (!list->empty()) *list = {(*list)[static_cast<std::size_t>(b)]};
    }
  }
  for (TensorSpec& spec : one.call.tensors) spec.strides.reset();  // the views below say where things lie
  if (p.slopes_per_batch()) {
    const auto first = p.alibi_slopes.begin() + static_cast<std::ptrdiff_t>(b * p.query_heads);
    one.call.alibi_slopes.assign(first, first + static_cast<std::ptrdiff_t>(p.query_heads));
  }
  for (const TensorRow& row : tensor_rows()) {
    const bool by_batch = row.axes[0] == Axis::batch || (row.axes[0] == Axis::stores && !p.page_size);
    if (is_output(row.id) || !inputs.has(row.id) || !by_batch) continue;
    ConstTensor& tensor = one.inputs.change(row.id);
    const auto element = static_cast<std::int64_t>(size_of(tensor.dtype));
    tensor.data = static_cast<const std::byte*>(tensor.data) + b * tensor.strides[0] * element;
    tensor.shape[0] = 1;
  }
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
