#include "harness/trace/drawn_projections.h"

#include <cmath>

#include "harness/base/user_error.h"
#include "harness/cases/fill.h"

namespace attest {
namespace {

constexpr std::int64_t kWidestModel = 4096;

enum Stream : std::uint64_t { kQuery = 101, kKey, kValue, kEmbeddings };

/// Heads side by side, as a projection leaves them.
void set_heads(TensorStorage& storage, std::int64_t b, const Matrix& projected) {
  const Index4 n = storage.shape();
  each_index({1, n[1], n[2], n[3]}, [&](std::int64_t, std::int64_t h, std::int64_t l, std::int64_t d) {
    storage.set(b, h, l, d, projected.at(l, h * n[3] + d));
  });
}

}  // namespace

Matrix drawn_matrix(std::uint64_t stream, std::int64_t rows, std::int64_t columns) {
  Matrix m{rows, columns, {}};
  const double width = std::sqrt(3.0 / static_cast<double>(rows));
  for (std::int64_t n = 0; n < rows * columns; ++n) {
    m.values.push_back((2 * hash_uniform(hash_words(11, stream, static_cast<std::uint64_t>(n))) - 1) * width);
  }
  return m;
}

DrawnProjections draw_projections(const Problem& p, std::int64_t model) {
  if (model < 1 || model > kWidestModel)
    throw UserError("--model: embeddings are 1 to " + std::to_string(kWidestModel) + " wide");
  if (p.query_length != p.key_length || p.past > 0 || p.page_size || p.packed_sequences())
    throw UserError("--model: q, k and v come from one X, so Lq = Lk without cached, paged or packed keys");
  DrawnProjections drawn;
  drawn.w_q = drawn_matrix(kQuery, model, p.query_heads * p.key_dim);
  drawn.w_k = drawn_matrix(kKey, model, p.key_heads * p.key_dim);
  drawn.w_v = drawn_matrix(kValue, model, p.key_heads * p.value_dim);
  drawn.inputs = make_inputs(p);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    Matrix x = drawn_matrix(kEmbeddings + static_cast<std::uint64_t>(b), p.query_length, model);
    for (double& value : x.values) value *= std::sqrt(static_cast<double>(p.query_length));
    set_heads(drawn.inputs.at(TensorId::q), b, project(x, drawn.w_q));
    set_heads(drawn.inputs.at(TensorId::k), b, project(x, drawn.w_k));
    set_heads(drawn.inputs.at(TensorId::v), b, project(x, drawn.w_v));
    drawn.embeddings.push_back(std::move(x));
  }
  return drawn;
}

}  // namespace attest
