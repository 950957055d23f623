// The outcome of one case on one backend.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "harness/verdict/bitwise.h"
#include "reference/types.h"

namespace attest {

enum class Status : std::uint8_t { pass, fail, refused, mistrusted, suspect, crashed, timeout };

constexpr const char* name_of(Status status) {
  constexpr const char* names[] = {"pass", "fail", "refused", "mistrusted", "suspect", "crashed", "timeout"};
  return names[static_cast<int>(status)];
}

/// Thrown by a step of a plan that can't be judged by its numbers: it becomes this verdict.
class CaseFault : public std::runtime_error {
 public:
  CaseFault(Status status, std::string cause, const std::string& reason)
      : std::runtime_error(reason), status_(status), cause_(std::move(cause)) {}
  Status status() const { return status_; }
  const std::string& cause() const { return cause_; }

 private:
  Status status_;
  std::string cause_;
};

/// The element with the largest error in units of its bound.
struct WorstElement {
  std::string output;  ///< "o", "lse", or a stage of a walkthrough
  std::array<std::int64_t, 4> index{};
  double got = 0, expected = 0, bound = 0;
};

struct StepSeconds {
  double prepare = 0, upload = 0, run = 0, download = 0;
};

struct Verdict {
  std::string suite, case_line, backend;
  DType dtype = DType::f32;  ///< the case's storage type
  Status status = Status::fail;
  std::string reason;  ///< empty for a pass
  std::string cause;   ///< a short name by which failures are grouped
  std::string waiver;  ///< why a suspect result counts as no failure
  std::optional<double> error_over_bound;
  std::optional<double> error_over_sigma;  ///< largest error of the sampled outputs in standard deviations
  std::optional<WorstElement> worst;
  std::int64_t rows_checked = 0, rows = 0;
  StepSeconds seconds;
  std::optional<Bitwise> bitwise;  ///< where it was asked for and the result was right
  std::string repro;
};

/// A wrong result, a crash and an endless run alike, and a suspect one that is not waived.
inline bool is_failure(const Verdict& v) {
  return v.status == Status::fail || v.status == Status::crashed || v.status == Status::timeout ||
         (v.status == Status::suspect && v.waiver.empty());
}

}  // namespace attest
