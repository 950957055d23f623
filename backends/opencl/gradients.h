// Gradients on an OpenCL device: the host's side of gradients.cl.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/support/opencl/call.h"
#include "backends/support/opencl/guarded_buffer.h"
#include "reference/call/tensor_table.h"

namespace attest {

class OpenClGradients {
 public:
  /// Tiles of so many queries and keys, by work-groups of kSide squared.
  static constexpr std::int64_t kTile = 32, kSide = 8;

  static std::string build_options() {
    return " -DTILE=" + std::to_string(kTile) + " -DSIDE=" + std::to_string(kSide) +
           " -DEACH=" + std::to_string(kTile / kSide);
  }

  /// `program` holds gradients.cl. `forward`, which outlives it, has the inputs of attention, and o and lse when it
  /// runs.
  OpenClGradients(support::DeviceCall& forward, support::OpenClDevice& device, const cl::Program& program)
      : forward_(forward),
        call_(forward.problem()),
        device_(device),
        rows_(program, "gradient_rows"),
        queries_(program, "gradient_of_queries"),
        keys_(program, "gradient_of_keys"),
        mask_(program, "gradient_of_mask"),
        sinks_(program, "gradient_of_sinks"),
        shift_(device.allocate(forward.rows() * element())) {
    for (const TensorId id : results()) {
      const Index4 n = seen_shape(call_, id);
      results_[index(id)] = support::GuardedBuffer(device, std::string(name_of(id)),
                                                   static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]) * element());
    }
  }

  /// After forward's upload.
  void upload(const Inputs& inputs) {
    write(inputs.dout(), dout_);
    if (inputs.dlse()) write(*inputs.dlse(), dlse_);
    if (!call_.runs_forward()) {
      write(inputs.saved_o(), forward_.out());
      write(inputs.saved_lse(), forward_.lse());
    }
    if (dlse_() == nullptr) dlse_ = device_.allocate(0);
    for (const TensorId id : results()) results_[index(id)].reset(device_.queue());
    device_.queue().finish();
    cl_uint n = set(rows_, {});
    rows_.setArg(n++, dlse_);
    rows_.setArg(n, static_cast<cl_int>(inputs.dlse() != nullptr));
    set(queries_, {TensorId::dq});
    set(keys_, {TensorId::dk, TensorId::dv});
    if (call_.wants(Output::dmask)) {
      const Index4 shape = stored_shape(call_, TensorId::mask);
      cl_int axes = 0;
      for (std::size_t axis = 0; axis < 4; ++axis) axes |= cl_int{call_.mask->kept[axis]} << axis;
      n = set(mask_, {TensorId::dmask});
      mask_.setArg(n++, axes);
      mask_.setArg(n, static_cast<cl_long>(elements(shape)));
    }
    if (call_.wants(Output::dsinks)) set(sinks_, {TensorId::dsinks});
  }

  /// Enqueues everything; forward's o and lse lie before it in the queue.
  void enqueue() {
    device_.enqueue_rows(rows_, forward_.rows());
    const auto tiles = [](std::int64_t n) { return (n + kTile - 1) / kTile; };
    enqueue_groups(queries_, call_.batch * call_.query_heads * tiles(call_.query_length));
    enqueue_groups(keys_, call_.batch * call_.key_heads * tiles(call_.key_length));
    if (call_.wants(Output::dmask)) device_.enqueue_rows(mask_, elements(stored_shape(call_, TensorId::mask)));
    if (call_.wants(Output::dsinks)) device_.enqueue_rows(sinks_, static_cast<std::size_t>(call_.query_heads));
  }

  void download(const Outputs& outputs) const {
    for (const TensorId id : results()) {
      if (const MutableTensor* to = outputs.find(id))
        forward_.fetch(results_[index(id)], *to, accumulator_of(call_.dtype), id == TensorId::dk || id == TensorId::dv);
    }
  }

 private:
  static std::size_t index(TensorId id) {
    return static_cast<std::size_t>(id) - static_cast<std::size_t>(TensorId::dq);
  }
  static std::size_t elements(const Index4& n) { return static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]); }
  std::size_t element() const { return size_of(accumulator_of(call_.dtype)); }

  /// dq, dk and dv are computed always, since others need no more than they do.
  std::vector<TensorId> results() const {
    std::vector<TensorId> list = {TensorId::dq, TensorId::dk, TensorId::dv};
    if (call_.wants(Output::dmask)) list.push_back(TensorId::dmask);
    if (call_.wants(Output::dsinks)) list.push_back(TensorId::dsinks);
    return list;
  }

  cl_uint set(cl::Kernel& kernel, std::initializer_list<TensorId> results) const {
    cl_uint n = forward_.set_common(kernel);
    kernel.setArg(n++, dout_);
    kernel.setArg(n++, shift_);
    for (const TensorId id : results) kernel.setArg(n++, results_[index(id)].inside());
    return n;
  }

  void enqueue_groups(const cl::Kernel& kernel, std::int64_t groups) const {
    if (groups == 0) return;
    const auto count = static_cast<std::size_t>(groups);
    device_.queue().enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(count * kSide, kSide),
                                         cl::NDRange(kSide, kSide));
  }

  /// A tensor of the queries' rows, whatever its type and strides, as dense numbers of the accumulator's type. Rows
  /// that are not stored are not written.
  void write(const ConstTensor& from, const cl::Buffer& to) const {
    const Index4& n = from.shape;
    const DType type = accumulator_of(call_.dtype);
    std::vector<std::byte> bytes(elements({call_.batch, n[1], call_.query_length, n[3]}) * element());
    if (bytes.empty()) return;
    for (std::int64_t b = 0; b < call_.batch; ++b) {
      for (std::int64_t h = 0; h < n[1]; ++h) {
        for (std::int64_t i = 0; i < call_.stored_queries(b); ++i) {
          for (std::int64_t d = 0; d < n[3]; ++d) {
            store(bytes.data(), type, ((b * n[1] + h) * call_.query_length + i) * n[3] + d,
                  load(from.data, from.dtype, from.offset(b, h, i, d)));
          }
        }
      }
    }
    device_.queue().enqueueWriteBuffer(to, CL_TRUE, 0, bytes.size(), bytes.data());
  }
  void write(const ConstTensor& from, cl::Buffer& to) {
    if (to() == nullptr) to = device_.allocate(forward_.rows() * static_cast<std::size_t>(from.shape[3]) * element());
    write(from, std::as_const(to));
  }

  support::DeviceCall& forward_;
  const Call& call_;
  support::OpenClDevice& device_;
  cl::Kernel rows_, queries_, keys_, mask_, sinks_;
  cl::Buffer dout_, dlse_, shift_;
  std::array<support::GuardedBuffer, 5> results_;  ///< dq, dk, dv, dmask, dsinks
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
