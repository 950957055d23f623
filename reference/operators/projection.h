// Learned projections: Q = X * W_Q, K = X * W_K, V = X * W_V, in float64, for walkthroughs that start at embeddings.
#pragma once

#include <cstdint>
#include <vector>

namespace attest {

/// Dense, row after row.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;

  double at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

/// x (tokens x model) times w (model x head) gives tokens x head. Throws std::invalid_argument when they don't fit.
Matrix project(const Matrix& x, const Matrix& w);

}  // namespace attest
