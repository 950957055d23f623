// Linear attention on an OpenCL device: the host's side of linear.cl.
#pragma once

#include <array>
#include <memory>

#include "backends/support/opencl/gaps.h"
#include "backends/support/opencl/guarded_buffer.h"

namespace attest {

/// The same struct as in linear.cl. All 64 bits wide, so that host and device agree on its layout.
struct LinearProblem {
  cl_long key_heads, group, length, key_dim, value_dim, states;
  std::array<std::array<cl_long, 4>, 6> strides;  ///< q, k, v, decay, beta, initial state
  cl_long has_decay, is_delta, has_initial;
};

class OpenClLinearPlan : public Plan {
 public:
  /// `program` holds linear.cl, built for vectors of `lanes`.
  OpenClLinearPlan(const Call& call, support::OpenClDevice& device, const cl::Program& program, int lanes)
      : call_(call),
        device_(device),
        kernel_(program, "attend_linear"),
        element_(size_of(accumulator_of(call.dtype))),
        panels_((call.value_dim + lanes - 1) / lanes),
        padded_(panels_ * lanes),
        out_(device, "out", bytes(call.batch * call.query_heads * call.query_length)),
        state_(device, "the state", bytes(call.batch * call.key_heads * call.key_dim)) {}

  void upload(const Inputs& given) override {
    const support::WithoutGaps dense(given);
    const Inputs& inputs = dense.inputs();
    const std::array<const ConstTensor*, 6> tensors = {&inputs.q(),     &inputs.k(),    &inputs.v(),
                                                       &inputs.decay(), &inputs.beta(), &inputs.state()};
    LinearProblem problem{call_.key_heads,
                          call_.heads_per_group(),
                          call_.query_length,
                          call_.key_dim,
                          call_.value_dim,
                          call_.batch * call_.key_heads,
                          {},
                          call_.has_decay(),
                          call_.has_beta(),
                          call_.initial_state};
    support::checked([&] {
      for (std::size_t n = 0; n < tensors.size(); ++n) {
        const ConstTensor& t = *tensors[n];
        const std::size_t size = t.data ? span_bytes(t) : 0;
        if (inputs_[n]() == nullptr || size > capacity_[n]) {
          inputs_[n] = device_.allocate(size);
          capacity_[n] = size;
        }
        if (size > 0) device_.queue().enqueueWriteBuffer(inputs_[n], CL_FALSE, 0, size, t.data);
        for (std::size_t axis = 0; axis < 4; ++axis) problem.strides[n][axis] = t.strides[axis];
      }
      out_.reset(device_.queue());
      state_.reset(device_.queue());
      device_.queue().finish();
      cl_uint argument = 0;
      kernel_.setArg(argument++, problem);
      if (element_ == 8)
        kernel_.setArg(argument++, static_cast<cl_double>(call_.scale_value()));
      else
        kernel_.setArg(argument++, static_cast<cl_float>(call_.scale_value()));
      for (const cl::Buffer& buffer : inputs_) kernel_.setArg(argument++, buffer);
      kernel_.setArg(argument++, out_.inside());
      kernel_.setArg(argument++, state_.inside());
    });
  }

  void run() override {
    support::checked([&] {
      const std::int64_t items = call_.batch * call_.key_heads * panels_;
      device_.enqueue_rows(kernel_, static_cast<std::size_t>(items), &event_);
      device_.queue().finish();
    });
  }

  void download(const Outputs& outputs) override {
    support::checked([&] {
      fetch(out_, outputs.out());
      if (outputs.present_state()) fetch(state_, *outputs.present_state());
    });
  }

  std::optional<std::chrono::nanoseconds> device_time() const override {
    if (event_() == nullptr) return std::nullopt;
    return support::checked([&] { return support::duration_of(event_); });
  }

 private:
  std::size_t bytes(std::int64_t rows) const { return static_cast<std::size_t>(rows * padded_) * element_; }

  void fetch(const support::GuardedBuffer& buffer, const MutableTensor& to) const {
    buffer.inspect(device_.queue());
    const Index4& n = to.shape;
    const std::size_t size = bytes(n[0] * n[1] * n[2]);
    if (size == 0) return;
    const auto numbers = std::make_unique<std::byte[]>(size);
    device_.queue().enqueueReadBuffer(buffer.inside(), CL_TRUE, 0, size, numbers.get());
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const std::int64_t from = ((b * n[1] + h) * n[2] + l) * padded_ + d;
      store(to.data, to.dtype, to.offset(b, h, l, d), load(numbers.get(), accumulator_of(call_.dtype), from));
    });
  }

  const Call call_;
  support::OpenClDevice& device_;
  cl::Kernel kernel_;
  std::size_t element_;
  std::int64_t panels_, padded_;  ///< vectors of Dv, and columns of all of them
  std::array<cl::Buffer, 6> inputs_;
  std::array<std::size_t, 6> capacity_{};
  support::GuardedBuffer out_, state_;
  cl::Event event_;
};

}  // namespace attest
