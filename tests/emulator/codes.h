// Rows of q, k and v as the emulator multiplies them: the numbers that they hold, or codes whose common scale is
// multiplied in behind the products.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/softmax/attention.h"
#include "reference/softmax/key_place.h"
#include "tests/emulator/steps.h"

namespace attest::emulator {

struct CodedRow {
  std::vector<double> numbers;
  Number scale = 1;  ///< of all of them, still to be multiplied in
};

/// Whether a row of such a tensor has one scale.
inline bool has_row_scale(const std::optional<ScaleSpec>& spec) { return spec && spec->share != ScaleShare::block; }

/// A scale of 0 or NaN stays with its codes.
inline bool may_wait(double scale) { return std::isfinite(scale) && scale != 0; }

inline CodedRow coded_query(const Head& head, std::int64_t i, bool behind) {
  const Call& p = head.call();
  const double scale = scale_of_query(p, head.inputs(), head.batch(), head.head(), i, 0);
  CodedRow row{head.query_row(i), 1};
  if (!behind || !has_row_scale(p.q_scale) || p.stored_key_dim() < p.key_dim || !may_wait(scale)) return row;
  row.scale = scale;
  for (std::size_t d = 0; d < row.numbers.size(); ++d) {
    row.numbers[d] = load_query_code(p, head.inputs(), head.batch(), head.head(), i, static_cast<std::int64_t>(d));
  }
  return row;
}

/// Key or value j. One that isn't stored is 0.
inline CodedRow coded_key(const Head& head, Cache cache, std::int64_t j, bool behind) {
  const Call& p = head.call();
  const bool in_keys = cache == Cache::keys;
  const std::int64_t dim = in_keys ? p.key_dim : p.value_dim, h = head.head() / p.heads_per_group();
  const double* const numbers = in_keys ? head.key_row(j) : head.value_row(j);
  CodedRow row{{numbers, numbers + dim}, 1};
  const bool has_one = has_row_scale(in_keys || p.latent ? p.k_scale : p.v_scale);
  if (!behind || !has_one || (in_keys && p.stored_key_dim() < dim) || j >= p.stored_keys(head.batch())) return row;
  const double scale = scale_of_key(p, head.inputs(), cache, head.batch(), h, j, 0);
  if (!may_wait(scale)) return row;
  row.scale = scale;
  for (std::int64_t d = 0; d < dim; ++d)
    row.numbers[static_cast<std::size_t>(d)] = load_code(p, head.inputs(), cache, head.batch(), h, j, d);
  return row;
}

}  // namespace attest::emulator
