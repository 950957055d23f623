// The outcome of one case on one backend.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/comparison/accuracy.h"
#include "harness/comparison/cause.h"
#include "harness/comparison/error_map.h"
#include "harness/comparison/signed_bias.h"
#include "harness/comparison/worst_element.h"
#include "reference/base/names.h"
#include "reference/base/types.h"

namespace attest {

/// `convention`: differs from attest's definition, but agrees with a convention that the backend states.
/// `weak`: within its bounds, but most bounds of an output are as large as the values.
/// `flaky`: wrong in some runs of the same, right in others (Verdict::repeats).
enum class Status : std::uint8_t {
  pass,
  fail,
  refused,
  inconclusive,
  suspect,
  crashed,
  timeout,
  convention,
  weak,
  flaky
};

template <>
inline constexpr auto kNames<Status> = name_table("pass", "fail", "refused", "inconclusive", "suspect", "crashed",
                                                  "timeout", "convention", "weak", "flaky");

/// Of runs that differ in nothing: how many there were, and how many of them were wrong.
struct Repeats {
  std::int64_t wrong = 0, runs = 0;
  bool differ() const { return wrong > 0 && wrong < runs; }
  std::string text() const { return "wrong in " + std::to_string(wrong) + " of " + std::to_string(runs) + " runs"; }
};

/// Thrown by a step of a plan that can't be judged by its numbers: it becomes this verdict.
class CaseFault : public std::runtime_error {
 public:
  CaseFault(Status status, FailureCause cause, const std::string& reason)
      : std::runtime_error(reason), status_(status), cause_(std::move(cause)) {}
  /// Of runs that differ: Status::flaky.
  CaseFault(const Repeats& repeats, const std::string& reason)
      : std::runtime_error(reason), status_(Status::flaky), cause_{Cause::not_every_time}, repeats_(repeats) {}
  Status status() const { return status_; }
  const FailureCause& cause() const { return cause_; }
  const std::optional<Repeats>& repeats() const { return repeats_; }

 private:
  Status status_;
  FailureCause cause_;
  std::optional<Repeats> repeats_;
};

/// Whether results have the same bits again; empty where that does not apply.
struct BitwiseFacts {
  std::optional<bool> runs;     ///< the same plan five times, and a new plan
  std::optional<bool> threads;  ///< backends made for other numbers of threads
  std::optional<bool> batch;    ///< some sequences of the batch, each alone
};

struct StepSeconds {
  double prepare = 0, upload = 0, run = 0, download = 0;
};

struct Verdict {
  std::string suite, case_line, backend;
  std::string call_line;     ///< of a file's case: the call it holds, as a case line
  std::string content;       ///< of a case from a file: the fingerprint of its bytes, as its name may stay
  std::int64_t number = 0;   ///< of the case among all that were asked for, shards together, from 1; 0: not said
  DType dtype = DType::f32;  ///< the case's storage type
  Status status = Status::fail;
  std::string reason;                   ///< empty for a pass
  FailureCause cause;                   ///< by which failures are grouped
  std::vector<std::string> mistakes;    ///< by name those known ones that give exactly this (known_mistakes.h)
  std::string after;                    ///< the earlier case that makes this one wrong: its line, or its file
  std::vector<std::string> not_needed;  ///< of a smallest case: options of the failing one that it lacks
  std::string steps;                    ///< of three plans, among which the result is wrong (plan_life.h)
  std::optional<Repeats> repeats;       ///< where it was wrong in some runs of the same alone
  std::string waiver;                   ///< why a suspect result counts as no failure
  std::optional<double> error_over_bound;
  std::optional<double> error_over_sigma;  ///< largest error of the sampled outputs in standard deviations
  std::vector<SignedBias> bias;            ///< of each result that was compared
  std::vector<Accuracy> accuracy;          ///< of the same
  std::optional<WorstElement> worst;       ///< in units of the bound, or of the standard deviation
  std::optional<ErrorMap> error_map;       ///< where elements are wrong, beside the backend's own outputs
  std::int64_t rows_checked = 0, rows = 0;
  StepSeconds seconds;
  std::optional<BitwiseFacts> bitwise;  ///< where it was asked for and the result was right
  std::string repro;
};

/// Whether the verdict counts as a failure: a wrong result, if only sometimes, a crash, a timeout, or a suspect result
/// without a waiver.
inline bool is_failure(const Verdict& v) {
  return v.status == Status::fail || v.status == Status::crashed || v.status == Status::timeout ||
         v.status == Status::flaky || (v.status == Status::suspect && v.waiver.empty());
}

/// Whether the result is right by attest's definition, or by the backend's stated conventions. A weak one is, too.
inline bool is_right(const Verdict& v) {
  return v.status == Status::pass || v.status == Status::convention || v.status == Status::weak;
}

}  // namespace attest
