// Embeddings and learned projections where a case has neither: drawn, so that a trace can start at embeddings of any
// width.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/cases/inputs.h"
#include "reference/operators/projection.h"

namespace attest {

/// Uniform, a function of `stream` and the index alone, with the variance that keeps x * w near that of x.
Matrix drawn_matrix(std::uint64_t stream, std::int64_t rows, std::int64_t columns);

struct DrawnProjections {
  std::vector<Matrix> embeddings;  ///< X of each batch: L x model, variance 1
  Matrix w_q, w_k, w_v;            ///< model x heads * dim
  CaseInputs inputs;               ///< q = X * W_Q, k = X * W_K, v = X * W_V, rounded to the case's type
};

/// Throws UserError for a problem that is no self-attention over dense tensors.
DrawnProjections draw_projections(const Problem& problem, std::int64_t model);

}  // namespace attest
