#include "harness/run/stored_order.h"

#include <algorithm>
#include <utility>

namespace attest {
namespace {

/// Of storage types and of those that mark or count things.
std::string name_in_file(DType type) {
  if (type == DType::boolean) return "BOOL";
  return type == DType::i32 ? "I32" : file_type_of(type);
}

}  // namespace

StoredOrder::StoredOrder(const Call& call, TensorId id) : place_(place_of(call, id)) {
  const Index4& n = place_.shape;
  if (!place_.starts.empty()) {
    std::int64_t rows = 0;
    for (std::int64_t b = 0; b < n[0]; ++b) {
      first_rows_.push_back(rows);
      rows += place_.rows(b);
    }
    shape_ = {rows, n[1], n[3]};
    return;
  }
  // Where a tensor has one head or one row, its strides don't tell.
  const bool same = place_.strides[1] == place_.strides[2];
  rows_first_ = has_layout(id) && (place_.strides[1] < place_.strides[2] || (same && call.layout != Layout::bhld));
  shape_.assign(n.begin(), n.end());
  if (rows_first_) std::swap(shape_[1], shape_[2]);
}

std::int64_t StoredOrder::size() const {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape_) elements *= extent;
  return elements;
}

std::size_t StoredOrder::at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
  const Index4& n = place_.shape;
  std::int64_t row = (b * n[1] + h) * n[2] + l;
  if (rows_first_) row = (b * n[2] + l) * n[1] + h;
  if (!first_rows_.empty()) row = (first_rows_[static_cast<std::size_t>(b)] + l) * n[1] + h;
  return static_cast<std::size_t>(row * n[3] + d);
}

FileTensor stored_tensor(const Call& call, TensorId id, const ConstTensor& view) {
  const StoredOrder order(call, id);
  FileTensor tensor{name_in_file(view.dtype), order.shape(), {}};
  tensor.bytes.resize(bytes_of(view.dtype, static_cast<std::size_t>(order.size())));
  const auto* from = static_cast<const std::byte*>(view.data);
  order.each([&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    const std::int64_t there = view.offset(b, h, l, d);
    const std::size_t here = order.at(b, h, l, d);
    if (is_packed_in_pairs(view.dtype)) {
      store_half_byte(tensor.bytes.data(), static_cast<std::int64_t>(here), HalfBytes(from)[there]);
    } else {
      const std::size_t width = size_of(view.dtype);
      std::copy_n(from + static_cast<std::size_t>(there) * width, width, tensor.bytes.data() + here * width);
    }
  });
  return tensor;
}

}  // namespace attest
