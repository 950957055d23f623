#include "backends/support/opencl/gradients.h"

#include "gradients_cl.h"
#include "reference/call/tensor_table.h"

namespace attest::support {
namespace {

std::size_t elements(const Index4& n) { return static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]); }

}  // namespace

std::string gradients_source() { return problem_source() + kGradientsSource; }

DeviceGradients::DeviceGradients(DeviceCall& forward, OpenClDevice& device, const cl::Program& program)
    : forward_(forward),
      call_(forward.problem()),
      device_(device),
      rows_(program, "gradient_rows"),
      mask_(program, "gradient_of_mask"),
      sinks_(program, "gradient_of_sinks"),
      dout_(device.allocate(forward.rows() * static_cast<std::size_t>(call_.value_dim) * element())),
      dlse_(device.allocate(call_.dlse ? forward.rows() * element() : 0)),
      shift_(device.allocate(forward.rows() * element())) {
  for (const TensorId id : results())
    results_[index(id)] = GuardedBuffer(device, std::string(name_of(id)), elements(seen_shape(call_, id)) * element());
}

/// dq, dk and dv are computed always, since others need no more than they do.
std::vector<TensorId> DeviceGradients::results() const {
  std::vector<TensorId> list = {TensorId::dq, TensorId::dk, TensorId::dv};
  if (call_.wants(Output::dmask)) list.push_back(TensorId::dmask);
  if (call_.wants(Output::dsinks)) list.push_back(TensorId::dsinks);
  return list;
}

void DeviceGradients::upload(const Inputs& inputs) {
  write(inputs.dout(), dout_);
  if (inputs.dlse()) write(*inputs.dlse(), dlse_);
  if (!call_.runs_forward()) {
    write(inputs.saved_o(), forward_.out());
    write(inputs.saved_lse(), forward_.lse());
  }
  for (const TensorId id : results()) results_[index(id)].reset(device_.queue());
  device_.queue().finish();
  cl_uint n = set_common(rows_);
  rows_.setArg(n++, dlse_);
  rows_.setArg(n, static_cast<cl_int>(inputs.dlse() != nullptr));
  if (call_.wants(Output::dmask)) {
    cl_int axes = 0;
    for (std::size_t axis = 0; axis < 4; ++axis) axes |= cl_int{call_.mask->kept[axis]} << axis;
    n = set_common(mask_, {TensorId::dmask});
    mask_.setArg(n++, axes);
    mask_.setArg(n, static_cast<cl_long>(elements(stored_shape(call_, TensorId::mask))));
  }
  if (call_.wants(Output::dsinks)) set_common(sinks_, {TensorId::dsinks});
}

cl_uint DeviceGradients::set_common(cl::Kernel& kernel, std::initializer_list<TensorId> results) const {
  cl_uint n = forward_.set_common(kernel);
  kernel.setArg(n++, dout_);
  kernel.setArg(n++, shift_);
  for (const TensorId id : results) kernel.setArg(n++, result(id));
  return n;
}

void DeviceGradients::enqueue_rows() { device_.enqueue_rows(rows_, forward_.rows()); }

void DeviceGradients::enqueue_rest() {
  if (call_.wants(Output::dmask)) device_.enqueue_rows(mask_, elements(stored_shape(call_, TensorId::mask)));
  if (call_.wants(Output::dsinks)) device_.enqueue_rows(sinks_, static_cast<std::size_t>(call_.query_heads));
}

void DeviceGradients::download(const Outputs& outputs) const {
  for (const TensorId id : results()) {
    if (const MutableTensor* to = outputs.find(id))
      forward_.fetch(results_[index(id)], *to, accumulator_of(call_.dtype), id == TensorId::dk || id == TensorId::dv);
  }
}

/// A tensor of the queries' rows, whatever its type and strides, as dense numbers of the accumulator's type. Rows that
/// are not stored are not written.
void DeviceGradients::write(const ConstTensor& from, const cl::Buffer& to) const {
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

}  // namespace attest::support
