// Rows whose keys are spread over parts, for the tests of how parts are cut and merged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "backends/support/parts/partition.h"
#include "reference/base/half.h"
#include "reference/merge/part_merge.h"

namespace attest {

/// Scores and values of one row, -inf where a key is hidden.
struct KeyRow {
  std::vector<double> scores;
  std::vector<std::vector<double>> values;  ///< of each key
};

inline KeyRow random_row(std::mt19937& random, std::int64_t keys, std::size_t columns, double spread, double hidden) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  KeyRow row;
  for (std::int64_t j = 0; j < keys; ++j) {
    row.scores.push_back(uniform(random) < hidden ? -std::numeric_limits<double>::infinity() : spread * normal(random));
    std::vector<double>& value = row.values.emplace_back();
    for (std::size_t c = 0; c < columns; ++c) value.push_back(normal(random));
  }
  return row;
}

/// Softmax attention over the spans of the row, in 80 bits, whose own error is below a thousandth of float64's.
inline PartOfRow attend(const KeyRow& row, const std::vector<support::PositionSpan>& spans, std::size_t columns) {
  PartOfRow part;
  long double top = -std::numeric_limits<long double>::infinity(), sum = 0;
  std::vector<long double> out(columns);
  const auto each_key = [&](const auto& action) {
    for (const support::PositionSpan& span : spans) {
      for (std::int64_t j = span.first; j < span.last; ++j) action(static_cast<std::size_t>(j));
    }
  };
  each_key([&](std::size_t j) { top = std::max(top, static_cast<long double>(row.scores[j])); });
  part.out.resize(columns);
  part.lse = -std::numeric_limits<double>::infinity();
  if (std::isinf(top)) return part;
  each_key([&](std::size_t j) {
    const long double weight = std::exp(row.scores[j] - top);
    sum += weight;
    for (std::size_t c = 0; c < columns; ++c) out[c] += weight * row.values[j][c];
  });
  for (std::size_t c = 0; c < columns; ++c) part.out[c] = static_cast<double>(out[c] / sum);
  part.lse = static_cast<double>(top + std::log(sum));
  return part;
}

/// A number as it is after it was stored in a type.
inline double stored_as(DType type, double number) {
  switch (type) {
    case DType::f64: return number;
    case DType::f32: return static_cast<double>(static_cast<float>(number));
    case DType::f16: return static_cast<double>(f16_to_float(to_f16(number)));
    case DType::bf16: return static_cast<double>(bf16_to_float(to_bf16(number)));
    default: return number;
  }
}

}  // namespace attest
