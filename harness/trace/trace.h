// The walk-through of one small case: every stage with its shape, and what the weights say.
#pragma once

#include <string>
#include <vector>

#include "harness/cases/case.h"
#include "reference/attention.h"

namespace attest {

/// One head of one batch, traced. Matrices are rows of numbers.
struct Trace {
  Case source;
  std::vector<std::string> tokens;  ///< one for each query; "query 3" when the case names none
  std::vector<Row> rows, causal_rows;
  double variance_before = 0, variance_after = 0;  ///< of the scores, before and after scaling; n - 1
};

/// Traces batch 0, head 0. With `causal`, the mask is added to the case first. Throws UserError for a large case.
Trace trace_case(const Case& source, bool causal);

/// Prints the stages: embeddings and projections where given, scores, scaled, mask, weights with row sums, output.
void print_trace(const Trace& trace);

/// The weights as heat maps, without and with the causal mask, side by side.
std::string trace_svg(const Trace& trace);

/// Every stage as JSON.
std::string trace_json(const Trace& trace);

}  // namespace attest
