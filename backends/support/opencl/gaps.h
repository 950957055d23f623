// Tensors whose strides span far more than they hold: a device gets them without the gaps.
#pragma once

#include <cstddef>
#include <vector>

#include "reference/call/tensor_place.h"
#include "reference/call/tensors.h"

namespace attest::support {

/// Whether most of so many bytes, which the elements of `shape` span, would be copied in vain.
bool mostly_gaps(const Index4& shape, std::size_t element_size, double span);

/// Bytes that a device needs for a tensor of the call.
double device_bytes(const TensorPlace& place, std::size_t element_size);

/// Inputs as a device gets them: q, k, v and the mask packed where they are mostly gaps; cached keys, page tables,
/// block masks and dropout's decisions dense; views of the caller's memory otherwise. Keeps what it packed.
class WithoutGaps {
 public:
  explicit WithoutGaps(const Inputs& inputs);
  const Inputs& inputs() const { return inputs_; }

 private:
  /// Replaces a tensor by a dense copy; with `expand`, axes of stride 0 too.
  void pack(TensorId id, bool expand);

  Inputs inputs_;
  std::vector<std::vector<std::byte>> packed_;
};

}  // namespace attest::support
