// A cache of keys and values that a plan holds itself, since a call with `append` writes into it.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/support/key_place.h"
#include "reference/call/call.h"
#include "reference/call/tensor_table.h"
#include "reference/call/tensors.h"

namespace attest::support {

class OwnCache {
 public:
  /// The cache that lies in k and v, and of the inputs views in which it is the plan's own. Copies nothing where the
  /// call doesn't append.
  Inputs upload(const Call& call, const Inputs& inputs) {
    Inputs own = inputs;
    if (!call.append) return own;
    keys_.take(inputs.k());
    values_.take(inputs.v());
    own.set(TensorId::k, keys_.view());
    own.set(TensorId::v, values_.view());
    return own;
  }

  /// Writes the new rows behind those that were there, rounded to the cache's type. `call` has the lengths of this run;
  /// prepare(b, j, key) changes new key j of batch b first, in a row of Real.
  template <class Real, class Prepare>
  void append(const Call& call, const Inputs& inputs, const Prepare& prepare) {
    if (!call.append) return;
    std::vector<Real> row(static_cast<std::size_t>(std::max(call.key_dim, call.value_dim)));
    for (std::int64_t b = 0; b < call.batch; ++b) {
      const std::int64_t fresh = call.query_count(b), before = call.key_count(b) - fresh;
      for (std::int64_t i = 0; i < fresh; ++i) {
        const KeyPlace place = find_key(inputs, b, before + i);
        for (std::int64_t h = 0; h < call.key_heads; ++h) {
          read_row(inputs.new_k(), b, h, i, row.data());
          prepare(b, before + i, row.data());
          keys_.write(place, h, row.data());
          read_row(inputs.new_v(), b, h, i, row.data());
          values_.write(place, h, row.data());
        }
      }
    }
  }

  void download(const Outputs& outputs) const {
    if (outputs.cache_k()) keys_.give(*outputs.cache_k());
    if (outputs.cache_v()) values_.give(*outputs.cache_v());
  }

  std::size_t bytes() const { return keys_.size() + values_.size(); }

 private:
  /// A dense copy of k or v, in its type.
  class Rows {
   public:
    void take(const ConstTensor& from) {
      shape_ = from.shape;
      dtype_ = from.dtype;
      strides_ = {shape_[1] * shape_[2] * shape_[3], shape_[2] * shape_[3], shape_[3], 1};
      bytes_.resize(static_cast<std::size_t>(shape_[0] * strides_[0]) * size_of(dtype_));
      const auto* const data = static_cast<const std::byte*>(from.data);
      each_row([&](std::int64_t at, auto... row) {
        copy_elements(data, from.offset(row..., 0), from.strides[3], bytes_.data(), at, 1);
      });
    }
    ConstTensor view() const { return {bytes_.data(), dtype_, shape_, strides_}; }
    template <class Real>
    void write(const KeyPlace& place, std::int64_t h, const Real* row) {
      const std::int64_t to = place.batch * strides_[0] + h * strides_[1] + place.row * strides_[2];
      for (std::int64_t d = 0; d < shape_[3]; ++d) store(bytes_.data(), dtype_, to + d, static_cast<double>(row[d]));
    }
    void give(const MutableTensor& to) const {
      auto* const data = static_cast<std::byte*>(to.data);
      each_row([&](std::int64_t at, auto... row) {
        copy_elements(bytes_.data(), at, 1, data, to.offset(row..., 0), to.strides[3]);
      });
    }
    std::size_t size() const { return bytes_.size(); }

   private:
    template <class Visit>
    void each_row(const Visit& visit) const {
      std::int64_t at = 0;
      each_index({shape_[0], shape_[1], shape_[2], 1}, [&](std::int64_t b, std::int64_t h, std::int64_t l, auto) {
        visit(at, b, h, l);
        at += shape_[3];
      });
    }
    /// A row, bit for bit: what isn't appended may be any bits.
    void copy_elements(const std::byte* from, std::int64_t first, std::int64_t step, std::byte* to, std::int64_t at,
                       std::int64_t to_step) const {
      const std::size_t size = size_of(dtype_);
      for (std::int64_t d = 0; d < shape_[3]; ++d)
        std::memcpy(to + static_cast<std::size_t>(at + d * to_step) * size,
                    from + static_cast<std::size_t>(first + d * step) * size, size);
    }

    std::vector<std::byte> bytes_;
    Index4 shape_{}, strides_{};
    DType dtype_ = DType::f32;
  };

  Rows keys_, values_;
};

}  // namespace attest::support
