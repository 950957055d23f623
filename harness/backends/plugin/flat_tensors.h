// What a call reads and writes as plug-ins are given it: views in structs of backends/plugin/attest/attest_plugin.h.
#pragma once

#include <array>
#include <cstdint>

#include "backends/plugin/attest/attest_plugin.h"
#include "harness/backends/plugin/sized.h"
#include "reference/call/tensors.h"

namespace attest {

/// Allocates once: set() is part of an upload.
class FlatTensors {
 public:
  /// `tensors_size`: of attest_tensors as the plug-in knows it.
  explicit FlatTensors(std::uint64_t tensors_size) : flat_(tensors_size) {}
  FlatTensors(const FlatTensors&) = delete;
  FlatTensors& operator=(const FlatTensors&) = delete;

  /// Of inputs or outputs. Pointers from before stay, and lead to the new tensors.
  template <class Void>
  const attest_tensors* set(const Tensors<Void>& views);

 private:
  struct Row {
    attest_tensor tensor;
    Index4 shape, strides;
  };
  std::array<Row, kTensorCount> rows_;
  std::array<attest_named_tensor, kTensorCount> list_;
  Sized<attest_tensors> flat_;
};

}  // namespace attest
