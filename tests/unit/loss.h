// The loss whose gradients a call of both passes asks for, by its inputs: what gradients are compared with.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "harness/cases/inputs.h"
#include "reference/operators/operator.h"
#include "reference/options/case_line.h"

namespace attest {

inline double number_at(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
  return load(t.data, t.dtype, t.offset(b, h, l, d));
}

/// The sum of do * o, of dlse * lse and of dpresent times the last state, as far as the call has them.
struct Loss {
  Problem problem;
  CaseInputs inputs;

  explicit Loss(const std::string& line)
      : problem(parse_case("dtype=f64 pass=both " + line)), inputs(make_inputs(problem)) {}

  double value() const {
    const Inputs views = inputs.views();
    const std::vector<ResultValues> rows = reference_rows(problem, views);
    const Call& p = problem.call;
    double sum = 0;
    std::size_t row = 0;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        for (std::int64_t i = 0; i < p.stored_queries(b); ++i, ++row) {
          const std::vector<double>& out = rows[row].of(TensorId::out);
          for (std::size_t c = 0; c < out.size(); ++c)
            sum += out[c] * number_at(views.dout(), b, h, i, static_cast<std::int64_t>(c));
          if (!views.dlse()) continue;
          const double lse = rows[row].of(TensorId::lse)[0];
          if (std::isfinite(lse)) sum += lse * number_at(*views.dlse(), b, h, i, 0);
        }
      }
    }
    if (!views.dpresent()) return sum;
    const ResultValues last = operator_of(problem).whole(problem, views, {TensorId::present_state}, {}, {}).values;
    std::size_t at = 0;
    each_index(views.dpresent()->shape, [&](auto b, auto h, auto d, auto c) {
      sum += last.of(TensorId::present_state)[at++] * number_at(*views.dpresent(), b, h, d, c);
    });
    return sum;
  }

  /// By one element of an input, from values on both of its sides.
  double difference(TensorId id, const Index4& at) {
    constexpr double kStep = 0x1p-16;
    TensorStorage& storage = inputs.at(id);
    const double was = load(storage.memory().data(), DType::f64, storage.place().element(at[0], at[1], at[2], at[3]));
    storage.set(at[0], at[1], at[2], at[3], was + kStep);
    const double above = value();
    storage.set(at[0], at[1], at[2], at[3], was - kStep);
    const double below = value();
    storage.set(at[0], at[1], at[2], at[3], was);
    return (above - below) / (2 * kStep);
  }
};

}  // namespace attest
