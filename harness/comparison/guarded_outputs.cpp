#include "harness/comparison/guarded_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "harness/cases/guard_pattern.h"
#include "reference/call/tensor_place.h"

namespace attest {
GuardedOutputs::Tensor::Tensor(TensorId id_, DType dtype_, TensorPlace place_)
    : id(id_), name(row_of(id_).name), dtype(dtype_), place(std::move(place_)) {
  const std::size_t size = static_cast<std::size_t>(*place.elements + 2 * kGuard) * size_of(dtype);
  place.offset += kGuard;
  bytes = TensorBytes(size, used_ranges(place, dtype, size));
  for (const ByteRange& range : bytes.used()) fill_pattern(bytes.part(range), dtype);
}

MutableTensor GuardedOutputs::Tensor::view() {
  return {bytes.data() + static_cast<std::size_t>(place.offset) * size_of(dtype), dtype, place.shape, place.strides,
          place.starts_data()};
}

void GuardedOutputs::Tensor::read_row(std::int64_t b, std::int64_t h, std::int64_t l, std::span<double> values) const {
  std::int64_t at = place.element(b, h, l, 0);
  with_elements(bytes.data(), dtype, [&](const auto& elements, const auto& to_number) {
    for (double& value : values) {
      value = static_cast<double>(to_number(elements[at]));
      at += place.strides[3];
    }
  });
}

std::int64_t GuardedOutputs::Tensor::elements_written() const {
  std::int64_t written = 0;
  for (std::int64_t b = 0; b < place.shape[0]; ++b) {
    for (std::int64_t h = 0; h < place.shape[1]; ++h) {
      for (std::int64_t l = 0; l < place.rows(b); ++l) {
        written += count_written(bytes.data(), dtype, place.element(b, h, l, 0), place.shape[3], place.strides[3]);
      }
    }
  }
  return written;
}

std::int64_t GuardedOutputs::Tensor::places_written() const {
  const std::size_t size = size_of(dtype);
  std::int64_t written = 0;
  for (const ByteRange& range : bytes.used()) {
    written += count_written(bytes.data(), dtype, static_cast<std::int64_t>(range.first / size),
                             static_cast<std::int64_t>(range.size() / size), 1);
  }
  return written;
}

std::int64_t GuardedOutputs::Tensor::find_write_outside() const {
  const std::size_t size = size_of(dtype);
  // One flag for each element of the memory that is used, part after part.
  std::vector<std::size_t> flags_before;
  std::size_t count = 0;
  for (const ByteRange& range : bytes.used()) {
    flags_before.push_back(count);
    count += range.size() / size;
  }
  std::vector<char> inside(count, 0);
  std::size_t part = 0;
  const auto flag_of = [&](std::size_t at) -> char& {
    const std::vector<ByteRange>& used = bytes.used();
    if (at * size < used[part].first || at * size >= used[part].end) {
      const auto behind = std::upper_bound(used.begin(), used.end(), at * size,
                                           [](std::size_t byte, const ByteRange& range) { return byte < range.first; });
      part = static_cast<std::size_t>(behind - used.begin()) - 1;
    }
    return inside[flags_before[part] + at - used[part].first / size];
  };
  for (std::int64_t b = 0; b < place.shape[0]; ++b) {
    for (std::int64_t h = 0; h < place.shape[1]; ++h) {
      for (std::int64_t l = 0; l < place.rows(b); ++l) {
        for (std::int64_t d = 0; d < place.shape[3]; ++d)
          flag_of(static_cast<std::size_t>(place.element(b, h, l, d))) = 1;
      }
    }
  }
  for (std::size_t n = 0; n < bytes.used().size(); ++n) {
    const ByteRange& range = bytes.used()[n];
    for (std::size_t k = 0; k < range.size() / size; ++k) {
      const std::size_t at = range.first / size + k;
      if (!inside[flags_before[n] + k] && !is_pattern(bytes.data(), dtype, at)) return static_cast<std::int64_t>(at);
    }
  }
  return -1;
}

OutputFault GuardedOutputs::Tensor::inspect() const {
  const std::int64_t written = elements_written();
  // No two elements of an output share storage: as many places as elements, and nothing was written outside.
  if (places_written() != written) {
    if (const std::int64_t at = find_write_outside(); at >= 0) {
      return {{Cause::wrote_outside},
              "wrote outside " + name + ": at element " + std::to_string(at - place.offset) + " of its storage"};
    }
  }
  std::int64_t elements = 0;
  for (std::int64_t b = 0; b < place.shape[0]; ++b) elements += place.shape[1] * place.rows(b) * place.shape[3];
  const std::int64_t unwritten = elements - written;
  if (unwritten > 0)
    return {{Cause::unwritten}, "left " + std::to_string(unwritten) + " element(s) of " + name + " unwritten"};
  return {};
}

GuardedOutputs::GuardedOutputs(const Call& p) {
  for (const TensorId id : outputs_of(p)) tensors_.emplace_back(id, type_of(p, id), place_of(p, id));
}

void GuardedOutputs::reset() {
  for (Tensor& tensor : tensors_) {
    for (const ByteRange& range : tensor.bytes.used()) fill_pattern(tensor.bytes.part(range), tensor.dtype);
  }
}

void GuardedOutputs::reset_to_zeros() {
  for (Tensor& tensor : tensors_) {
    for (const ByteRange& range : tensor.bytes.used()) std::ranges::fill(tensor.bytes.part(range), std::byte{0});
  }
}

std::string GuardedOutputs::difference_from(const GuardedOutputs& other) const {
  for (std::size_t number = 0; number < tensors_.size(); ++number) {
    const Tensor &now = tensors_[number], &was = other.tensors_[number];
    if (now.bytes == was.bytes) continue;
    const std::size_t size = size_of(now.dtype);
    const auto differs = [&](std::size_t at) {
      return std::memcmp(now.bytes.data() + at * size, was.bytes.data() + at * size, size) != 0;
    };
    std::int64_t element = -1;
    for (const ByteRange& range : now.bytes.used()) {
      for (std::size_t at = range.first / size; element < 0 && at < range.end / size; ++at) {
        if (differs(at)) element = static_cast<std::int64_t>(at);
      }
    }
    return fmt::format("element {} of {}'s storage is {:.9g}, was {:.9g}", element - now.place.offset, now.name,
                       load(now.bytes.data(), now.dtype, element), load(was.bytes.data(), was.dtype, element));
  }
  return "";
}

Outputs GuardedOutputs::views() {
  Outputs outputs;
  for (Tensor& tensor : tensors_) outputs.set(tensor.id, tensor.view());
  return outputs;
}

ConstTensor GuardedOutputs::view(TensorId id) const {
  const Tensor& one = tensor(id);
  return {one.bytes.data() + static_cast<std::size_t>(one.place.offset) * size_of(one.dtype), one.dtype,
          one.place.shape, one.place.strides, one.place.starts_data()};
}

const GuardedOutputs::Tensor& GuardedOutputs::tensor(TensorId id) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& one) { return one.id == id; });
  if (found == tensors_.end()) throw std::logic_error("the call has no output " + std::string(name_of(id)));
  return *found;
}

OutputFault GuardedOutputs::inspect() const {
  for (const Tensor& tensor : tensors_) {
    if (OutputFault fault = tensor.inspect(); !fault.empty()) return fault;
  }
  return {};
}

}  // namespace attest
