// One tensor's bytes, written element by element.
#pragma once

#include <cstddef>
#include <span>

#include "harness/cases/tensor_bytes.h"
#include "reference/base/view.h"
#include "reference/call/tensor_place.h"

namespace attest {

/// Owns its storage; views stay valid while it lives, also when it is moved. Storage outside the view holds NaN, so
/// that reading it shows.
class TensorStorage {
 public:
  TensorStorage() = default;
  TensorStorage(TensorPlace place, DType dtype);

  ConstTensor view() const;
  /// Rounded to nearest; a boolean is whether the value isn't 0.
  void set(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d, double value);
  /// Of memory: less than the storage spans where most of it is never used.
  std::size_t bytes() const;
  /// Everything that is owned, elements and padding, as it lies.
  TensorBytes& memory() { return bytes_; }
  const TensorBytes& memory() const { return bytes_; }
  DType dtype() const { return dtype_; }
  const TensorPlace& place() const { return place_; }
  const Index4& shape() const { return place_.shape; }
  /// A finite value that the type could only hold as an infinity, if there was one; else 0.
  double overflowed() const { return overflowed_; }

 private:
  TensorPlace place_;
  TensorBytes bytes_;
  DType dtype_ = DType::f32;
  bool saturates_ = false;  ///< at the type's lowest and largest number
  double lowest_ = -kInfinity, largest_ = kInfinity;
  double first_overflow_ = kInfinity;  ///< magnitudes beyond it become infinite
  double overflowed_ = 0;
};

}  // namespace attest
