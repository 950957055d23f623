// One case made ready for timing: what its backends share.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/speed/timing/sample_rows.h"
#include "harness/speed/trust/changing_inputs.h"
#include "harness/verdict/prepared_case.h"

namespace attest {

/// Throws UserError where the memory for timing `count` backends isn't there, as check_memory does.
/// `isolated`: each has memory that it shares with this process.
void check_memory_to_time(const Case& one, std::size_t count, bool isolated = false);

class TimedCase {
 public:
  /// `seed` draws the data of the samples and which of them are checked. Throws UserError as PreparedCase does.
  TimedCase(const Case& source, const std::vector<Backend*>& backends, int threads, std::uint64_t seed);
  TimedCase(const TimedCase&) = delete;
  TimedCase& operator=(const TimedCase&) = delete;

  const Problem& problem() const { return source_.problem; }
  /// With the data of the case line: the check before the timing.
  const PreparedCase& as_written() const { return as_written_; }
  /// With data that no backend has seen: the sample of each that is checked in full.
  const PreparedCase& unseen() const { return unseen_; }
  ChangingInputs& changing() { return changing_; }
  /// What a run on the inputs handed out last must give: rows that `draw` chooses, of gradients all that is known.
  /// `standard` outlives it.
  SampleRows expected_rows(const Standard& standard, std::uint64_t draw);
  /// Two sets of outputs, for whoever runs at the moment.
  GuardedOutputs& outputs() { return outputs_; }
  GuardedOutputs& more_outputs() { return more_outputs_; }
  std::mt19937_64& random() { return random_; }
  int threads() const { return threads_; }

 private:
  int threads_;
  std::mt19937_64 random_;
  Case source_, other_;
  std::vector<AskedBackend> asked_;
  PreparedCase as_written_, unseen_;
  /// Of gradients: the data of every other run, and what they give.
  std::optional<Case> other_known_;
  std::optional<PreparedCase> also_known_;
  ChangingInputs changing_;
  GuardedOutputs outputs_, more_outputs_;
};

}  // namespace attest
