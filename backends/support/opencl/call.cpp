#include "backends/support/opencl/call.h"

#include <vector>

#include "backends/support/dropout.h"
#include "backends/support/host_results.h"
#include "backends/support/opencl/gaps.h"
#include "backends/support/visibility.h"
#include "problem_cl.h"
#include "reference/call/tensor_place.h"

namespace attest::support {
namespace {

cl_long mask_kind(const ConstTensor* mask) {
  if (!mask) return 0;
  switch (mask->dtype) {
    case DType::boolean: return 1;
    case DType::f32: return 2;
    case DType::f64: return 3;
    case DType::f16: return 4;
    case DType::bf16: return 5;
    default: return 0;
  }
}

constexpr std::array<Output, 4> kStages = {Output::raw, Output::capped, Output::biased, Output::weights};

}  // namespace

std::string problem_source() { return kProblemSource; }

std::string type_options(const Call& p, const OpenClDevice& device) {
  std::string options =
      std::string("-cl-std=CL1.2 -DREAL=") + (p.dtype == DType::f64 ? "double -DREAL_IS_DOUBLE" : "float");
  if (p.dtype == DType::f16) options += " -DSTORE_F16";
  if (p.dtype == DType::bf16) options += " -DSTORE_BF16";
  return options + (device.has_double() ? " -DHAS_DOUBLE" : "");
}

std::optional<Refusal> refuse_allocation(const std::string& what, double bytes, const OpenClDevice& device) {
  if (bytes <= static_cast<double>(device.max_allocation())) return std::nullopt;
  return Refusal{what + " needs " + std::to_string(static_cast<long>(bytes / 0x1p20)) +
                 " MiB, the device allocates at most " + std::to_string(device.max_allocation() >> 20)};
}

std::optional<Refusal> refuse_on_device(const Call& p, const OpenClDevice& device) {
  const bool double_mask = p.mask && p.mask->additive && type_of(p, TensorId::mask) == DType::f64;
  if ((p.dtype == DType::f64 || double_mask) && !device.has_double()) {
    return Refusal{"f64: the device has no double precision"};
  }
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::past_k, TensorId::past_v, TensorId::decay,
                            TensorId::beta, TensorId::state}) {
    if (has_tensor(p, id) && type_of(p, id) != p.dtype)
      return Refusal{std::string(name_of(id)) + ".dtype: another type than the call's"};
  }
  for (TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::mask}) {
    if (id == TensorId::mask && !p.mask) continue;
    const double bytes = device_bytes(place_of(p, id), size_of(type_of(p, id)));
    if (auto refusal = refuse_allocation(std::string(name_of(id)), bytes, device)) return refusal;
  }
  if (p.wants_scores()) {
    const double numbers = static_cast<double>(p.batch * p.query_heads) * static_cast<double>(p.query_length) *
                           static_cast<double>(p.key_length);
    return refuse_allocation("a stage of the scores", numbers * static_cast<double>(size_of(accumulator_of(p.dtype))),
                             device);
  }
  return std::nullopt;
}

DeviceCall::DeviceCall(const Call& p, OpenClDevice& device, const cl::Program& program)
    : problem_(p),
      device_(device),
      element_(size_of(accumulator_of(p.dtype))),
      rows_count_(static_cast<std::size_t>(p.batch * p.query_heads * p.query_length)),
      key_rows_(static_cast<std::size_t>(p.batch * p.key_heads * p.key_length)) {
  const auto count = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  out_ = GuardedBuffer(device, "out", rows_count_ * count(p.value_dim) * element_);
  lse_ = GuardedBuffer(device, "lse", rows_count_ * element_);
  for (std::size_t n = 0; n < kStages.size(); ++n) {
    const std::string what(name_of(kStages[n]));
    stages_[n] = GuardedBuffer(device, what, p.wants(kStages[n]) ? rows_count_ * count(p.key_length) * element_ : 0);
  }
  if (p.wants_scores()) stages_kernel_ = checked([&] { return cl::Kernel(program, "write_stages"); });
  if (p.wants(Output::present)) {
    present_k_ = GuardedBuffer(device, "present_k", key_rows_ * count(p.key_dim) * size_of(p.dtype));
    present_v_ = GuardedBuffer(device, "present_v", key_rows_ * count(p.value_dim) * size_of(p.dtype));
    present_kernel_ = checked([&] { return cl::Kernel(program, "append_past"); });
  }
  // What each row sees before masks depends on the problem alone.
  const Inputs no_inputs{};
  const Visibility visibility(p, no_inputs);
  std::vector<cl_long> ranges;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t i = 0; i < p.query_length; ++i) {
      const RowKeys row = visibility.row(b, i);
      ranges.insert(ranges.end(), {row.prefix.first, row.prefix.last, row.band.first, row.band.last, row.diagonal});
    }
  }
  checked([&] {
    write(ranges_, 0, ranges.data(), ranges.size() * sizeof(cl_long));
    device_.queue().finish();
  });
}

/// Enqueues a copy into a buffer that grows when needed; the caller waits.
void DeviceCall::write(cl::Buffer& buffer, std::size_t slot, const void* data, std::size_t bytes) {
  if (buffer() == nullptr || bytes > capacity_[slot]) {
    buffer = device_.allocate(bytes);
    capacity_[slot] = bytes;
  }
  if (bytes > 0) device_.queue().enqueueWriteBuffer(buffer, CL_FALSE, 0, bytes, data);
}

void DeviceCall::write_tables(const Inputs& inputs) {
  const Call& p = problem_;
  std::vector<cl_long> tables;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v}) {
      // A paged cache has pages where others have batches.
      tables.push_back(inputs.page_table() && id != TensorId::q ? 0 : inputs.at(id).offset(b, 0, 0, 0));
    }
    tables.push_back(p.packed_sequences() ? p.query_count(b) : p.query_length);
    tables.push_back(p.stored_keys(b));
    tables.push_back(inputs.past_length(b));
  }
  if (const ConstTensor* table = inputs.page_table()) {
    const auto* entries = static_cast<const std::int32_t*>(table->data);
    tables.insert(tables.end(), entries, entries + table->shape[0] * table->shape[3]);
  }
  write(tables_, 1, tables.data(), tables.size() * sizeof(cl_long));

  const auto write_small = [&](auto zero) {
    // Sinks first, then slopes: as problem.cl reads them.
    using Real = decltype(zero);
    std::vector<Real> small;
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      small.push_back(inputs.sinks() ? static_cast<Real>(inputs.sink(h)) : zero);
    }
    for (std::int64_t b = 0; inputs.slopes() && b < (p.slopes_per_batch() ? p.batch : 1); ++b) {
      for (std::int64_t h = 0; h < p.query_heads; ++h) small.push_back(static_cast<Real>(inputs.slope(b, h)));
    }
    write(small_, 2, small.data(), small.size() * sizeof zero);
    device_.queue().finish();
  };
  if (element_ == 8)
    write_small(0.0);
  else
    write_small(0.0f);
}

void DeviceCall::upload(const Inputs& given) {
  const Call& p = problem_;
  const WithoutGaps dense(given);
  const Inputs& inputs = dense.inputs();
  checked([&] {
    const auto tensor = [&](std::size_t slot, cl::Buffer& buffer, const ConstTensor& t) {
      write(buffer, slot, t.data, t.data ? span_bytes(t) : 0);
    };
    tensor(3, q_, inputs.q());
    tensor(4, k_, inputs.k());
    tensor(5, v_, inputs.v());
    tensor(6, past_k_, inputs.past_k());
    tensor(7, past_v_, inputs.past_v());
    tensor(8, mask_, inputs.at(TensorId::mask));
    if (inputs.blocks() || blocks_() == nullptr) tensor(9, blocks_, inputs.at(TensorId::blocks));
    tensor(10, keep_, inputs.at(TensorId::keep));
    write_tables(inputs);
    for (GuardedBuffer* results : results_of_call()) results->reset(device_.queue());
    device_.queue().finish();
  });

  DeviceProblem& d = fields_;
  d = {};
  d.query_heads = p.query_heads;
  d.key_heads = p.key_heads;
  d.group = p.heads_per_group();
  d.query_length = p.query_length;
  d.key_length = p.key_length;
  d.key_dim = p.key_dim;
  d.value_dim = p.value_dim;
  d.batch = p.batch;
  for (int axis = 0; axis < 4; ++axis) {
    d.q[axis] = inputs.q().strides[axis];
    d.k[axis] = inputs.k().strides[axis];
    d.v[axis] = inputs.v().strides[axis];
    d.mask[axis] = inputs.mask() ? inputs.mask()->strides[axis] : 0;
  }
  d.mask_kind = mask_kind(inputs.mask());
  d.past = inputs.past_k().data ? p.past : 0;
  if (const ConstTensor* table = inputs.page_table()) {
    d.page_size = inputs.rows_of_page();
    d.page_stride = table->shape[3];
  }
  d.has_slopes = !inputs.slopes() ? 0 : p.slopes_per_batch() ? 2 : 1;
  d.has_sinks = inputs.sinks() != nullptr;
  d.has_softcap = p.softcap.has_value();
  d.dropout = inputs.keep() ? 2 : p.dropout > 0 ? 1 : 0;
  if (inputs.blocks()) {
    d.block_rows = inputs.blocks()->shape[2];
    d.block_columns = inputs.blocks()->shape[3];
    d.rows_per_block = p.blocks->rows;
    d.keys_per_block = p.blocks->columns;
  }
  d.seed = p.dropout_seed;
  d.drop_below = drop_below(p.dropout);
}

void DeviceCall::set_real(cl::Kernel& kernel, cl_uint argument, double value) const {
  if (element_ == 8)
    kernel.setArg(argument, static_cast<cl_double>(value));
  else
    kernel.setArg(argument, static_cast<cl_float>(value));
}

cl_uint DeviceCall::set_common(cl::Kernel& kernel) const {
  cl_uint n = 0;
  kernel.setArg(n++, fields_);
  set_real(kernel, n++, problem_.scale_value());
  set_real(kernel, n++, problem_.softcap.value_or(0));
  set_real(kernel, n++, 1 / (1 - problem_.dropout));
  for (const cl::Buffer* buffer : {&q_, &k_, &v_, &past_k_, &past_v_, &mask_, &ranges_, &tables_, &small_, &blocks_,
                                   &keep_, &out_.inside(), &lse_.inside()}) {
    kernel.setArg(n++, *buffer);
  }
  return n;
}

void DeviceCall::enqueue_rest() {
  if (problem_.wants_scores() && rows_count_ > 0) {
    cl_uint n = set_common(stages_kernel_);
    cl_int wanted = 0;
    for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
      stages_kernel_.setArg(n++, stages_[stage].inside());
      if (problem_.wants(kStages[stage])) wanted |= cl_int{1} << stage;
    }
    stages_kernel_.setArg(n, wanted);
    device_.enqueue_rows(stages_kernel_, rows_count_);
  }
  if (problem_.wants(Output::present) && key_rows_ > 0) {
    cl_uint n = set_common(present_kernel_);
    present_kernel_.setArg(n++, present_k_.inside());
    present_kernel_.setArg(n, present_v_.inside());
    device_.enqueue_rows(present_kernel_, key_rows_);
  }
}

std::vector<GuardedBuffer*> DeviceCall::results_of_call() {
  std::vector<GuardedBuffer*> list = {&out_, &lse_};
  for (std::size_t n = 0; n < kStages.size(); ++n) {
    if (problem_.wants(kStages[n])) list.push_back(&stages_[n]);
  }
  if (problem_.wants(Output::present)) list.insert(list.end(), {&present_k_, &present_v_});
  return list;
}

void DeviceCall::fetch(const GuardedBuffer& from, const MutableTensor& to, DType type, bool of_keys) const {
  from.inspect(device_.queue());
  const Index4 n = to.shape;
  const auto elements = static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]);
  if (elements == 0) return;
  std::vector<std::byte> bytes(elements * size_of(type));
  device_.queue().enqueueReadBuffer(from.inside(), CL_TRUE, 0, bytes.size(), bytes.data());
  for (std::int64_t b = 0; b < n[0]; ++b) {
    // The view may have strides, packed rows, and fewer bits.
    std::int64_t rows = n[2];
    if (to.starts)
      rows = of_keys ? std::min(problem_.key_count(b), to.starts[b + 1] - to.starts[b]) : problem_.query_count(b);
    for (std::int64_t h = 0; h < n[1]; ++h) {
      for (std::int64_t l = 0; l < rows; ++l) {
        const std::int64_t at = ((b * n[1] + h) * n[2] + l) * n[3];
        if (type == DType::f32) {
          store_row(to, to.offset(b, h, l, 0), reinterpret_cast<const float*>(bytes.data()) + at);
          continue;
        }
        for (std::int64_t d = 0; d < n[3]; ++d)
          store(to.data, to.dtype, to.offset(b, h, l, d), load(bytes.data(), type, at + d));
      }
    }
  }
}

void DeviceCall::download(const Outputs& outputs) const {
  if (!problem_.runs_forward()) return;
  checked([&] {
    const DType accumulator = accumulator_of(problem_.dtype);
    fetch(out_, outputs.out(), accumulator);
    if (outputs.lse()) fetch(lse_, *outputs.lse(), accumulator);
    const std::array<const MutableTensor*, 4> views = {outputs.raw(), outputs.capped(), outputs.biased(),
                                                       outputs.weights()};
    for (std::size_t n = 0; n < views.size(); ++n) {
      if (views[n]) fetch(stages_[n], *views[n], accumulator);
    }
    if (outputs.present_k()) fetch(present_k_, *outputs.present_k(), problem_.dtype);
    if (outputs.present_v()) fetch(present_v_, *outputs.present_v(), problem_.dtype);
  });
}

}  // namespace attest::support
