// What a host backend hands out: results in the accumulator's type, rounded into the harness's views on download.
// And the way in: rows of any storage type as dense numbers of the accumulator's.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "backends/support/key_place.h"
#include "reference/call/call.h"
#include "reference/call/tensor_table.h"
#include "reference/call/tensors.h"

namespace attest::support {

/// `count` elements of a row, `stride` apart, whatever the storage type.
template <class Real>
void read_row(const void* data, DType dtype, std::int64_t at, std::int64_t stride, std::int64_t count, Real* to) {
  with_elements(data, dtype, [&](auto from, const auto& number) {
    from += at;
    if (stride == 1) {
      for (std::int64_t d = 0; d < count; ++d) to[d] = static_cast<Real>(number(from[d]));
    } else {
      for (std::int64_t d = 0; d < count; ++d) to[d] = static_cast<Real>(number(from[d * stride]));
    }
  });
}

template <class Real>
void read_row(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l, Real* to) {
  read_row(t.data, t.dtype, t.offset(b, h, l, 0), t.strides[3], t.shape[3], to);
}

/// The nearest one, of two the even one: without branches, so that compilers take many at once.
inline std::uint16_t bf16_of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t nearest = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : nearest);
}

/// The same for f16: subnormal numbers are rounded by an addition, whose sum has a unit in the last place like theirs.
inline std::uint16_t f16_of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t size = bits & 0x7fffffffu;
  const std::uint32_t normal = (size + 0xfffu + ((size >> 13) & 1u) - (112u << 23)) >> 13;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
  const std::uint32_t finite = size < 0x38800000u ? subnormal : size < 0x477ff000u ? normal : 0x7c00u;
  const std::uint32_t nan = 0x7e00u | ((size >> 13) & 0x1ffu);
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) | (size > 0x7f800000u ? nan : finite));
}

/// `from` has as many numbers as rows of `t`, one of which begins at its element `at`.
template <class Real>
void store_row(const MutableTensor& t, std::int64_t at, const Real* from) {
  const auto each = [&]<class To>(const auto& rounded) {
    To* to = static_cast<To*>(t.data) + at;
    if (t.strides[3] == 1) {
      for (std::int64_t c = 0; c < t.shape[3]; ++c) to[c] = rounded(from[c]);
    } else {
      for (std::int64_t c = 0; c < t.shape[3]; ++c) to[c * t.strides[3]] = rounded(from[c]);
    }
  };
  if constexpr (std::is_same_v<Real, float>) {
    if (t.dtype == DType::f32) return each.template operator()<float>([](float x) { return x; });
    if (t.dtype == DType::bf16) return each.template operator()<std::uint16_t>(bf16_of);
    if (t.dtype == DType::f16) return each.template operator()<std::uint16_t>(f16_of);
  }
  for (std::int64_t c = 0; c < t.shape[3]; ++c)
    store(t.data, t.dtype, at + c * t.strides[3], static_cast<double>(from[c]));
}

template <class Real>
class HostResults {
 public:
  explicit HostResults(const Call& p) : problem_(p) {
    const std::int64_t rows = p.batch * p.query_heads * p.query_length;
    out.resize(static_cast<std::size_t>(rows * p.value_dim));
    lse.resize(static_cast<std::size_t>(rows));
    if (p.wants(Output::max)) row_max.resize(lse.size());
    if (p.wants(Output::sum)) row_sum.resize(lse.size());
    for (auto [list, stage] : {std::pair{&raw, Output::raw}, std::pair{&capped, Output::capped},
                               std::pair{&biased, Output::biased}, std::pair{&weights, Output::weights}}) {
      if (p.wants(stage)) list->resize(static_cast<std::size_t>(rows * p.key_length));
    }
    for (const Gradient& one : gradients()) {
      if (!p.wants_gradients() || (one.where_asked_for && !has_tensor(p, one.id))) continue;
      const Index4 n = seen_shape(p, one.id);
      (this->*one.list).resize(static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]));
    }
  }

  /// From now on results are those of a run with this call's lengths.
  void set_lengths(const Call& call) { problem_.lengths = call.lengths; }

  /// Gradients are sums: a run starts from zeros.
  void clear_gradients() {
    for (const Gradient& one : gradients()) std::fill((this->*one.list).begin(), (this->*one.list).end(), Real{0});
  }

  std::size_t row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return static_cast<std::size_t>((b * problem_.query_heads + h) * problem_.query_length + i);
  }
  Real* out_row(std::size_t row) { return out.data() + row * static_cast<std::size_t>(problem_.value_dim); }
  /// The largest score of a row and the sum under it, where they are asked for.
  void keep_maximum(std::size_t row, Real max, Real sum) {
    if (!row_max.empty()) row_max[row] = max;
    if (!row_sum.empty()) row_sum[row] = sum;
  }
  /// Row of a stage, or nullptr when it was not asked for.
  Real* stage_row(std::vector<Real>& stage, std::size_t row) {
    return stage.empty() ? nullptr : stage.data() + row * static_cast<std::size_t>(problem_.key_length);
  }

  void download(const Inputs& inputs, const Outputs& outputs) const {
    const Call& p = problem_;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const std::int64_t rows = p.packed_sequences() ? p.query_count(b) : p.query_length;
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        for (std::int64_t i = 0; i < rows; ++i) {
          const std::size_t at = row(b, h, i);
          if (outputs.dq()) write_row(*outputs.dq(), b, h, i, dq.data() + at * static_cast<std::size_t>(p.key_dim));
          if (!p.runs_forward()) continue;
          write_row(outputs.out(), b, h, i, out.data() + at * static_cast<std::size_t>(p.value_dim));
          if (outputs.lse()) write_row(*outputs.lse(), b, h, i, lse.data() + at);
          if (p.wants(Output::max)) write_row(outputs.at(TensorId::row_max), b, h, i, row_max.data() + at);
          if (p.wants(Output::sum)) write_row(outputs.at(TensorId::row_sum), b, h, i, row_sum.data() + at);
          const std::size_t first = at * static_cast<std::size_t>(p.key_length);
          if (outputs.raw()) write_row(*outputs.raw(), b, h, i, raw.data() + first);
          if (outputs.capped()) write_row(*outputs.capped(), b, h, i, capped.data() + first);
          if (outputs.biased()) write_row(*outputs.biased(), b, h, i, biased.data() + first);
          if (outputs.weights()) write_row(*outputs.weights(), b, h, i, weights.data() + first);
        }
      }
    }
    if (outputs.present_state()) write_all(*outputs.present_state(), state);
    if (outputs.dk()) write_keys(*outputs.dk(), dk);
    if (outputs.dv()) write_keys(*outputs.dv(), dv);
    for (const Gradient& one : gradients()) {
      if (one.where_asked_for && outputs.has(one.id)) write_all(outputs.at(one.id), this->*one.list);
    }
    if (outputs.present_k()) copy_present(inputs, Cache::keys, *outputs.present_k());
    if (outputs.present_v()) copy_present(inputs, Cache::values, *outputs.present_v());
  }

  std::vector<Real> out, lse;                      ///< rows x Dv, rows
  std::vector<Real> row_max, row_sum;              ///< rows, where they are asked for
  std::vector<Real> raw, capped, biased, weights;  ///< rows x Lk where asked for
  std::vector<Real> state;                         ///< linear attention: B,Hkv,Dk,Dv, dense
  std::vector<Real> dq;                            ///< rows x Dqk
  std::vector<Real> dk, dv;                        ///< B,Hkv,Lk,D, dense
  std::vector<Real> dmask, dsinks;                 ///< as the mask is stored; Hq; where asked for
  std::vector<Real> ddecay, dbeta, dstate;         ///< as decay and beta are stored; B,Hkv,Dk,Dv; likewise

 private:
  struct Gradient {
    TensorId id;
    std::vector<Real> HostResults::*list;
    bool where_asked_for;  ///< no other call has room for it
  };
  static constexpr std::array<Gradient, 8> gradients() {
    return {{{TensorId::dq, &HostResults::dq, false},
             {TensorId::dk, &HostResults::dk, false},
             {TensorId::dv, &HostResults::dv, false},
             {TensorId::dmask, &HostResults::dmask, true},
             {TensorId::dsinks, &HostResults::dsinks, true},
             {TensorId::ddecay, &HostResults::ddecay, true},
             {TensorId::dbeta, &HostResults::dbeta, true},
             {TensorId::dstate, &HostResults::dstate, true}}};
  }

  static void write_all(const MutableTensor& to, const std::vector<Real>& list) {
    const Real* from = list.data();
    each_index(to.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      store(to.data, to.dtype, to.offset(b, h, l, d), static_cast<double>(*from++));
    });
  }
  /// Packed sequences have no room for keys beyond their lengths.
  void write_keys(const MutableTensor& to, const std::vector<Real>& list) const {
    const Call& p = problem_;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const std::int64_t keys = to.starts ? std::min(p.key_count(b), to.starts[b + 1] - to.starts[b]) : p.key_length;
      for (std::int64_t h = 0; h < p.key_heads; ++h) {
        for (std::int64_t j = 0; j < keys; ++j)
          write_row(to, b, h, j, list.data() + ((b * p.key_heads + h) * p.key_length + j) * to.shape[3]);
      }
    }
  }
  static void write_row(const MutableTensor& t, std::int64_t b, std::int64_t h, std::int64_t i, const Real* from) {
    if (t.shape[3] == 0) return;  // no keys: there may be no storage to point at either
    store_row(t, t.offset(b, h, i, 0), from);
  }

  static void copy_present(const Inputs& inputs, Cache cache, const MutableTensor& to) {
    each_index(to.shape, [&](std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) {
      const KeyPlace place = find_key(inputs, b, j);
      const ConstTensor& from = tensor_of(inputs, place, cache);
      store(to.data, to.dtype, to.offset(b, h, j, d),
            load(from.data, from.dtype, from.offset(place.batch, h, place.row, d)));
    });
  }

  Call problem_;
};

}  // namespace attest::support
