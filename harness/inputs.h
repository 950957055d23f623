// The tensors of one case: storage that owns them, filled from the case line or read from a file.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "reference/problem.h"
#include "reference/view.h"

namespace attest {

/// One tensor's bytes. Storage outside the view holds NaN, so that reading it shows.
class TensorStorage {
 public:
  TensorStorage() = default;
  TensorStorage(const Problem& problem, TensorId id, DType dtype);
  /// Bytes of a boolean mask.
  static TensorStorage boolean(const Problem& problem);

  ConstTensor view() const { return {base(), dtype_, shape_, strides_}; }
  void set(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d, double value);
  void set_byte(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, bool value);
  std::size_t bytes() const { return bytes_.size(); }
  const Index4& shape() const { return shape_; }

 private:
  const void* base() const { return bytes_.data() + static_cast<std::size_t>(offset_) * element_size_; }
  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    return offset_ + b * strides_[0] + h * strides_[1] + l * strides_[2] + d * strides_[3];
  }

  std::vector<std::byte> bytes_;
  DType dtype_ = DType::f32;
  std::size_t element_size_ = 4;
  std::int64_t offset_ = 0;
  Index4 shape_{}, strides_{};
};

/// Owns what a backend reads. Movable; views stay valid while it lives.
struct CaseInputs {
  TensorStorage q, k, v, mask;
  bool has_mask = false, additive = false;
  Index4 mask_shape{};  ///< B, Hq, Lq, Lk: the mask as broadcast

  Inputs views() const;
};

CaseInputs make_inputs(const Problem& problem);

/// Output tensors with guards: storage around and between the elements is checked afterwards.
class GuardedOutputs {
 public:
  explicit GuardedOutputs(const Problem& problem);

  Outputs views();
  double out(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const;
  double lse(std::int64_t b, std::int64_t h, std::int64_t i) const;

  /// Refills everything with the guard pattern.
  void reset();
  /// Empty when only elements of the views were written and every one of them was; else a sentence.
  std::string inspect() const;

 private:
  struct Tensor {
    std::string name;
    std::vector<std::byte> bytes;
    DType dtype = DType::f32;
    std::int64_t first = 0;  ///< element at index 0, guard included
    Index4 shape{}, strides{};

    double at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const;
    std::string inspect() const;
  };
  static constexpr std::int64_t kGuard = 64;  ///< elements before and after

  Tensor out_, lse_;
  bool wants_lse_ = false;
};

/// Bytes of storage that a case needs in the harness and, as a rule, once more in a backend.
double storage_bytes(const Problem& problem);

}  // namespace attest
