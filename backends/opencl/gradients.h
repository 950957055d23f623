// Gradients on an OpenCL device: the host's side of gradients.cl.
#pragma once

#include <string>

#include "backends/backend.h"
#include "backends/support/opencl/call.h"
#include "backends/support/opencl/gradients.h"

namespace attest {

class OpenClGradients {
 public:
  /// Queries and keys of a tile, for work-groups of kSide squared: as many as let the kernels' four tiles, and two
  /// flags, fit the device's local memory.
  static std::int64_t tile_of(const Call& call, const support::OpenClDevice& device) {
    const auto bytes = [&](std::size_t tile) {
      return 4 * tile * (tile + 1) * size_of(accumulator_of(call.dtype)) + 8;
    };
    return bytes(32) <= device.local_bytes() ? 32 : 16;
  }

  static std::string build_options(const Call& call, const support::OpenClDevice& device) {
    const std::int64_t tile = tile_of(call, device);
    return " -DTILE=" + std::to_string(tile) + " -DSIDE=" + std::to_string(kSide) +
           " -DEACH=" + std::to_string(tile / kSide);
  }

  /// `program` holds gradients.cl. `forward`, which outlives it, has the inputs of attention, and o and lse when it
  /// runs.
  OpenClGradients(support::DeviceCall& forward, support::OpenClDevice& device, const cl::Program& program)
      : call_(forward.problem()),
        device_(device),
        common_(forward, device, program),
        queries_(program, "gradient_of_queries"),
        keys_(program, "gradient_of_keys") {}

  /// After forward's upload.
  void upload(const Inputs& inputs) {
    common_.upload(inputs);
    common_.set_common(queries_, {TensorId::dq});
    common_.set_common(keys_, {TensorId::dk, TensorId::dv});
  }

  /// Enqueues everything; forward's o and lse lie before it in the queue.
  void enqueue() {
    common_.enqueue_rows();
    const std::int64_t tile = tile_of(call_, device_);
    const auto tiles = [&](std::int64_t n) { return (n + tile - 1) / tile; };
    enqueue_groups(queries_, call_.batch * call_.query_heads * tiles(call_.query_length));
    enqueue_groups(keys_, call_.batch * call_.key_heads * tiles(call_.key_length));
    common_.enqueue_rest();
  }

  void download(const Outputs& outputs) const { common_.download(outputs); }

 private:
  static constexpr std::int64_t kSide = 8;

  void enqueue_groups(const cl::Kernel& kernel, std::int64_t groups) const {
    if (groups == 0) return;
    const auto count = static_cast<std::size_t>(groups);
    device_.queue().enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(count * kSide, kSide),
                                         cl::NDRange(kSide, kSide));
  }

  const Call& call_;
  support::OpenClDevice& device_;
  support::DeviceGradients common_;
  cl::Kernel queries_, keys_;
};

/// A backward pass alone, on o and lse as they were saved.
class OpenClBackwardPlan : public Plan {
 public:
  /// `program` holds gradients.cl.
  OpenClBackwardPlan(const Call& call, support::OpenClDevice& device, const cl::Program& program)
      : device_(device), call_(call, device, program), gradients_(call_, device, program) {}

  void upload(const Inputs& inputs) override {
    call_.upload(inputs);
    support::checked([&] { gradients_.upload(inputs); });
  }

  void run() override {
    support::checked([&] {
      gradients_.enqueue();
      device_.queue().finish();
    });
  }

  void download(const Outputs& outputs) override {
    support::checked([&] { gradients_.download(outputs); });
  }

 private:
  support::OpenClDevice& device_;
  support::DeviceCall call_;
  OpenClGradients gradients_;
};

}  // namespace attest
