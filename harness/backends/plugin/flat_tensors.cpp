#include "harness/backends/plugin/flat_tensors.h"

#include <cstddef>

namespace attest {
namespace {

constexpr attest_data_type kBytes = {ATTEST_CODE_UINT, 8, 1};
constexpr attest_data_type kInt32 = {ATTEST_CODE_INT, 32, 1};
constexpr attest_data_type kDouble = {ATTEST_CODE_FLOAT, 64, 1};

constexpr attest_data_type type_of(DType type) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(type));
  return {static_cast<std::uint8_t>(type == DType::bf16 ? ATTEST_CODE_BFLOAT : ATTEST_CODE_FLOAT), bits, 1};
}

Index4 dense(const Index4& shape) { return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}; }

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
  const auto optional = [&](const ConstTensor& view) { return view.data ? tensors_.add(view) : nullptr; };
  flat.q = tensors_.add(in.q);
  flat.k = tensors_.add(in.k);
  flat.v = tensors_.add(in.v);
  flat.mask = nullptr;
  if (in.mask) {
    const attest_data_type type = in.mask->additive ? type_of(in.mask->dtype) : kBytes;
    flat.mask = tensors_.add(in.mask->data, type, 4, in.mask->shape, in.mask->strides);
  }
  flat.past_k = optional(in.past_k);
  flat.past_v = optional(in.past_v);
  flat.page_table = nullptr;
  if (in.pages) {
    flat.page_table = tensors_.add(in.pages->entries, kInt32, 2, {in.q.shape[0], in.pages->stride, 0, 0},
                                   {in.pages->stride, 1, 0, 0});
  }
  flat.blocks = nullptr;
  if (in.blocks) {
    const Index4 shape = {in.q.shape[0], in.blocks->heads, in.blocks->rows, in.blocks->columns};
    flat.blocks = tensors_.add(in.blocks->data, kBytes, 4, shape, dense(shape));
  }
  const auto numbers = [&](std::span<const double> list) {
    return list.empty() ? nullptr
                        : tensors_.add(list.data(), kDouble, 1, {static_cast<std::int64_t>(list.size())}, {1});
  };
  const std::int64_t batch = in.q.shape[0], heads = in.q.shape[1];
  const bool by_batch = static_cast<std::int64_t>(in.slopes.size()) > heads;
  flat.slopes = by_batch ? tensors_.add(in.slopes.data(), kDouble, 2, {batch, heads, 0, 0}, {heads, 1, 0, 0})
                         : numbers(in.slopes);
  flat.sinks = numbers(in.sinks);
  flat.keep = nullptr;
  if (in.keep) {
    const std::int64_t keys = in.k.shape[2] + (in.past_k.data ? in.past_k.shape[2] : 0);
    const Index4 shape = {in.q.shape[0], in.q.shape[1], in.q.shape[2], keys};
    flat.keep = tensors_.add(in.keep, kBytes, 4, shape, dense(shape));
  }
  flat.decay = optional(in.decay);
  flat.beta = optional(in.beta);
  flat.state = optional(in.state);
  flat.query_starts = in.q.starts;
  flat.key_starts = in.k.starts;
  return &flat;
}

const attest_outputs* FlatOutputs::set(const Outputs& out) {
  tensors_.clear();
  attest_outputs& flat = *flat_.get();
  const auto optional = [&](const std::optional<MutableTensor>& view) { return view ? tensors_.add(*view) : nullptr; };
  flat.out = tensors_.add(out.out);
  flat.lse = optional(out.lse);
  flat.raw = optional(out.raw);
  flat.capped = optional(out.capped);
  flat.biased = optional(out.biased);
  flat.weights = optional(out.weights);
  flat.present_k = optional(out.present_k);
  flat.present_v = optional(out.present_v);
  flat.present_state = optional(out.present_state);
  flat.query_starts = out.out.starts;
  return &flat;
}

}  // namespace attest
