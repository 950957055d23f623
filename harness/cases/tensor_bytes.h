// The bytes that a tensor lies in: as many as its strides and offset span, which may be far more than a machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/base/view.h"
#include "reference/call/tensor_place.h"
#include "reference/call/tensors.h"

namespace attest {

/// Bytes from `first` up to, not including, `end`.
struct ByteRange {
  std::size_t first = 0, end = 0;
  std::size_t size() const { return end - first; }
  bool operator==(const ByteRange&) const = default;
};

/// Storage of at most so many bytes is used as a whole.
inline constexpr std::size_t kCompactBytes = std::size_t{256} << 20;

/// Of `size` bytes those that a tensor uses: all where they are at most kCompactBytes, or a good part of them is used;
/// else its elements, each with a page and more on either side, ascending and apart. `place.offset` counts from the
/// first byte.
std::vector<ByteRange> used_ranges(const TensorPlace& place, DType type, std::size_t size);

/// The same of a view, counted from its `data`; nothing lies before that.
std::vector<ByteRange> used_ranges(const ConstTensor& view);
std::vector<ByteRange> used_ranges(const MutableTensor& view);

/// Owns bytes of which only the used ones are ever touched: the others are zeros of the system, which take no memory.
class TensorBytes {
 public:
  TensorBytes() = default;
  /// Zeros. Throws std::bad_alloc when the addresses can't be had.
  TensorBytes(std::size_t size, std::vector<ByteRange> used);
  TensorBytes(const TensorBytes& other);
  TensorBytes& operator=(const TensorBytes& other);
  TensorBytes(TensorBytes&&) noexcept = default;
  TensorBytes& operator=(TensorBytes&&) noexcept = default;
  ~TensorBytes() = default;

  /// Stays while this lives, also when moved.
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }
  const std::vector<ByteRange>& used() const { return used_; }
  std::span<std::byte> part(const ByteRange& range) { return {data() + range.first, range.size()}; }
  std::span<const std::byte> part(const ByteRange& range) const { return {data() + range.first, range.size()}; }
  /// Copies the used bytes; both were made alike.
  void copy_from(const TensorBytes& other);
  /// Whether the used bytes are the same; both were made alike.
  bool operator==(const TensorBytes& other) const;

 private:
  struct Release {
    std::size_t mapped;  ///< 0: from the heap
    void operator()(std::byte* bytes) const;
  };
  static std::unique_ptr<std::byte[], Release> take(std::size_t size);

  std::unique_ptr<std::byte[], Release> bytes_;
  std::size_t size_ = 0;
  std::vector<ByteRange> used_;
};

}  // namespace attest
