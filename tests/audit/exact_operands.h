// Queries and keys that are normalised and rotated, and the scale of their product, in 256 bits.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/softmax/attention.h"
#include "reference/softmax/key_place.h"
#include "tests/audit/big_float.h"

namespace attest::audit {

class ExactOperands {
 public:
  explicit ExactOperands(const Head& head) : head_(head), p_(head.call()), inputs_(head.inputs()) {}

  std::vector<Big> query(std::int64_t i) const {
    std::vector<Big> row;
    for (std::int64_t d = 0; d < p_.key_dim; ++d)
      row.push_back(Big(load_query_code(p_, inputs_, head_.batch(), head_.head(), i, d)) *
                    Big(scale_of_query(p_, inputs_, head_.batch(), head_.head(), i, d)));
    prepare(row, TensorId::q_norm, place(TensorId::q_positions, i, i + p_.diagonal_offset(head_.batch())));
    return row;
  }

  /// Of a key that isn't stored, zeros.
  std::vector<Big> key(std::int64_t j) const {
    std::vector<Big> row(static_cast<std::size_t>(p_.key_dim));
    const std::int64_t b = head_.batch();
    if (j >= p_.stored_keys(b)) return row;
    for (std::int64_t d = 0; d < p_.key_dim; ++d) row[static_cast<std::size_t>(d)] = cached(Cache::keys, j, d);
    if (!is_prepared(p_, inputs_, Operand::key, b, j)) return row;
    prepare(row, TensorId::k_norm, place(TensorId::k_positions, j, j));
    if (!is_stored_prepared(p_, b, j)) return row;
    for (Big& x : row) x = as_stored(inputs_.k().dtype, x.number());
    return row;
  }

  Big value(std::int64_t j, std::int64_t d) const { return cached(Cache::values, j, d); }

  Big scale(std::int64_t i) const {
    Big scale = p_.scale_value();
    if (p_.has_head_scales()) scale = scale * number(TensorId::head_scales, 0, head_.head(), 0, 0);
    if (p_.has_query_scales()) scale = scale * number(TensorId::query_scales, head_.batch(), 0, i, 0);
    return scale;
  }

 private:
  /// A code times its scale.
  Big cached(Cache cache, std::int64_t j, std::int64_t d) const {
    const std::int64_t b = head_.batch(), g = head_.head() / p_.heads_per_group();
    return Big(load_code(p_, inputs_, cache, b, g, j, d)) * Big(scale_of_key(p_, inputs_, cache, b, g, j, d));
  }
  Big number(TensorId id, std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) const {
    const ConstTensor& from = inputs_.at(id);
    return load(from.data, from.dtype, from.offset(b, h, l, d));
  }
  std::int64_t place(TensorId list, std::int64_t row, std::int64_t otherwise) const {
    return inputs_.has(list) ? static_cast<std::int64_t>(number(list, head_.batch(), 0, row, 0).number()) : otherwise;
  }

  void prepare(std::vector<Big>& row, TensorId weights, std::int64_t place) const {
    if (p_.norm && !p_.norm_after_rope) normalise(row, weights);
    const std::int64_t pairs = p_.rotated_dims() / 2;
    for (std::int64_t r = 0; r < pairs; ++r) {
      const bool halves = p_.rope == Rope::halves;
      Big& x = row[static_cast<std::size_t>(halves ? r : 2 * r)];
      Big& y = row[static_cast<std::size_t>(halves ? pairs + r : 2 * r + 1)];
      const Big cos = number(TensorId::cos, 0, 0, place, r), sin = number(TensorId::sin, 0, 0, place, r);
      const Big turned = cos * x - sin * y;
      y = sin * x + cos * y;
      x = turned;
    }
    if (p_.norm && p_.norm_after_rope) normalise(row, weights);
  }
  void normalise(std::vector<Big>& row, TensorId weights) const {
    Big squares;
    for (const Big& x : row) squares += x * x;
    const Big root = sqrt(squares / Big(static_cast<double>(p_.key_dim)) + Big(*p_.norm));
    for (std::size_t d = 0; d < row.size(); ++d)
      row[d] = number(weights, 0, 0, 0, static_cast<std::int64_t>(d)) * row[d] / root;
  }

  const Head& head_;
  const Call& p_;
  const Inputs& inputs_;
};

}  // namespace attest::audit
