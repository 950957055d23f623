#include "harness/verdict/row_stages.h"

#include <algorithm>
#include <cmath>

namespace attest {

std::vector<double> added_scores(const Row& row) {
  std::vector<double> added(row.seen.size(), -kInfinity);
  for (std::size_t j = 0; j < added.size(); ++j) {
    if (!row.seen[j]) continue;
    const ScoreBias bias = row.bias(j);
    added[j] = bias.additive + bias.alibi;
  }
  return added;
}

std::vector<double> hidden_keys(const Row& row) {
  std::vector<double> additive(row.seen.size(), -kInfinity), hidden(row.seen.size(), 1);
  double largest = -kInfinity;
  for (std::size_t j = 0; j < hidden.size(); ++j) {
    if (!row.seen[j]) continue;
    additive[j] = row.bias(j).additive;
    largest = std::max(largest, additive[j]);
  }
  for (std::size_t j = 0; j < hidden.size(); ++j) {
    if (row.seen[j] && std::exp(additive[j] - largest) > 0) hidden[j] = 0;
  }
  return hidden;
}

std::vector<double> masked_scores(const Row& row) {
  std::vector<double> scores = row.biased;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (!row.seen[j]) scores[j] = -kInfinity;
  }
  return scores;
}

}  // namespace attest
