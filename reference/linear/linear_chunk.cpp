#include "reference/linear/linear_chunk.h"

#include <algorithm>
#include <cmath>

#include "reference/arithmetic/rounding.h"

namespace attest {

LinearChunk::LinearChunk(std::size_t keys, std::size_t columns) : keys_(keys), columns_(columns) {}

void LinearChunk::begin(const std::vector<double>& state, const std::vector<double>& error) {
  tokens_ = 0;
  error_ = error;
  held_.resize(state.size());
  for (std::size_t n = 0; n < state.size(); ++n) held_[n] = std::fabs(state[n]) + error[n];
  added_.assign(state.size(), 0.0);
  log_.assign(keys_, 0.0);
  log_magnitude_.assign(keys_, 0.0);
  values_.assign(columns_, 0.0);
  largest_key_ = 0;
}

void LinearChunk::add(const std::vector<double>& key, const std::vector<double>& value,
                      const std::vector<double>& decay_log, const std::vector<double>& off) {
  ++tokens_;
  gated_ = !decay_log.empty();
  for (std::size_t d = 0; d < keys_; ++d) {
    if (gated_) {
      log_[d] += decay_log[d];
      log_magnitude_[d] += std::fabs(decay_log[d]);
    }
    const double growth = std::exp(-log_[d]), scaled = std::fabs(key[d]) * growth;
    largest_key_ = std::max(largest_key_, scaled);
    for (std::size_t m = 0; m < columns_; ++m) {
      added_[d * columns_ + m] += scaled * std::fabs(value[m]);
      if (!off.empty()) error_[d * columns_ + m] += off[d] * growth * std::fabs(value[m]);
    }
  }
  for (std::size_t m = 0; m < columns_; ++m) values_[m] += std::fabs(value[m]);
}

bool LinearChunk::together() const {
  return std::all_of(log_magnitude_.begin(), log_magnitude_.end(), [](double sum) { return sum <= kChunkNats; });
}

double LinearChunk::term_error(const Arithmetic& a, std::size_t d, double roundings) const {
  const double u = unit_roundoff(a.accumulator);
  double exponent = roundings * u;
  if (gated_) {
    const double sums = static_cast<double>(a.state_chunk) * u, to_base2 = a.base2 ? 3 * u : 0;
    exponent += 2 * (2 * u * a.exp_ulps + (sums + to_base2) * (1 + 2 * sums) * log_magnitude_[d]);
  }
  return std::expm1(exponent);
}

std::vector<double> LinearChunk::state_bound(const Arithmetic& a) const {
  const double eta = underflow_unit(a.accumulator, a.flush_to_zero);
  const double half_range = largest_of(a.accumulator) / 2;
  const auto chunk = static_cast<double>(a.state_chunk);
  std::vector<double> bound(held_.size(), kInfinity);
  for (std::size_t d = 0; d < keys_; ++d) {
    const double decay = std::exp(log_[d]), error = term_error(a, d, chunk + 3);
    for (std::size_t m = 0; m < columns_; ++m) {
      const std::size_t at = d * columns_ + m;
      const double sum = held_[at] + added_[at];
      if (!(std::max(largest_key_, sum * std::max(1.0, decay)) <= half_range)) continue;
      // What k~, the products with it, the sums and the last product lose by underflow, and what that grows by.
      const double underflow = 2 * eta * (decay * (values_[m] + 2 * chunk) + 1);
      bound[at] = (decay * (error_[at] + error * sum) + underflow) * kEvaluation;
    }
  }
  return bound;
}

std::vector<double> LinearChunk::read_bound(const Arithmetic& a, const std::vector<double>& query, double scale,
                                            const std::vector<double>& off) const {
  const double eta = underflow_unit(a.accumulator, a.flush_to_zero), larger = std::max(1.0, scale);
  const double half_range = largest_of(a.accumulator) / 2;
  const auto chunk = static_cast<double>(a.state_chunk), features = static_cast<double>(keys_);
  std::vector<double> scaled(keys_), error(keys_);
  double queries = 0;
  for (std::size_t d = 0; d < keys_; ++d) {
    scaled[d] = query[d] * std::exp(log_[d]);
    error[d] = term_error(a, d, features + chunk + 5);
    queries += scaled[d];
  }
  std::vector<double> bound(columns_, kInfinity);
  for (std::size_t m = 0; m < columns_; ++m) {
    double magnitude = 0, carried = 0, wrong = 0, held = 0;
    for (std::size_t d = 0; d < keys_; ++d) {
      const std::size_t at = d * columns_ + m;
      const double sum = held_[at] + added_[at];
      magnitude += scaled[d] * sum;
      wrong += scaled[d] * sum * error[d];
      carried += scaled[d] * error_[at];
      if (!off.empty()) carried += off[d] * std::exp(log_[d]) * sum;
      held += sum;
    }
    if (!(larger * std::max(magnitude, queries * std::max(1.0, largest_key_)) <= half_range)) continue;
    // What q~, k~, the products of features, of tokens and with the scale lose, and what that grows by.
    const double underflow =
        2 * eta * larger * (held + (queries + 2 * features) * values_[m] + 2 * (features + chunk) + 2);
    bound[m] = (scale * (carried + wrong) + underflow) * kEvaluation;
  }
  return bound;
}

}  // namespace attest
