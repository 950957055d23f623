#include "harness/backends/plugin/flat_tensors.h"

#include "reference/call/tensor_table.h"

namespace attest {
namespace {

constexpr attest_data_type type_of(DType type) {
  const Format& format = format_of(type);
  const auto code = static_cast<std::uint8_t>(type == DType::boolean ? DlpackCode::unsigned_integer : format.dlpack);
  return {code, static_cast<std::uint8_t>(format.bits), 1};
}

}  // namespace

template <class Void>
const attest_tensors* FlatTensors::set(const Tensors<Void>& views) {
  attest_tensors& flat = *flat_.get();
  flat.count = 0;
  flat.list = list_.data();
  flat.query_starts = flat.key_starts = nullptr;
  for (const TensorRow& row : tensor_rows()) {
    if (!views.has(row.id)) continue;
    const auto& view = views.at(row.id);
    Row& to = rows_[flat.count];
    to.shape = view.shape;
    to.strides = view.strides;
    if (view.starts) {
      to.shape = {1, view.shape[1], view.starts[view.shape[0]], view.shape[3]};
      (row.axes[2] == Axis::queries ? flat.query_starts : flat.key_starts) = view.starts;
    }
    // DLPack has no const; backends/plugin/attest/attest_plugin.h says that inputs are read only.
    to.tensor = {const_cast<void*>(view.data),
                 {ATTEST_DEVICE_CPU, 0},
                 4,
                 type_of(view.dtype),
                 to.shape.data(),
                 to.strides.data(),
                 0};
    list_[flat.count++] = {row.name.data(), &to.tensor};  // a literal, so it ends in a 0
  }
  return &flat;
}

template const attest_tensors* FlatTensors::set(const Tensors<const void>&);
template const attest_tensors* FlatTensors::set(const Tensors<void>&);

}  // namespace attest
