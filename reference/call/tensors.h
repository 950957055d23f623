// The tensors of one call: what it reads and what it writes, by name.
//
// Which tensors a call has, their shapes and their types: tensor_table.h.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/base/view.h"
#include "reference/call/call.h"

namespace attest {

inline constexpr std::size_t kTensorCount = kNames<TensorId>.size();

/// Views of tensors by name. They own nothing: the data must outlive them.
template <class Void>
class Tensors {
 public:
  using View = AnyView<Void>;

  bool has(TensorId id) const { return there_[index(id)]; }
  /// An empty view, `data` nullptr, where the call has no such tensor.
  const View& at(TensorId id) const { return views_[index(id)]; }
  const View* find(TensorId id) const { return has(id) ? &at(id) : nullptr; }
  void set(TensorId id, const View& view) {
    views_[index(id)] = view;
    there_[index(id)] = true;
  }
  /// A reference to change the view in place.
  View& change(TensorId id) { return views_[index(id)]; }
  void remove(TensorId id) {
    views_[index(id)] = {};
    there_[index(id)] = false;
  }

 private:
  static constexpr std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

  std::array<View, kTensorCount> views_{};
  std::bitset<kTensorCount> there_;
};

/// The inputs of a call. If the call has no such tensor, an accessor returns an empty view or nullptr. Every shape is
/// the call's, with stride 0 along a broadcast axis.
class Inputs : public Tensors<const void> {
 public:
  const ConstTensor& q() const { return at(TensorId::q); }  ///< B,Hq,Lq,Dqk
  /// B,Hkv,Lk,Dqk and B,Hkv,Lk,Dv. With `past` cached keys they hold the Lk - past new ones. A paged cache has its
  /// pages here, as pages,Hkv,rows of a page,D.
  const ConstTensor& k() const { return at(TensorId::k); }
  const ConstTensor& v() const { return at(TensorId::v); }
  const ConstTensor& past_k() const { return at(TensorId::past_k); }  ///< B,Hkv,past,D
  const ConstTensor& past_v() const { return at(TensorId::past_v); }
  /// Scales of q, B,Hq,Lq,blocks, and of k and v, B,Hkv,Lk,blocks, or pages,Hkv,rows of a page,blocks; nullptr where
  /// there are none. Block n of a row begins at its element n * ScaleSpec::block.
  const ConstTensor* q_scales() const { return find(TensorId::q_scales); }
  const ConstTensor* k_scales() const { return find(TensorId::k_scales); }
  const ConstTensor* v_scales() const { return find(TensorId::v_scales); }
  const ConstTensor& decay() const { return at(TensorId::decay); }  ///< B,Hkv,L,Dk: logarithms of the factors
  const ConstTensor& beta() const { return at(TensorId::beta); }    ///< B,Hkv,L,1
  const ConstTensor& state() const { return at(TensorId::state); }  ///< B,Hkv,Dk,Dv
  /// Of a merge, with part x of batch b at x*B + b: n*B,Hq,L,Dv and n*B,Hq,L,1.
  const ConstTensor& part_o() const { return at(TensorId::part_o); }
  const ConstTensor& part_lse() const { return at(TensorId::part_lse); }
  /// Of a call that appends, B,Hkv,Lq,D: row i is the key of query i, which k and v get as key K_b - n_b + i.
  const ConstTensor& new_k() const { return at(TensorId::new_k); }
  const ConstTensor& new_v() const { return at(TensorId::new_v); }
  /// Of the backward pass: o and lse of the forward one, B,Hq,Lq,Dv and B,Hq,Lq,1, and the loss's derivatives by both.
  const ConstTensor& saved_o() const { return at(TensorId::saved_o); }
  const ConstTensor& saved_lse() const { return at(TensorId::saved_lse); }
  const ConstTensor& dout() const { return at(TensorId::dout); }
  const ConstTensor* dlse() const { return find(TensorId::dlse); }          ///< nullptr where it is 0
  const ConstTensor* dpresent() const { return find(TensorId::dpresent); }  ///< B,Hkv,Dk,Dv; likewise
  /// B,Hq,Lq,Lk: boolean, 1 = visible, or floating, to be added.
  const ConstTensor* mask() const { return find(TensorId::mask); }
  /// B,1,1,1: i32, how many of the cached keys each batch has; nullptr where all have the same.
  const ConstTensor* past_lengths() const { return find(TensorId::past_lengths); }
  const ConstTensor* page_table() const { return find(TensorId::page_table); }  ///< B,1,1,pages of a sequence: i32
  const ConstTensor* blocks() const { return find(TensorId::blocks); }  ///< B,Hq,rows,columns of blocks: boolean
  /// B,Hkv,Lq,n: i32, numbers of keys or of blocks of them; -1: none.
  const ConstTensor* indices() const { return find(TensorId::indices); }
  const ConstTensor* slopes() const { return find(TensorId::slopes); }  ///< B,Hq,1,1: f64, of ALiBi
  const ConstTensor* sinks() const { return find(TensorId::sinks); }    ///< 1,Hq,1,1: f64, logits
  /// B,Hq,Lq,Lk: boolean, 1 = kept by dropout; without it, the seed decides.
  const ConstTensor* keep() const { return find(TensorId::keep); }

  // Single elements; the tensor must be there.

  /// Where page n of batch b lies; -1 beyond a sequence's length.
  std::int64_t page(std::int64_t b, std::int64_t n) const {
    const ConstTensor& table = at(TensorId::page_table);
    return static_cast<const std::int32_t*>(table.data)[table.offset(b, 0, 0, n)];
  }
  /// Where the lengths are data: those of batch b, from query_lengths and key_lengths, B,1,1,1: i32.
  std::int64_t length(TensorId lengths, std::int64_t b) const {
    const ConstTensor& list = at(lengths);
    return static_cast<const std::int32_t*>(list.data)[list.offset(b, 0, 0, 0)];
  }
  /// Cached keys of batch b, in tensors of their own: 0 where there are none.
  std::int64_t past_length(std::int64_t b) const {
    if (!past_k().data || !past_lengths()) return past_k().shape[2];
    return length(TensorId::past_lengths, b);
  }
  std::int64_t rows_of_page() const { return k().shape[2]; }
  bool block(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) const {
    return flag(TensorId::blocks, b, h, row, column);
  }
  /// Whether the list of query i and key head g names this number.
  bool selects(std::int64_t b, std::int64_t g, std::int64_t i, std::int64_t number) const {
    const ConstTensor& lists = at(TensorId::indices);
    const auto* const entry = static_cast<const std::int32_t*>(lists.data) + lists.offset(b, g, i, 0);
    for (std::int64_t n = 0; n < lists.shape[3]; ++n) {
      if (entry[n * lists.strides[3]] == number) return true;
    }
    return false;
  }
  bool kept(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return flag(TensorId::keep, b, h, i, j);
  }
  double slope(std::int64_t b, std::int64_t h) const { return number(TensorId::slopes, b, h); }
  double sink(std::int64_t h) const { return number(TensorId::sinks, 0, h); }

 private:
  bool flag(TensorId id, std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    const ConstTensor& bytes = at(id);
    return static_cast<const std::uint8_t*>(bytes.data)[bytes.offset(b, h, l, d)] != 0;
  }
  double number(TensorId id, std::int64_t b, std::int64_t h) const {
    const ConstTensor& list = at(id);
    return static_cast<const double*>(list.data)[list.offset(b, h, 0, 0)];
  }
};

/// A dense tensor of one number for each query head, or for each batch and query head, as slopes and sinks.
inline ConstTensor numbers_of_heads(const double* data, std::int64_t batch, std::int64_t heads, bool by_batch) {
  return {data, DType::f64, {batch, heads, 1, 1}, {by_batch ? heads : 0, 1, 1, 1}};
}

/// The numbers of such a tensor as a list, for each head, or for each batch and head; empty without the tensor.
inline std::vector<double> list_numbers(const ConstTensor* numbers) {
  std::vector<double> list;
  if (!numbers) return list;
  const std::int64_t batches = numbers->strides[0] == 0 ? 1 : numbers->shape[0];
  each_index({batches, numbers->shape[1], 1, 1}, [&](std::int64_t b, std::int64_t h, std::int64_t, std::int64_t) {
    list.push_back(load(numbers->data, numbers->dtype, numbers->offset(b, h, 0, 0)));
  });
  return list;
}

/// Whether a mask is additive, not boolean.
inline bool is_additive(const ConstTensor& mask) { return is_floating(mask.dtype); }

/// The outputs of a call; those that were not requested are empty. raw and capped hold every pair, visible or not; for
/// hidden keys biased is -inf and weights is 0. present_state is the last state of linear attention.
class Outputs : public Tensors<void> {
 public:
  const MutableTensor& out() const { return at(TensorId::out); }                ///< B,Hq,Lq,Dv in the storage type
  const MutableTensor* lse() const { return find(TensorId::lse); }              ///< B,Hq,Lq,1 in the accumulator's
  const MutableTensor* raw() const { return find(TensorId::raw); }              ///< B,Hq,Lq,Lk in the storage type
  const MutableTensor* capped() const { return find(TensorId::capped); }        ///< likewise
  const MutableTensor* biased() const { return find(TensorId::biased); }        ///< likewise
  const MutableTensor* weights() const { return find(TensorId::weights); }      ///< likewise
  const MutableTensor* present_k() const { return find(TensorId::present_k); }  ///< B,Hkv,Lk,Dqk in the storage type
  const MutableTensor* present_v() const { return find(TensorId::present_v); }  ///< B,Hkv,Lk,Dv
  const MutableTensor* present_state() const { return find(TensorId::present_state); }  ///< B,Hkv,Dk,Dv
  /// The cache behind a call that appends to it: of the shape of k and v, in their types.
  const MutableTensor* cache_k() const { return find(TensorId::cache_k); }
  const MutableTensor* cache_v() const { return find(TensorId::cache_v); }
  const MutableTensor* dq() const { return find(TensorId::dq); }          ///< B,Hq,Lq,Dqk
  const MutableTensor* dk() const { return find(TensorId::dk); }          ///< B,Hkv,Lk,Dqk: all keys, cached ones first
  const MutableTensor* dv() const { return find(TensorId::dv); }          ///< B,Hkv,Lk,Dv
  const MutableTensor* dmask() const { return find(TensorId::dmask); }    ///< of the mask's stored shape
  const MutableTensor* dsinks() const { return find(TensorId::dsinks); }  ///< 1,Hq,1,1 in the accumulator's type
  const MutableTensor* ddecay() const { return find(TensorId::ddecay); }  ///< as the decay is stored
  const MutableTensor* dbeta() const { return find(TensorId::dbeta); }    ///< as beta is stored
  const MutableTensor* dstate() const { return find(TensorId::dstate); }  ///< B,Hkv,Dk,Dv
};

/// The input tensors that a present output repeats.
enum class Cache { keys, values };

}  // namespace attest
