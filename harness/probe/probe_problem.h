// A small problem with inputs that a probe sets at will.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "backends/refusal.h"
#include "harness/base/user_error.h"
#include "harness/cases/inputs.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/plan_execution.h"
#include "reference/options/case_line.h"

namespace attest {

/// Thrown by a probe that the backend refuses.
struct Refused {};

/// What a probe's problem is enlarged to: some backends round otherwise in larger calls.
struct ProbeSizes {
  std::int64_t batch = 1, heads = 1, key_heads = 1;
  std::int64_t key_dim = 0, value_dim = 0;  ///< at least

  bool operator==(const ProbeSizes&) const = default;
};

/// One small problem with inputs that a probe sets at will. They are made where one is set: a call that is only asked
/// about has none.
class Probe {
 public:
  using Value = std::function<double(std::int64_t, std::int64_t)>;

  explicit Probe(const std::string& line, const ProbeSizes& sizes = {})
      : target_(parse_case(line)), problem_(in_sizes(target_, sizes)) {}

  const Problem& problem() const { return problem_; }
  const CaseInputs& inputs() const {
    if (!inputs_) inputs_ = make_inputs(problem_);
    return *inputs_;
  }

  /// Of feature d of query or key l, the same in every head; features that the sizes ask for besides are 0.
  void set_q(const Value& value) { set(input(TensorId::q), target_.call.key_dim, value); }
  void set_k(const Value& value) { set(input(TensorId::k), target_.call.key_dim, value); }
  void set_v(const Value& value) { set(input(TensorId::v), target_.call.value_dim, value); }
  /// Of one that has the same features whatever the sizes: an input of the backward pass, by row.
  void set(TensorId id, const Value& value) { set(input(id), input(id).shape()[3], value); }
  void set_mask(const Value& value) { set(input(TensorId::mask), problem_.call.key_length, value); }
  bool mask_at(std::int64_t i, std::int64_t j) const {
    const TensorStorage& mask = inputs().at(TensorId::mask);
    return load(mask.memory().data(), mask.dtype(), mask.place().element(0, 0, i, j)) != 0;
  }

  void run(Backend& backend) {
    if (refusal_of(backend, problem_)) throw Refused{};
    if (!outputs_) outputs_.emplace(problem_);
    walk_once(backend, problem_, inputs().views(), *outputs_);
  }
  /// Of the last run.
  double out(std::int64_t i, std::int64_t c) const { return outputs_->out(0, 0, i, c); }
  double lse(std::int64_t i) const { return outputs_->lse(0, 0, i); }
  double weight(std::int64_t i, std::int64_t j) const { return outputs_->at(TensorId::weights, 0, 0, i, j); }

  double gradient(TensorId id, std::int64_t l, std::int64_t d) const { return outputs_->at(id, 0, 0, l, d); }

  /// Names an output and the call, for who wants to see it.
  std::string shown(std::int64_t i, std::int64_t c) const {
    return fmt::format("o[0,0,{},{}] = {:.9g} of \"{}\"", i, c, out(i, c), line());
  }
  std::string shown_lse(std::int64_t i) const {
    return fmt::format("lse[0,0,{}] = {:.9g} of \"{}\"", i, lse(i), line());
  }

  /// With v the identity the outputs are the weights: how many keys row i sees.
  std::int64_t keys_seen(std::int64_t i) const {
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < problem_.call.value_dim; ++j) count += out(i, j) != 0;
    return count;
  }

 private:
  TensorStorage& input(TensorId id) {
    inputs();
    return inputs_->at(id);
  }
  const std::string& line() const {
    if (line_.empty()) line_ = print_case(problem_);
    return line_;
  }
  static Problem in_sizes(Problem problem, const ProbeSizes& sizes) {
    problem.call.batch = sizes.batch;
    problem.call.query_heads = sizes.heads;
    problem.call.key_heads = sizes.key_heads;
    if (sizes.key_dim > problem.call.key_dim) {
      problem.call.scale = problem.call.scale_value();  // of as many features as are asked for
      problem.call.key_dim = sizes.key_dim;
    }
    problem.call.value_dim = std::max(problem.call.value_dim, sizes.value_dim);
    return problem;
  }

  static void set(TensorStorage& tensor, std::int64_t features, const Value& value) {
    each_index(tensor.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      tensor.set(b, h, l, d, d < features ? value(l, d) : 0);
    });
  }

  Problem target_, problem_;
  mutable std::string line_;
  mutable std::optional<CaseInputs> inputs_;
  std::optional<GuardedOutputs> outputs_;
};

inline double zero(std::int64_t, std::int64_t) { return 0; }

/// What a probe says; "refused" when the backend refuses, "threw: ..." when it throws.
template <class Ask>
std::string observe(const Ask& ask) {
  try {
    return ask();
  } catch (const Refused&) {
    return "refused";
  } catch (const UnusableBackend&) {
    throw;
  } catch (const std::exception& error) {
    return std::string("threw: ") + error.what();
  }
}

}  // namespace attest
