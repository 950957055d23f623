// Gradients of a call on an OpenCL device: the tensors and kernels that every way to compute them needs.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/support/opencl/call.h"
#include "backends/support/opencl/guarded_buffer.h"

namespace attest::support {

/// Kernel source that gradients begin with: problem.cl and gradients.cl.
std::string gradients_source();

class DeviceGradients {
 public:
  /// `program` was built from gradients_source() and more. `forward`, which outlives this, has the inputs of attention,
  /// and o and lse when gradients run.
  DeviceGradients(DeviceCall& forward, OpenClDevice& device, const cl::Program& program);

  /// After forward's upload.
  void upload(const Inputs& inputs);
  /// Sets the arguments of COMMON and GRADIENTS, then these results; returns the number of the next one.
  cl_uint set_common(cl::Kernel& kernel, std::initializer_list<TensorId> results = {}) const;
  /// Enqueues dlse - D of every row; forward's o and lse lie before it in the queue.
  void enqueue_rows();
  /// Enqueues the gradients of mask and sinks where they are wanted, after those of the rows.
  void enqueue_rest();
  void download(const Outputs& outputs) const;

  const cl::Buffer& result(TensorId id) const { return results_[index(id)].inside(); }

 private:
  static std::size_t index(TensorId id) {
    return static_cast<std::size_t>(id) - static_cast<std::size_t>(TensorId::dq);
  }
  std::size_t element() const { return size_of(accumulator_of(call_.dtype)); }
  std::vector<TensorId> results() const;
  void write(const ConstTensor& from, const cl::Buffer& to) const;

  DeviceCall& forward_;
  const Call& call_;
  OpenClDevice& device_;
  cl::Kernel rows_, mask_, sinks_;
  cl::Buffer dout_, dlse_, shift_;
  std::array<GuardedBuffer, 5> results_;  ///< dq, dk, dv, dmask, dsinks
};

}  // namespace attest::support
