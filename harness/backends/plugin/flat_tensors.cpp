#include "harness/backends/plugin/flat_tensors.h"

#include <cstddef>

namespace attest {
namespace {

constexpr attest_data_type type_of(DType type) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(type));
  switch (type) {
    case DType::bf16: return {ATTEST_CODE_BFLOAT, bits, 1};
    case DType::boolean: return {ATTEST_CODE_UINT, bits, 1};
    case DType::i32: return {ATTEST_CODE_INT, bits, 1};
    default: return {ATTEST_CODE_FLOAT, bits, 1};
  }
}

}  // namespace

const attest_tensor* TensorTable::add(const void* data, attest_data_type type, int rank, const Index4& shape,
                                      const Index4& strides) {
  Row& row = rows_.at(used_++);
  row.shape = shape;
  row.strides = strides;
  // DLPack has no const; backends/plugin/attest_plugin.h says that inputs are read only.
  row.tensor = {const_cast<void*>(data), {ATTEST_DEVICE_CPU, 0}, rank, type, row.shape.data(), row.strides.data(), 0};
  return &row.tensor;
}

const attest_tensor* TensorTable::add(const ConstTensor& view) {
  if (!view.starts) return add(view.data, type_of(view.dtype), 4, view.shape, view.strides);
  const Index4 shape = {1, view.shape[1], view.starts[view.shape[0]], view.shape[3]};
  return add(view.data, type_of(view.dtype), 4, shape, view.strides);
}

const attest_inputs* FlatInputs::set(const Inputs& in) {
  tensors_.clear();
  attest_inputs& flat = *flat_.get();
  const auto optional = [&](TensorId id) { return in.has(id) ? tensors_.add(in.at(id)) : nullptr; };
  flat.q = tensors_.add(in.q());
  flat.k = tensors_.add(in.k());
  flat.v = tensors_.add(in.v());
  flat.mask = optional(TensorId::mask);
  flat.past_k = optional(TensorId::past_k);
  flat.past_v = optional(TensorId::past_v);
  // Tensors of one or two axes without the axes of extent 1.
  const auto flattened = [&](TensorId id, bool two, std::size_t last) -> const attest_tensor* {
    if (!in.has(id)) return nullptr;
    const ConstTensor& t = in.at(id);
    const Index4 shape = two ? Index4{t.shape[0], t.shape[last]} : Index4{t.shape[last]};
    const Index4 strides = two ? Index4{t.strides[0], t.strides[last]} : Index4{t.strides[last]};
    return tensors_.add(t.data, type_of(t.dtype), two ? 2 : 1, shape, strides);
  };
  flat.page_table = flattened(TensorId::page_table, true, 3);
  flat.slopes = flattened(TensorId::slopes, in.slopes() && in.slopes()->strides[0] != 0, 1);
  flat.sinks = flattened(TensorId::sinks, false, 1);
  flat.blocks = optional(TensorId::blocks);
  flat.keep = optional(TensorId::keep);
  flat.decay = optional(TensorId::decay);
  flat.beta = optional(TensorId::beta);
  flat.state = optional(TensorId::state);
  flat.query_starts = in.q().starts;
  flat.key_starts = in.k().starts;
  return &flat;
}

const attest_outputs* FlatOutputs::set(const Outputs& out) {
  tensors_.clear();
  attest_outputs& flat = *flat_.get();
  const auto optional = [&](TensorId id) { return out.has(id) ? tensors_.add(out.at(id)) : nullptr; };
  flat.out = tensors_.add(out.out());
  flat.lse = optional(TensorId::lse);
  flat.raw = optional(TensorId::raw);
  flat.capped = optional(TensorId::capped);
  flat.biased = optional(TensorId::biased);
  flat.weights = optional(TensorId::weights);
  flat.present_k = optional(TensorId::present_k);
  flat.present_v = optional(TensorId::present_v);
  flat.present_state = optional(TensorId::present_state);
  flat.query_starts = out.out().starts;
  return &flat;
}

}  // namespace attest
