#include "harness/trace/gradient_stages.h"

#include "reference/softmax/gradient.h"

namespace attest {
namespace {

using Matrix = std::vector<std::vector<double>>;

/// to += factor * from
void add(std::vector<double>& to, double factor, const double* from) {
  for (std::size_t d = 0; d < to.size(); ++d) to[d] += factor * from[d];
}

Matrix zeros(std::size_t rows, std::int64_t columns) {
  return Matrix(rows, std::vector<double>(static_cast<std::size_t>(columns)));
}

}  // namespace

std::vector<Stage> gradient_stages(const Head& head, const Inputs& inputs, std::int64_t b, std::int64_t h,
                                   const std::vector<Row>& rows, const std::vector<std::string>& queries,
                                   const std::vector<std::string>& keys) {
  const Call& p = head.call();
  Matrix of_output, of_lse, products, means, scores, raw,
      dq = zeros(rows.size(), p.key_dim), dk = zeros(keys.size(), p.key_dim), dv = zeros(keys.size(), p.value_dim);
  RowGradient gradient;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const RowLoss loss = loss_of(p, inputs, b, h, row);
    differentiate(head, rows[i], loss, gradient);
    of_output.push_back(loss.out);
    of_lse.push_back({loss.lse});
    products.push_back(gradient.products);
    means.push_back({gradient.mean});
    scores.push_back(gradient.scores);
    raw.push_back(gradient.raw);
    const std::vector<double> query = head.query_row(row);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      if (!rows[i].seen[j]) continue;
      const double of_raw = p.scale_value() * gradient.raw[j];
      const double kept = rows[i].factors.empty() ? 1 : rows[i].factors[j];
      add(dq[i], of_raw, head.key_row(static_cast<std::int64_t>(j)));
      add(dk[j], of_raw, query.data());
      add(dv[j], kept * rows[i].weights[j], loss.out.data());
    }
  }
  std::vector<Stage> stages = {{"do", "do: the loss's derivatives by the output", queries, {}, of_output}};
  if (p.dlse) stages.push_back({"dlse", "dlse: its derivatives by the logsumexp", queries, {}, of_lse});
  const std::string by_weights = p.dropout > 0 ? "dP = dropout * (do * v^T)" : "dP = do * v^T";
  stages.push_back({"dP", by_weights + ", by the weights", queries, keys, products});
  stages.push_back({"D", "D = sum of weights * dP over a row", queries, {}, means});
  stages.push_back(
      {"dS",
       std::string("dS = weights * (dP - D") + (p.dlse ? " + dlse" : "") + "), by the scores that enter the softmax",
       queries, keys, scores});
  if (p.softcap) stages.push_back({"dT", "dT = dS * (1 - tanh^2), by the scaled scores", queries, keys, raw});
  const std::string of_scores = p.softcap ? "dT" : "dS";
  const std::string share = p.heads_per_group() > 1 ? ", this head's share" : "";
  stages.push_back({"dq", "dq = scale * " + of_scores + " * k", queries, {}, dq});
  stages.push_back({"dk", "dk = scale * " + of_scores + "^T * q" + share, keys, {}, dk});
  stages.push_back(
      {"dv", std::string("dv = ") + (p.dropout > 0 ? "dropped " : "") + "weights^T * do" + share, keys, {}, dv});
  return stages;
}

}  // namespace attest
