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

/// A tensor with more runs than this counts as used whole, and where what it uses is a good part of its bytes: it is no
/// small one with large strides.
constexpr std::size_t kMostRanges = 1 << 18;
constexpr double kGoodPart = 1.0 / 2;

struct StridedAxis {
  std::size_t count, step;  ///< positions, and bytes from one to the next
};

/// Elements of a tensor: runs without a hole wider than a range's margins, and the axes along which they stand apart.
struct Runs {
  std::size_t length = 0;  ///< bytes of a run
  std::size_t count = 1;   ///< of all of them; 0: there are no elements
  std::vector<StridedAxis> apart;
};

Runs runs_of(std::vector<StridedAxis> axes, std::size_t element_size) {
  Runs runs{element_size, 1, {}};
  std::sort(axes.begin(), axes.end(), [](const StridedAxis& a, const StridedAxis& b) { return a.step < b.step; });
  for (const StridedAxis& axis : axes) {
    if (axis.count == 0) return {0, 0, {}};
    if (axis.step <= runs.length + 2 * kAround) {
      runs.length += axis.step * (axis.count - 1);
    } else {
      runs.apart.push_back(axis);
      runs.count = axis.count > kMostRanges ? kMostRanges + 1 : std::min(runs.count * axis.count, kMostRanges + 1);
    }
  }
  return runs;
}

/// The same tensor with pairs of elements as its elements.
TensorPlace in_pairs(TensorPlace place) {
  place.shape[3] = (place.shape[3] + 1) / 2;
  for (std::size_t axis = 0; axis < 3; ++axis) place.strides[axis] /= 2;
  place.offset /= 2;
  return place;
}

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

std::vector<ByteRange> used_ranges(const TensorPlace& place, DType type, std::size_t size) {
  const std::vector<ByteRange> whole = {{0, size}};
  if (size <= kCompactBytes) return whole;
  if (is_packed_in_pairs(type)) return used_ranges(in_pairs(place), DType::i8, size);
  const std::size_t element_size = size_of(type);
  // Packed sequences each by themselves: they differ in rows.
  const bool packed = !place.starts.empty();
  std::vector<ByteRange> ranges;
  double bytes = 0;
  for (std::int64_t b = 0; b < (packed ? place.shape[0] : 1); ++b) {
    std::vector<StridedAxis> axes;
    for (std::size_t n = packed ? 1 : 0; n < 4; ++n) {
      axes.push_back({static_cast<std::size_t>(n == 2 ? place.rows(b) : place.shape[n]),
                      static_cast<std::size_t>(place.strides[n]) * element_size});
    }
    const Runs runs = runs_of(std::move(axes), element_size);
    bytes += static_cast<double>(runs.count) * static_cast<double>(runs.length + 2 * kAround);
    if (ranges.size() + runs.count > kMostRanges || bytes > kGoodPart * static_cast<double>(size)) return whole;
    const std::size_t first = static_cast<std::size_t>(place.element(b, 0, 0, 0)) * element_size;
    for (std::size_t n = 0; n < runs.count; ++n) {
      std::size_t begin = first, rest = n;
      for (const StridedAxis& axis : runs.apart) {
        begin += rest % axis.count * axis.step;
        rest /= axis.count;
      }
      ranges.push_back({begin - std::min(begin, kAround), std::min(begin + runs.length + kAround, size)});
    }
  }
  return joined(std::move(ranges));
}

std::vector<ByteRange> used_ranges(const ConstTensor& view) {
  TensorPlace place;
  place.shape = view.shape;
  place.strides = view.strides;
  if (view.starts) place.starts.assign(view.starts, view.starts + view.shape[0] + 1);
  return used_ranges(place, view.dtype, span_bytes(view));
}

std::vector<ByteRange> used_ranges(const MutableTensor& view) {
  return used_ranges(ConstTensor{view.data, view.dtype, view.shape, view.strides, view.starts});
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
