// Stages of the scores that a call asks for, from raw scores that were computed once more over every key. The weights
// get a maximum and a sum of their own: scores of a second product may be rounded otherwise than those of the first,
// and a running maximum may lag.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/support/host_results.h"
#include "backends/support/score_options.h"

namespace attest::support {

/// A part of one row, which is changed in place; `tanh_row` as ScoreOptions::cap takes it. write(stage, scores) for
/// raw, capped and biased in turn.
template <class Real, class TanhRow, class Write>
void each_stage(const ScoreRow& at, const RowKeys& seen, const ScoreOptions<Real>& options, const TanhRow& tanh_row,
                Real* scores, const Write& write) {
  write(Output::raw, scores);
  options.cap(at, scores, tanh_row);
  write(Output::capped, scores);
  options.bias(at, seen, scores);
  write(Output::biased, scores);
}

/// One of these stages, where the call asks for it.
template <class Real>
void keep_stage(Output stage, const ScoreRow& at, const Real* scores, HostResults<Real>& results) {
  const std::size_t row = results.row(at.b, at.h, at.i);
  const auto keep = [&](std::vector<Real>& in) {
    if (Real* to = results.stage_row(in, row)) std::copy_n(scores, at.keys, to + at.key);
  };
  if (stage == Output::raw) keep(results.raw);
  if (stage == Output::capped) keep(results.capped);
  if (stage != Output::biased) return;
  keep(results.biased);
  keep(results.weights);  // their scores; finish_weights() makes them weights
}

/// When every part of the row was written.
template <class Real>
void finish_weights(std::int64_t b, std::int64_t h, std::int64_t i, const ScoreOptions<Real>& options,
                    HostResults<Real>& results) {
  if (Real* weights = results.stage_row(results.weights, results.row(b, h, i))) options.softmax(weights, h);
}

}  // namespace attest::support
