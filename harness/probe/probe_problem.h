// A small problem with inputs that a probe sets at will.
#pragma once

#include <functional>
#include <string>

#include "backends/refusal.h"
#include "harness/cases/inputs.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/plan_walk.h"
#include "reference/case_line.h"

namespace attest {

/// Thrown by a probe that the backend refuses.
struct Refused {};

/// One small problem with inputs that a probe sets at will.
class Probe {
 public:
  explicit Probe(const std::string& line)
      : problem_(parse_case(line)), inputs_(make_inputs(problem_)), outputs_(problem_) {}

  const Problem& problem() const { return problem_; }

  void set_q(const std::function<double(std::int64_t, std::int64_t)>& value) { set(inputs_.q, value); }
  void set_k(const std::function<double(std::int64_t, std::int64_t)>& value) { set(inputs_.k, value); }
  void set_v(const std::function<double(std::int64_t, std::int64_t)>& value) { set(inputs_.v, value); }
  void set_mask(const std::function<double(std::int64_t, std::int64_t)>& value) { set(inputs_.mask, value); }
  bool mask_at(std::int64_t i, std::int64_t j) const {
    const auto mask = *inputs_.views().mask;
    return static_cast<const std::uint8_t*>(mask.data)[mask.offset(0, 0, i, j)] != 0;
  }

  void run(Backend& backend) {
    if (refusal_of(backend, problem_)) throw Refused{};
    walk_once(backend, problem_, inputs_.views(), outputs_);
  }
  double out(std::int64_t i, std::int64_t c) const { return outputs_.out(0, 0, i, c); }
  double lse(std::int64_t i) const { return outputs_.lse(0, 0, i); }

  /// With v the identity the outputs are the weights: how many keys row i sees.
  std::int64_t keys_seen(std::int64_t i) const {
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < problem_.value_dim; ++j) count += out(i, j) != 0;
    return count;
  }

 private:
  static void set(TensorStorage& tensor, const std::function<double(std::int64_t, std::int64_t)>& value) {
    for (std::int64_t l = 0; l < tensor.shape()[2]; ++l) {
      for (std::int64_t d = 0; d < tensor.shape()[3]; ++d) tensor.set(0, 0, l, d, value(l, d));
    }
  }

  Problem problem_;
  CaseInputs inputs_;
  GuardedOutputs outputs_;
};

inline double zero(std::int64_t, std::int64_t) { return 0; }

/// What a probe says; "refused" when the backend refuses, "threw: ..." when it throws.
template <class Ask>
std::string observe(const Ask& ask) {
  try {
    return ask();
  } catch (const Refused&) {
    return "refused";
  } catch (const std::exception& error) {
    return std::string("threw: ") + error.what();
  }
}

}  // namespace attest
