#include "reference/linear/linear_gradient_sums.h"

#include <algorithm>
#include <cmath>

#include "reference/call/tensor_table.h"
#include "reference/linear/linear_gradient.h"
#include "reference/linear/linear_rounding.h"

namespace attest {
namespace {

/// One result: its value, and for each producer the bound before it is stored, dense in the order of the axes.
struct Result {
  TensorId id;
  Index4 shape;
  std::vector<double> values;
  std::vector<std::vector<double>> bounds;
  std::vector<std::size_t> arithmetics;  ///< of each producer, its number in the list of different ones

  std::size_t row(std::int64_t b, std::int64_t h, std::int64_t l) const {
    const std::int64_t head = shape[1] == 1 ? 0 : h;  // beta of all heads
    return static_cast<std::size_t>(((b * shape[1] + head) * shape[2] + l) * shape[3]);
  }
  void add(std::size_t at, const std::vector<double>& numbers) {
    for (std::size_t n = 0; n < numbers.size(); ++n) values[at + n] += numbers[n];
  }
  void add_bound(std::size_t producer, std::size_t at, const std::vector<double>& numbers) {
    for (std::size_t n = 0; n < numbers.size(); ++n) bounds[producer][at + n] += numbers[n];
  }
};

const std::vector<double>& of_token(const TokenGradient& token, TensorId id) {
  switch (id) {
    case TensorId::dk: return token.key;
    case TensorId::dv: return token.value;
    case TensorId::ddecay: return token.decay;
    default: return token.beta;
  }
}

class Gradients {
 public:
  Gradients(const Call& p, const Inputs& inputs, const std::vector<TensorId>& ids,
            const std::vector<Producer>& producers)
      : p_(p), inputs_(inputs), producers_(producers) {
    for (const TensorId id : ids) {
      const Index4 n = seen_shape(p, id);
      const auto count = static_cast<std::size_t>(n[0] * n[1] * n[2] * n[3]);
      Result& result = results_.emplace_back();
      result = {id, n, std::vector<double>(count), std::vector(producers.size(), std::vector<double>(count)), {}};
      for (const Producer& producer : producers) {
        const Arithmetic own = producer.arithmetic.of(id);
        const auto found = std::ranges::find(arithmetics_, own);
        result.arithmetics.push_back(static_cast<std::size_t>(found - arithmetics_.begin()));
        if (found == arithmetics_.end()) arithmetics_.push_back(own);
      }
    }
  }

  void add_head(std::int64_t b, std::int64_t h) {
    LinearGradient gradient(p_, inputs_, b, h, arithmetics_);
    while (gradient.tokens_left() > 0) {
      gradient.step();
      for (Result& result : results_) {
        if (result.id == TensorId::dstate) continue;
        const std::size_t at = result.row(b, h, gradient.tokens_left());
        result.add(at, of_token(gradient.values(), result.id));
        for (std::size_t n = 0; n < producers_.size(); ++n)
          result.add_bound(n, at, of_token(gradient.bounds(result.arithmetics[n]), result.id));
        if (result.id == TensorId::dbeta) add_magnitudes(result, at, gradient);
      }
    }
    for (Result& result : results_) {
      if (result.id != TensorId::dstate) continue;
      const std::size_t at = result.row(b, h, 0);
      result.add(at, gradient.state());
      for (std::size_t n = 0; n < producers_.size(); ++n)
        result.add_bound(n, at, gradient.state_bounds(result.arithmetics[n]));
    }
  }

  WholeResults finished() {
    WholeResults all;
    all.bounds.resize(producers_.size());
    for (Result& result : results_) {
      for (std::size_t n = 0; n < producers_.size(); ++n)
        all.bounds[n].of(result.id) =
            stored_bounds(p_, producers_[n], result.id, result.values, std::move(result.bounds[n]));
      all.values.of(result.id) = std::move(result.values);
    }
    return all;
  }

 private:
  /// One beta of all heads: its gradient is a sum over them, in any order.
  void add_magnitudes(Result& result, std::size_t at, const LinearGradient& gradient) const {
    if (!p_.beta_shared) return;
    for (std::size_t n = 0; n < producers_.size(); ++n) {
      const AccumulatorLimits limits(producers_[n].arithmetic.of(result.id));
      const double size = std::fabs(gradient.values().beta[0]) + gradient.bounds(result.arithmetics[n]).beta[0];
      result.bounds[n][at] += limits.gamma(static_cast<double>(p_.key_heads)) * size;
    }
  }

  const Call& p_;
  const Inputs& inputs_;
  const std::vector<Producer>& producers_;
  std::vector<Arithmetic> arithmetics_;
  std::vector<Result> results_;
};

}  // namespace

std::vector<double> stored_bounds(const Call& call, const Producer& producer, TensorId result,
                                  const std::vector<double>& values, std::vector<double> bounds) {
  const Storing storing(producer.arithmetic.of(result), producer.type_of(call, result));
  for (std::size_t n = 0; n < bounds.size(); ++n) bounds[n] = storing.bound(std::fabs(values[n]), bounds[n]);
  return bounds;
}

WholeResults linear_gradients(const Call& p, const Inputs& inputs, const std::vector<TensorId>& results,
                              const std::vector<Producer>& producers, const std::vector<char>& of_key_heads) {
  Gradients gradients(p, inputs, results, producers);
  // Of results that are checked as a whole, every head counts.
  const bool of_all = std::ranges::any_of(results, [](TensorId id) { return index_space(id) == IndexSpace::other; });
  for (std::int64_t n = 0; n < p.batch * p.key_heads; ++n) {
    if (of_all || of_key_heads.empty() || of_key_heads[static_cast<std::size_t>(n)])
      gradients.add_head(n / p.key_heads, n % p.key_heads);
  }
  return gradients.finished();
}

}  // namespace attest
