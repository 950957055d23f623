// The inputs of one case: storage that owns them, filled from the case line or read from a file.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "reference/operator.h"
#include "reference/problem.h"
#include "reference/view.h"

namespace attest {

/// One tensor's bytes. Storage outside the view holds NaN, so that reading it shows.
class TensorStorage {
 public:
  TensorStorage() = default;
  TensorStorage(const Problem& problem, TensorId id, DType dtype);
  /// Dense, in the order of the axes.
  TensorStorage(const Index4& shape, DType dtype);
  /// Bytes of a boolean mask.
  static TensorStorage boolean(const Problem& problem);

  ConstTensor view() const { return {base(), dtype_, shape_, strides_, starts_.get() ? starts_->data() : nullptr}; }
  void set(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d, double value);
  void set_byte(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, bool value);
  std::size_t bytes() const { return bytes_.size(); }
  const Index4& shape() const { return shape_; }
  /// A finite value that the type could only hold as an infinity, if there was one; else 0.
  double overflowed() const { return overflowed_; }

 private:
  const void* base() const { return bytes_.data() + static_cast<std::size_t>(offset_) * element_size_; }
  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    return offset_ + element_at(strides_, starts_ ? starts_->data() : nullptr, b, h, l, d);
  }

  std::vector<std::byte> bytes_;
  DType dtype_ = DType::f32;
  std::size_t element_size_ = 4;
  std::int64_t offset_ = 0;
  Index4 shape_{}, strides_{};
  std::shared_ptr<const std::vector<std::int64_t>> starts_;  ///< packed sequences only
  double overflowed_ = 0;
};

/// Owns what a backend reads. Movable; views stay valid while it lives.
struct CaseInputs {
  TensorStorage q, k, v, mask, past_k, past_v;
  bool has_mask = false, additive = false;
  Index4 mask_shape{};  ///< B, Hq, Lq, Lk: the mask as broadcast
  std::vector<std::int32_t> pages;
  std::int64_t page_size = 0, page_stride = 0;
  std::vector<std::uint8_t> blocks, keep;
  BlockMask block_extents{};
  std::vector<double> slopes, sinks;
  std::vector<ExtraInput> extra_specs;  ///< what this operator reads besides
  std::vector<TensorStorage> extra;     ///< one for each

  Inputs views() const;
};

/// Throws UserError when the storage type can't hold a value of the fill.
CaseInputs make_inputs(const Problem& problem);

/// Everything but q, k, v, the mask and cached keys: slopes, sinks, pages, block mask, and what the operator wants
/// besides. For lines and files alike.
void make_small_inputs(const Problem& problem, CaseInputs& inputs);

/// Bytes of storage that a case needs in the harness and, as a rule, once more in a backend.
double storage_bytes(const Problem& problem);

}  // namespace attest
