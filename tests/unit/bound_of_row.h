// The bound of a line's first row.
#pragma once

#include <string>
#include <utility>

#include "reference/softmax/attention.h"
#include "reference/softmax/bounds/error_bound.h"
#include "tests/unit/helpers.h"

namespace attest {

/// The first row on the data as they are now, and its bound.
inline std::pair<Row, RowBound> first_row(const Computed& c, const Producer& producer, std::int64_t terms_of = -1) {
  const Inputs inputs = c.inputs.views();
  const Head head(c.problem, inputs, 0, 0);
  std::pair<Row, RowBound> result;
  head.attend(0, result.first);
  bound_row(head, result.first, 0, producer, result.second, terms_of);
  return result;
}

inline RowBound bound_of(const std::string& line, const Arithmetic& arithmetic) {
  return first_row(Computed(line), {arithmetic, {}}).second;
}

inline Arithmetic plain_f32() {
  Arithmetic a;
  a.exp_ulps = a.log_ulps = 1;
  return a;
}

inline double first_bound(const std::string& line, const Arithmetic& a) { return bound_of(line, a).output[0]; }

}  // namespace attest
