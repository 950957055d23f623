// The probes of a stated arithmetic, one function for each statement. Internal to this folder.
//
// A probe compares what the backend's answers show with what it states, and takes the other statements for granted:
// what they may add is no evidence. Nothing comes back where the rest hides what would tell.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "backends/backend.h"
#include "harness/probe/probe_problem.h"
#include "harness/verdict/answers.h"
#include "reference/arithmetic/rounding.h"

namespace attest::probes {

struct Answer {
  std::string stated, observed;
  enum class Kind { holds, is_false, too_wide, unseen } kind;
  std::string shown = {};  ///< the output that tells, and its call
};
using Kind = Answer::Kind;
using ProbeResult = std::optional<Answer>;

/// A backend that is probed in one storage type and in one size.
struct ProbeTarget {
  Backend& backend;
  DType dtype;
  ProbeSizes sizes = {};

  Probe probe(const std::string& options) const {
    return Probe("dtype=" + std::string(name_of(dtype)) + " " + options, sizes);
  }
  /// A backend owes no answer for what it refuses.
  Arithmetic arithmetic(const Probe& probe) const {
    const Answers answers = ask(backend, probe.problem());
    if (answers.refusal) throw Refused{};
    return answers.arithmetic;
  }
  double u_out() const { return unit_roundoff(dtype); }
};

/// The type in which P is held between its two products, and scores between steps.
inline DType held_weights(const Arithmetic& a) {
  return narrower(a.stored_weights, a.accumulator) ? a.stored_weights : a.accumulator;
}
inline DType held_scores(const Arithmetic& a) {
  return a.score_stores > 0 && narrower(a.stored_scores, a.accumulator) ? a.stored_scores : a.accumulator;
}
inline double rounded_to(DType type, double x) {
  std::uint64_t storage = 0;
  store(&storage, type, 0, x);
  return load(&storage, type, 0);
}
/// Whether two keys are two steps whose maxima differ by more than a difference of scores tells: rounded apart, or
/// one of them lags.
inline bool rounds_maxima(const Arithmetic& a) { return a.key_block == 1 && (a.fused_log2e || a.lazy_threshold > 0); }
/// How far exp(0) is from 1. Every other weight is seen relative to it.
double error_of_one(const ProbeTarget& target);

/// At most this often a statement of ulps or blocks may be wider than what is shown.
inline constexpr double kSlack = 4;
/// Ulps that need no proof: OpenCL 1.2 (table 7.2) leaves a device up to 5 for the functions that a softmax needs.
inline constexpr double kFreeUlps = 5;

/// `least` and `most` are what the answers prove and what they leave possible.
Answer ulps(double stated, double least, double most, std::string shown);

ProbeResult exp_error(const ProbeTarget&);
ProbeResult log_error(const ProbeTarget&);
ProbeResult tanh_error(const ProbeTarget&);
ProbeResult division(const ProbeTarget&);

ProbeResult stored_weights(const ProbeTarget&);
ProbeResult stored_scores(const ProbeTarget&);
ProbeResult base_two(const ProbeTarget&);
ProbeResult scale_placement(const ProbeTarget&);

ProbeResult accumulator(const ProbeTarget&);
ProbeResult normalised(const ProbeTarget&);
ProbeResult which_sum(const ProbeTarget&);

ProbeResult maximum(const ProbeTarget&);
ProbeResult fused_log2e(const ProbeTarget&);
ProbeResult weights_from_lse(const ProbeTarget&);

ProbeResult kept_weights(const ProbeTarget&);
ProbeResult delta_from_weights(const ProbeTarget&);
ProbeResult stored_score_gradients(const ProbeTarget&);
ProbeResult stored_head_gradients(const ProbeTarget&);
ProbeResult varying_order(const ProbeTarget&);

ProbeResult key_block(const ProbeTarget&);
ProbeResult lazy_threshold(const ProbeTarget&);
ProbeResult flush_to_zero(const ProbeTarget&);
ProbeResult state_chunk(const ProbeTarget&);

ProbeResult query_operand(const ProbeTarget&);
ProbeResult key_operand(const ProbeTarget&);
ProbeResult value_operand(const ProbeTarget&);
ProbeResult weight_operand(const ProbeTarget&);
ProbeResult query_rounding(const ProbeTarget&);
ProbeResult key_rounding(const ProbeTarget&);
ProbeResult value_rounding(const ProbeTarget&);
ProbeResult weight_rounding(const ProbeTarget&);
ProbeResult weight_factor(const ProbeTarget&);
ProbeResult score_sum(const ProbeTarget&);
ProbeResult value_sum(const ProbeTarget&);
ProbeResult weight_sum(const ProbeTarget&);
ProbeResult score_roundings(const ProbeTarget&);
ProbeResult output_roundings(const ProbeTarget&);
ProbeResult exp_absolute(const ProbeTarget&);
ProbeResult exp_argument(const ProbeTarget&);
ProbeResult rescale_ulps(const ProbeTarget&);

}  // namespace attest::probes
