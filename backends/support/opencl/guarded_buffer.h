// A device buffer for results, between guards that no kernel may touch.
#pragma once

#include "backends/support/opencl/device.h"

namespace attest::support {

class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  /// `what` stands in messages. Throws BackendError.
  GuardedBuffer(const OpenClDevice& device, std::string what, std::size_t bytes);

  /// What kernels write to: `bytes` long.
  const cl::Buffer& inside() const { return inside_; }

  /// Enqueues: every byte of the results becomes 0xFF, which is NaN, so that neither an earlier result nor an element
  /// that nobody writes passes for one; the guards get their pattern.
  void reset(cl::CommandQueue& queue);

  /// Throws BackendError when a guard was written to.
  void inspect(cl::CommandQueue& queue) const;

 private:
  std::string what_;
  std::size_t bytes_ = 0;
  cl::Buffer whole_, inside_;
};

}  // namespace attest::support
