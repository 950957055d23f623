// What a call reads and writes as plug-ins are given it: structs of backends/plugin/attest_plugin.h around views.
#pragma once

#include <array>
#include <cstdint>

#include "backends/plugin/attest_plugin.h"
#include "harness/backends/plugin/sized.h"
#include "reference/call/tensors.h"

namespace attest {

/// Tensors of rank 4 at most with their extents and strides. Each lives as long as the whole.
class TensorTable {
 public:
  /// A packed view is 1, heads, rows, features.
  const attest_tensor* add(const ConstTensor& view);
  const attest_tensor* add(const MutableTensor& view) {
    return add(ConstTensor{view.data, view.dtype, view.shape, view.strides, view.starts});
  }
  /// Of `shape` and `strides` the first `rank` count.
  const attest_tensor* add(const void* data, attest_data_type type, int rank, const Index4& shape,
                           const Index4& strides);
  void clear() { used_ = 0; }

 private:
  struct Row {
    attest_tensor tensor;
    Index4 shape, strides;
  };
  std::array<Row, 16> rows_;
  std::size_t used_ = 0;
};

/// Allocates once: set() is part of an upload.
class FlatInputs {
 public:
  explicit FlatInputs(std::uint64_t inputs_size) : flat_(inputs_size) {}
  FlatInputs(const FlatInputs&) = delete;
  FlatInputs& operator=(const FlatInputs&) = delete;

  /// Pointers from before stay, and lead to the new tensors.
  const attest_inputs* set(const Inputs& inputs);

 private:
  TensorTable tensors_;
  Sized<attest_inputs> flat_;
};

class FlatOutputs {
 public:
  explicit FlatOutputs(std::uint64_t outputs_size) : flat_(outputs_size) {}
  FlatOutputs(const FlatOutputs&) = delete;
  FlatOutputs& operator=(const FlatOutputs&) = delete;

  const attest_outputs* set(const Outputs& outputs);

 private:
  TensorTable tensors_;
  Sized<attest_outputs> flat_;
};

}  // namespace attest
