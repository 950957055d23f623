#include "reference/operators/projection.h"

#include <stdexcept>

namespace attest {

Matrix project(const Matrix& x, const Matrix& w) {
  if (x.columns != w.rows) throw std::invalid_argument("the projection's rows differ from the embedding's width");
  Matrix result{x.rows, w.columns, std::vector<double>(static_cast<std::size_t>(x.rows * w.columns))};
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t c = 0; c < w.columns; ++c) {
      double sum = 0;
      for (std::int64_t t = 0; t < x.columns; ++t) sum += x.at(i, t) * w.at(t, c);
      result.values[static_cast<std::size_t>(i * w.columns + c)] = sum;
    }
  }
  return result;
}

}  // namespace attest
