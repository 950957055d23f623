#include "harness/inputs.h"

#include <algorithm>
#include <cstring>

#include "harness/fill.h"
#include "reference/attention.h"

namespace attest {
namespace {

// A quiet NaN with a payload nobody computes. Also what unwritten outputs are recognised by.
constexpr std::uint32_t kPattern32 = 0x7fe5a5a5u;
constexpr std::uint64_t kPattern64 = 0x7ffca5a5a5a5a5a5u;

std::size_t pattern_size(DType dtype) { return size_of(dtype); }

void fill_pattern(std::vector<std::byte>& bytes, DType dtype) {
  const std::size_t step = pattern_size(dtype);
  for (std::size_t at = 0; at + step <= bytes.size(); at += step) {
    if (dtype == DType::f64) std::memcpy(bytes.data() + at, &kPattern64, step);
    else std::memcpy(bytes.data() + at, &kPattern32, step);
  }
}

bool is_pattern(const std::vector<std::byte>& bytes, DType dtype, std::size_t element) {
  const std::byte* at = bytes.data() + element * size_of(dtype);
  return dtype == DType::f64 ? std::memcmp(at, &kPattern64, 8) == 0 : std::memcmp(at, &kPattern32, 4) == 0;
}

/// For each key of one key head: whether any query of any head of the group sees it.
std::vector<char> keys_seen(const Problem& p, const Inputs& inputs, std::int64_t b, std::int64_t group) {
  std::vector<char> seen(static_cast<std::size_t>(p.key_length), 0);
  const std::int64_t first = group * p.heads_per_group();
  for (std::int64_t j = 0; j < p.key_length; ++j) {
    for (std::int64_t h = first; h < first + p.heads_per_group() && !seen[static_cast<std::size_t>(j)]; ++h) {
      for (std::int64_t i = 0; i < p.query_length; ++i) {
        if (visible(p, inputs, b, h, i, j)) {
          seen[static_cast<std::size_t>(j)] = 1;
          break;
        }
      }
    }
  }
  return seen;
}

/// Writes the tensor's values. With `seen`, hidden rows become NaN first, so that a row that shares storage with a
/// visible one (stride 0) ends as the visible one's.
void fill_tensor(const Problem& p, TensorId id, TensorStorage& storage,
                 const std::vector<std::vector<char>>* seen) {
  const TensorFill fill(p, id);
  const Index4 n = storage.shape();
  for (int pass = seen ? 0 : 1; pass < 2; ++pass) {
    for (std::int64_t b = 0; b < n[0]; ++b) {
      for (std::int64_t h = 0; h < n[1]; ++h) {
        for (std::int64_t l = 0; l < n[2]; ++l) {
          const bool hidden = seen && !(*seen)[static_cast<std::size_t>(b * n[1] + h)][static_cast<std::size_t>(l)];
          if (hidden != (pass == 0)) continue;
          for (std::int64_t d = 0; d < n[3]; ++d) storage.set(b, h, l, d, hidden ? kNaN : fill.at(b, h, l, d));
        }
      }
    }
  }
}

/// One NaN per key head, at a key that some query sees.
void poison_visible(const Problem& p, std::uint64_t stream, const std::vector<std::vector<char>>& seen,
                    TensorStorage& storage) {
  const Index4 n = storage.shape();
  for (std::int64_t b = 0; b < n[0]; ++b) {
    for (std::int64_t h = 0; h < n[1]; ++h) {
      const auto head = static_cast<std::uint64_t>(b * n[1] + h);
      const std::uint64_t bits = hash_words(p.seed, 4000 + stream, head);
      for (std::int64_t step = 0; step < n[2]; ++step) {
        const std::int64_t l = static_cast<std::int64_t>((bits + static_cast<std::uint64_t>(step)) %
                                                         static_cast<std::uint64_t>(n[2]));
        if (!seen[head][static_cast<std::size_t>(l)]) continue;
        storage.set(b, h, l, static_cast<std::int64_t>((bits >> 32) % static_cast<std::uint64_t>(n[3])), kNaN);
        break;
      }
    }
  }
}

}  // namespace

TensorStorage::TensorStorage(const Problem& problem, TensorId id, DType dtype)
    : bytes_(static_cast<std::size_t>(*storage_elements(problem, id)) * size_of(dtype)),
      dtype_(dtype),
      element_size_(size_of(dtype)),
      offset_(problem.tensor(id).offset),
      shape_(shape_of(problem, id)),
      strides_(strides_of(problem, id)) {
  fill_pattern(bytes_, dtype);
}

TensorStorage TensorStorage::boolean(const Problem& problem) {
  TensorStorage storage;
  storage.bytes_.assign(static_cast<std::size_t>(*storage_elements(problem, TensorId::mask)), std::byte{1});
  storage.element_size_ = 1;
  storage.offset_ = problem.tensor(TensorId::mask).offset;
  storage.shape_ = shape_of(problem, TensorId::mask);
  storage.strides_ = strides_of(problem, TensorId::mask);
  return storage;
}

void TensorStorage::set(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d, double value) {
  std::byte* to = bytes_.data() + static_cast<std::size_t>(at(b, h, l, d)) * element_size_;
  if (dtype_ == DType::f64) {
    std::memcpy(to, &value, sizeof value);
  } else {
    const auto rounded = static_cast<float>(value);
    std::memcpy(to, &rounded, sizeof rounded);
  }
}

void TensorStorage::set_byte(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, bool value) {
  bytes_[static_cast<std::size_t>(at(b, h, i, j))] = std::byte{value};
}

Inputs CaseInputs::views() const {
  Inputs inputs{q.view(), k.view(), v.view(), std::nullopt};
  if (has_mask) {
    const ConstTensor view = mask.view();
    Index4 strides = view.strides;
    for (int axis = 0; axis < 4; ++axis) {
      if (view.shape[axis] == 1) strides[axis] = 0;
    }
    inputs.mask = MaskTensor{additive, view.data, view.dtype, mask_shape, strides};
  }
  return inputs;
}

CaseInputs make_inputs(const Problem& p) {
  CaseInputs inputs;
  inputs.q = TensorStorage(p, TensorId::q, p.dtype);
  inputs.k = TensorStorage(p, TensorId::k, p.dtype);
  inputs.v = TensorStorage(p, TensorId::v, p.dtype);
  inputs.mask_shape = {p.batch, p.query_heads, p.query_length, p.key_length};
  if (p.mask) {
    inputs.has_mask = true;
    inputs.additive = p.mask->additive;
    inputs.mask = p.mask->additive ? TensorStorage(p, TensorId::mask, p.mask_dtype()) : TensorStorage::boolean(p);
    const MaskFill fill(p);
    const Index4 n = inputs.mask.shape();
    for (std::int64_t b = 0; b < n[0]; ++b) {
      for (std::int64_t h = 0; h < n[1]; ++h) {
        for (std::int64_t i = 0; i < n[2]; ++i) {
          for (std::int64_t j = 0; j < n[3]; ++j) {
            if (p.mask->additive) inputs.mask.set(b, h, i, j, fill.at(b, h, i, j));
            else inputs.mask.set_byte(b, h, i, j, fill.at(b, h, i, j) != 0);
          }
        }
      }
    }
  }
  std::vector<std::vector<char>> seen;
  if (!p.poison.empty()) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t g = 0; g < p.key_heads; ++g) seen.push_back(keys_seen(p, inputs.views(), b, g));
    }
  }
  const auto poisons = [&](const char* kind, const char* letter) {
    const std::size_t colon = p.poison.find(':');
    return p.poison.starts_with(kind) && p.poison.find(letter, colon) != std::string::npos;
  };
  fill_tensor(p, TensorId::q, inputs.q, nullptr);
  fill_tensor(p, TensorId::k, inputs.k, poisons("hidden", "k") ? &seen : nullptr);
  fill_tensor(p, TensorId::v, inputs.v, poisons("hidden", "v") ? &seen : nullptr);
  if (poisons("visible", "k")) poison_visible(p, 0, seen, inputs.k);
  if (poisons("visible", "v")) poison_visible(p, 1, seen, inputs.v);
  return inputs;
}

double GuardedOutputs::Tensor::at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
  return load(bytes.data(), dtype, first + b * strides[0] + h * strides[1] + l * strides[2] + d * strides[3]);
}

std::string GuardedOutputs::Tensor::inspect() const {
  const std::size_t count = bytes.size() / size_of(dtype);
  std::vector<char> inside(count, 0);
  std::int64_t unwritten = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t l = 0; l < shape[2]; ++l) {
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          const auto at = static_cast<std::size_t>(first + b * strides[0] + h * strides[1] + l * strides[2] +
                                                   d * strides[3]);
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

GuardedOutputs::GuardedOutputs(const Problem& p) : wants_lse_(p.wants(Output::lse)) {
  out_ = {"o", {}, p.dtype, kGuard + p.tensor(TensorId::out).offset, shape_of(p, TensorId::out),
          strides_of(p, TensorId::out)};
  out_.bytes.resize(static_cast<std::size_t>(*storage_elements(p, TensorId::out) + 2 * kGuard) * size_of(p.dtype));
  const Index4 n = {p.batch, p.query_heads, p.query_length, 1};
  lse_ = {"lse", {}, p.dtype, kGuard, n, {n[1] * n[2], n[2], 1, 1}};
  lse_.bytes.resize(static_cast<std::size_t>(n[0] * n[1] * n[2] + 2 * kGuard) * size_of(p.dtype));
  reset();
}

void GuardedOutputs::reset() {
  fill_pattern(out_.bytes, out_.dtype);
  fill_pattern(lse_.bytes, lse_.dtype);
}

Outputs GuardedOutputs::views() {
  const auto view = [](Tensor& t) {
    return MutableTensor{t.bytes.data() + static_cast<std::size_t>(t.first) * size_of(t.dtype), t.dtype, t.shape,
                         t.strides};
  };
  Outputs outputs{view(out_), std::nullopt};
  if (wants_lse_) outputs.lse = view(lse_);
  return outputs;
}

double GuardedOutputs::out(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const {
  return out_.at(b, h, i, c);
}

double GuardedOutputs::lse(std::int64_t b, std::int64_t h, std::int64_t i) const { return lse_.at(b, h, i, 0); }

std::string GuardedOutputs::inspect() const {
  const std::string out = out_.inspect();
  return out.empty() && wants_lse_ ? lse_.inspect() : out;
}

double storage_bytes(const Problem& p) {
  double bytes = 0;
  for (TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::out, TensorId::mask}) {
    if (id == TensorId::mask && !p.mask) continue;
    const std::size_t size = id == TensorId::mask && !p.mask->additive ? 1 : 8;
    const double element = id == TensorId::mask ? static_cast<double>(size) : static_cast<double>(size_of(p.dtype));
    bytes += element * static_cast<double>(*storage_elements(p, id));
  }
  return bytes;
}

}  // namespace attest
