// The elements of a tensor as a file holds them: in the order of the call's layout, without gaps.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/cases/safetensors.h"
#include "reference/call/call.h"
#include "reference/call/tensor_place.h"
#include "reference/call/tensor_table.h"

namespace attest {

/// B,H,L,D; B,L,H,D where the layout has rows before heads; rows,H,D of packed sequences. Broadcast axes have extent 1.
class StoredOrder {
 public:
  StoredOrder(const Call& call, TensorId id);

  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t size() const;
  /// Whether each row has its heads side by side.
  bool rows_first() const { return rows_first_; }
  /// The extents as a kernel sees them, but for broadcast axes.
  const Index4& extents() const { return place_.shape; }
  /// The rows of sequence b that there are.
  std::int64_t rows(std::int64_t b) const { return place_.rows(b); }
  /// The number of an element that there is.
  std::size_t at(std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const;

  /// Calls visit(b, h, l, d) for each element that there is.
  template <class Visit>
  void each(const Visit& visit) const {
    for (std::int64_t b = 0; b < place_.shape[0]; ++b) {
      for (std::int64_t h = 0; h < place_.shape[1]; ++h) {
        for (std::int64_t l = 0; l < rows(b); ++l) {
          for (std::int64_t d = 0; d < place_.shape[3]; ++d) visit(b, h, l, d);
        }
      }
    }
  }

 private:
  TensorPlace place_;
  bool rows_first_ = false;
  std::vector<std::int64_t> first_rows_;  ///< of packed sequences, without the gaps between them
  std::vector<std::int64_t> shape_;
};

/// The elements of an input.
FileTensor stored_tensor(const Call& call, TensorId id, const ConstTensor& view);

}  // namespace attest
