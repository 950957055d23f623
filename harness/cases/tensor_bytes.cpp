#include "harness/cases/tensor_bytes.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace attest {
namespace {

/// On either side of an element: a neighbour that a kernel reads or writes by mistake lies there.
constexpr std::size_t kAround = 8192;

/// With more rows or elements than this a tensor counts as used whole, and where what it uses is a good part of its
/// bytes: it is no small one with large strides.
constexpr double kMostRanges = 1 << 20, kGoodPart = 1.0 / 8;

/// Joins what overlaps or touches.
std::vector<ByteRange> joined(std::vector<ByteRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](ByteRange a, ByteRange b) { return a.first < b.first; });
  std::vector<ByteRange> result;
  for (const ByteRange& range : ranges) {
    if (!result.empty() && range.first <= result.back().end) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

}  // namespace

std::vector<ByteRange> used_ranges(const TensorPlace& place, std::size_t element_size, std::size_t size) {
  const std::int64_t columns = place.shape[3];
  const bool rows_whole = place.strides[3] * static_cast<std::int64_t>(element_size) <= std::int64_t{kAround};
  double count = rows_whole ? 1 : static_cast<double>(columns);
  for (std::size_t axis = 0; axis < 3; ++axis) count *= static_cast<double>(place.shape[axis]);
  if (size <= kCompactBytes || count > kMostRanges) return {{0, size}};
  const double together =
      static_cast<double>(rows_whole ? columns * place.strides[3] : 1) * static_cast<double>(element_size);
  if (count * (together + 2.0 * kAround) > kGoodPart * static_cast<double>(size)) return {{0, size}};
  std::vector<ByteRange> ranges;
  const auto add = [&](std::int64_t element, std::int64_t last) {
    const std::size_t first = static_cast<std::size_t>(element) * element_size;
    const std::size_t end = static_cast<std::size_t>(last + 1) * element_size;
    ranges.push_back({first - std::min(first, kAround), std::min(end + kAround, size)});
  };
  for (std::int64_t b = 0; b < place.shape[0] && columns > 0; ++b) {
    for (std::int64_t h = 0; h < place.shape[1]; ++h) {
      for (std::int64_t l = 0; l < place.rows(b); ++l) {
        if (rows_whole) {
          add(place.element(b, h, l, 0), place.element(b, h, l, columns - 1));
        } else {
          for (std::int64_t d = 0; d < columns; ++d) add(place.element(b, h, l, d), place.element(b, h, l, d));
        }
      }
    }
  }
  return joined(std::move(ranges));
}

std::vector<ByteRange> used_ranges(const ConstTensor& view) {
  TensorPlace place;
  place.shape = view.shape;
  place.strides = view.strides;
  if (view.starts) place.starts.assign(view.starts, view.starts + view.shape[0] + 1);
  return used_ranges(place, size_of(view.dtype), span_bytes(view));
}

std::vector<ByteRange> used_ranges(const MutableTensor& view) {
  return used_ranges(ConstTensor{view.data, view.dtype, view.shape, view.strides, view.starts});
}

std::vector<ByteRange> used_ranges(const MaskTensor& mask) {
  TensorPlace place;
  place.shape = mask.shape;
  place.strides = mask.strides;
  return used_ranges(place, mask.additive ? size_of(mask.dtype) : 1, span_bytes(mask));
}

void TensorBytes::Release::operator()(std::byte* bytes) const {
  if (mapped > 0) {
    munmap(bytes, mapped);
  } else {
    delete[] bytes;
  }
}

std::unique_ptr<std::byte[], TensorBytes::Release> TensorBytes::take(std::size_t size) {
  if (size <= kCompactBytes) return {new std::byte[size](), Release{}};
  void* bytes =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, /*offset=*/0);
  if (bytes == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(bytes), Release{size}};
}

TensorBytes::TensorBytes(std::size_t size, std::vector<ByteRange> used)
    : bytes_(take(size)), size_(size), used_(std::move(used)) {}

TensorBytes::TensorBytes(const TensorBytes& other) : TensorBytes(other.size_, other.used_) { copy_from(other); }

TensorBytes& TensorBytes::operator=(const TensorBytes& other) {
  if (this != &other) *this = TensorBytes(other);
  return *this;
}

void TensorBytes::copy_from(const TensorBytes& other) {
  for (const ByteRange& range : used_) {
    if (range.size() > 0) std::memcpy(data() + range.first, other.data() + range.first, range.size());
  }
}

bool TensorBytes::operator==(const TensorBytes& other) const {
  return std::all_of(used_.begin(), used_.end(), [&](const ByteRange& range) {
    return range.size() == 0 || std::memcmp(data() + range.first, other.data() + range.first, range.size()) == 0;
  });
}

}  // namespace attest
