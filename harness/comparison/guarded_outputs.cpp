#include "harness/comparison/guarded_outputs.h"

#include <cstring>

#include "reference/operator.h"

namespace attest {
namespace {

// Quiet NaNs with payloads nobody computes. 0x7fe5 is one in both 16-bit types.
constexpr std::uint16_t kPattern16 = 0x7fe5u;
constexpr std::uint32_t kPattern32 = 0x7fe5a5a5u;
constexpr std::uint64_t kPattern64 = 0x7ffca5a5a5a5a5a5u;

const void* pattern_of(DType dtype) {
  switch (size_of(dtype)) {
    case 8: return &kPattern64;
    case 4: return &kPattern32;
    default: return &kPattern16;
  }
}

bool is_pattern(const std::vector<std::byte>& bytes, DType dtype, std::size_t element) {
  return std::memcmp(bytes.data() + element * size_of(dtype), pattern_of(dtype), size_of(dtype)) == 0;
}

}  // namespace

void fill_pattern(std::vector<std::byte>& bytes, DType dtype) {
  const std::size_t step = size_of(dtype);
  for (std::size_t at = 0; at + step <= bytes.size(); at += step)
    std::memcpy(bytes.data() + at, pattern_of(dtype), step);
}

GuardedOutputs::Tensor::Tensor(std::string name_, DType dtype_, const Index4& n)
    : name(std::move(name_)),
      dtype(dtype_),
      first(kGuard),
      shape(n),
      strides{n[1] * n[2] * n[3], n[2] * n[3], n[3], 1} {
  allocate(n[0] * n[1] * n[2] * n[3]);
}

void GuardedOutputs::Tensor::allocate(std::int64_t elements) {
  bytes.resize(static_cast<std::size_t>(elements + 2 * kGuard) * size_of(dtype));
  fill_pattern(bytes, dtype);
}

MutableTensor GuardedOutputs::Tensor::view() {
  return {bytes.data() + static_cast<std::size_t>(first) * size_of(dtype), dtype, shape, strides,
          starts.empty() ? nullptr : starts.data()};
}

double GuardedOutputs::Tensor::at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
  return load(bytes.data(), dtype, first + element_at(strides, starts.empty() ? nullptr : starts.data(), b, h, l, d));
}

std::string GuardedOutputs::Tensor::inspect() const {
  const std::size_t count = bytes.size() / size_of(dtype);
  std::vector<char> inside(count, 0);
  std::int64_t unwritten = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    const auto n = static_cast<std::size_t>(b);
    const std::int64_t rows = starts.empty() ? shape[2] : starts[n + 1] - starts[n];
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t l = 0; l < rows; ++l) {
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          const auto at = static_cast<std::size_t>(
              first + element_at(strides, starts.empty() ? nullptr : starts.data(), b, h, l, d));
          inside[at] = 1;
          if (is_pattern(bytes, dtype, at)) ++unwritten;
        }
      }
    }
  }
  for (std::size_t n = 0; n < count; ++n) {
    if (!inside[n] && !is_pattern(bytes, dtype, n)) {
      return "wrote outside " + name + ": at element " + std::to_string(static_cast<std::int64_t>(n) - first) +
             " of its storage";
    }
  }
  if (unwritten > 0) return "left " + std::to_string(unwritten) + " element(s) of " + name + " unwritten";
  return "";
}

/// Calls visit for every tensor that exists, with its index.
template <class Self, class Visit>
void GuardedOutputs::each(Self& self, const Visit& visit) {
  for (auto* tensor : {&self.out_, &self.lse_, &self.raw_, &self.capped_, &self.biased_, &self.weights_}) {
    if (!tensor->name.empty()) visit(*tensor);
  }
  for (auto& tensor : self.present_) visit(tensor);
}

GuardedOutputs::GuardedOutputs(const Problem& p) {
  out_.name = "o";
  out_.dtype = p.dtype;
  out_.first = kGuard + p.tensor(TensorId::out).offset;
  out_.shape = shape_of(p, TensorId::out);
  out_.strides = strides_of(p, TensorId::out);
  if (p.packed_sequences()) out_.starts = starts_of(p, TensorId::out);
  out_.allocate(*storage_elements(p, TensorId::out));
  if (p.wants(Output::lse)) {
    lse_ = Tensor("lse", accumulator_of(p.dtype), {p.batch, p.query_heads, p.query_length, 1});
    if (p.packed_sequences()) {  // one number for each row that is stored, heads side by side
      lse_.starts = out_.starts;
      lse_.strides = {0, 1, p.query_heads, 1};
      lse_.allocate(p.query_heads * out_.starts.back());
    }
  }
  const auto stage = [&](Output which, Tensor& tensor) {
    if (!p.wants(which)) return;
    tensor = Tensor(std::string(kOutputNames[static_cast<std::size_t>(which)]), p.dtype,
                    {p.batch, p.query_heads, p.query_length, p.key_length});
  };
  stage(Output::raw, raw_);
  stage(Output::capped, capped_);
  stage(Output::biased, biased_);
  stage(Output::weights, weights_);
  for (const PresentOutput& output : present_outputs(p)) {
    present_.emplace_back(std::string(output.name), p.dtype, output.shape);
    places_.push_back(output.place);
  }
}

void GuardedOutputs::reset() {
  each(*this, [](Tensor& tensor) { fill_pattern(tensor.bytes, tensor.dtype); });
}

Outputs GuardedOutputs::views() {
  Outputs outputs;
  outputs.out = out_.view();
  const auto set = [](Tensor& tensor, std::optional<MutableTensor>& view) {
    if (!tensor.name.empty()) view = tensor.view();
  };
  set(lse_, outputs.lse);
  set(raw_, outputs.raw);
  set(capped_, outputs.capped);
  set(biased_, outputs.biased);
  set(weights_, outputs.weights);
  for (std::size_t n = 0; n < present_.size(); ++n) set(present_[n], outputs.*places_[n]);
  return outputs;
}

double GuardedOutputs::stage(Output stage, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  const Tensor& tensor = stage == Output::raw      ? raw_
                         : stage == Output::capped ? capped_
                         : stage == Output::biased ? biased_
                                                   : weights_;
  return tensor.at(b, h, i, j);
}

std::string GuardedOutputs::inspect() const {
  std::string first;
  each(*this, [&](const Tensor& tensor) {
    if (first.empty()) first = tensor.inspect();
  });
  return first;
}

void run_once(Backend& backend, const Problem& problem, const Inputs& inputs, GuardedOutputs& outputs) {
  const auto plan = backend.prepare(problem);
  plan->upload(inputs);
  plan->run();
  plan->download(outputs.views());
}

}  // namespace attest
