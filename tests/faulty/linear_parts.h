// Parts of calls of linear attention, run by themselves: what wrong backends put in the place of results.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backends/backend.h"
#include "reference/call/tensor_table.h"

namespace attest::faulty {

/// Results of a call, dense in the order of their axes.
using Results = std::map<TensorId, std::vector<double>>;

inline Results results_of(Backend& backend, const Call& call, const Inputs& inputs) {
  Results results;
  Outputs outputs;
  for (const TensorId id : outputs_of(call)) {
    const Index4 n = seen_shape(call, id);
    std::vector<double>& list = results[id];
    list.resize(static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]) + 1);
    outputs.set(id, {list.data(), DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}});
  }
  const std::unique_ptr<Plan> plan = backend.prepare(call);
  plan->upload(inputs);
  plan->run();
  plan->download(outputs);
  return results;
}

/// Rows [first, first + count) of every input that tokens number.
inline Inputs tokens_of(const Inputs& all, std::int64_t first, std::int64_t count) {
  Inputs part = all;
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::decay, TensorId::beta, TensorId::dout}) {
    if (!part.has(id)) continue;
    ConstTensor& t = part.change(id);
    t.data = static_cast<const std::byte*>(t.data) + static_cast<std::int64_t>(size_of(t.dtype)) * first * t.strides[2];
    t.shape[2] = count;
  }
  return part;
}

/// The tokens of sequence b, and its state, as a call of one sequence has them.
inline Inputs sequence_of(const Inputs& all, std::int64_t b, std::int64_t count) {
  Inputs part = all;
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::decay, TensorId::beta, TensorId::state}) {
    if (!part.has(id)) continue;
    ConstTensor& t = part.change(id);
    t.data = static_cast<const std::byte*>(t.data) + static_cast<std::int64_t>(size_of(t.dtype)) * t.offset(b, 0, 0, 0);
    t.starts = nullptr;
    t.shape[0] = 1;
    if (id != TensorId::state) t.shape[2] = count;
  }
  return part;
}

/// A view of a list that results_of made.
inline ConstTensor view_of(const std::vector<double>& list, const Index4& n) {
  return {list.data(), DType::f64, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}};
}

}  // namespace attest::faulty
