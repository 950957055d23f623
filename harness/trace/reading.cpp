#include "harness/trace/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace attest {
namespace {

constexpr std::size_t kMaxTerms = 8;  ///< of the sum that is written out

std::vector<std::size_t> seen_by(const ReadableRows& r, std::size_t i) {
  std::vector<std::size_t> seen;
  for (std::size_t j = 0; j < r.hidden[i].size(); ++j) {
    if (r.hidden[i][j] == 0) seen.push_back(j);
  }
  return seen;
}

std::size_t largest_of(const std::vector<double>& weights) {
  return static_cast<std::size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
}

std::size_t least_even(const ReadableRows& r) {
  std::size_t best = 0;
  double most = -1;
  for (std::size_t i = 0; i < r.rows.size(); ++i) {
    const std::vector<std::size_t> seen = seen_by(r, i);
    if (seen.size() < 2) continue;
    const double excess = r.rows[i].weights[largest_of(r.rows[i].weights)] * static_cast<double>(seen.size());
    if (excess > most) {
      most = excess;
      best = i;
    }
  }
  return best;
}

/// "0.2483 * v[key 0] + ...": the largest terms, in the order of the keys.
std::string sum_of_values(const ReadableRows& r, std::size_t i, const std::vector<std::size_t>& seen) {
  std::vector<double> factors = r.rows[i].weights;
  for (std::size_t j = 0; j < r.rows[i].factors.size(); ++j) factors[j] *= r.rows[i].factors[j];
  std::vector<std::size_t> shown = seen;
  std::stable_sort(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) { return factors[a] > factors[b]; });
  shown.resize(std::min(shown.size(), kMaxTerms));
  std::sort(shown.begin(), shown.end());
  std::string sum;
  for (std::size_t j : shown) {
    sum += fmt::format("{}{:.4f} * v[{}]", sum.empty() ? "" : " + ", factors[j], r.keys[j]);
  }
  return sum + (seen.size() > shown.size() ? fmt::format(" + {} smaller terms", seen.size() - shown.size()) : "");
}

}  // namespace

std::string read_row(const ReadableRows& r, const std::optional<std::size_t>& asked) {
  const std::size_t i = asked.value_or(least_even(r));
  const std::string& name = r.queries[i];
  const std::vector<std::size_t> seen = seen_by(r, i);
  if (seen.empty()) return fmt::format("\"{}\" sees no key: its output is 0.", name);
  const std::vector<double>& weights = r.rows[i].weights;
  const std::size_t top = largest_of(weights);
  const double share = 100 * weights[top];
  const std::string sum = fmt::format("output[{}] = {}", name, sum_of_values(r, i, seen));
  if (seen.size() == 1) {
    return fmt::format("\"{}\" sees one key, \"{}\", which has {:.1f}% of its weight.\n{}", name, r.keys[top], share,
                       sum);
  }
  return fmt::format(
      "\"{}\" attends most to \"{}\": {:.1f}% of its weight, where an even share among the {} keys it sees would be "
      "{:.1f}%.\nIts output is {} the value of \"{}\":\n{}",
      name, r.keys[top], share, seen.size(), 100.0 / static_cast<double>(seen.size()),
      weights[top] > 0.9   ? "almost exactly"
      : weights[top] > 0.5 ? "mostly"
                           : "only partly",
      r.keys[top], sum);
}

}  // namespace attest
