// A plan in a worker process whose steps are requests, timed from this process.
//
// The worker has neither the clock nor what is expected. It is stopped, with all its threads, as soon as it has
// answered, and goes on with the next request: nothing that it does before or afterwards helps, nor does it keep others
// from the processor meanwhile. Its processor time is the system's account.
#pragma once

#include <chrono>

#include "reference/call/tensors.h"

namespace attest {

/// What one request is to do: one step, or several in their order.
enum class ApartSteps : int { none = 0, upload = 1, run = 2, download = 4, all = 7 };

/// Of one request.
struct ApartCost {
  double seconds = 0;  ///< from the request to its answer, and the processor time from there until it was stopped
  double cpu = 0;      ///< of all threads of the worker meanwhile
};

class RunsApart {
 public:
  virtual ~RunsApart() = default;
  /// The worker gets `inputs`, and what the outputs hold, where its steps find them; it makes the plan where that is
  /// not made. Throws as steps do.
  virtual void give(const Inputs& inputs, const Outputs& outputs) = 0;
  /// Of what was given last. Throws as steps do.
  virtual ApartCost take_steps(ApartSteps steps) = 0;
  /// Lets the worker go on without a request until its threads rest, for `limit` at most: those of libraries that were
  /// just loaded may wait for work in a loop, a tenth of a second long.
  virtual void await_rest(std::chrono::milliseconds limit) = 0;
  /// Its outputs stand in `outputs` then, which are like those that were given.
  virtual void take(const Outputs& outputs) = 0;
  /// Seconds of processor time that the worker has taken.
  virtual double cpu_seconds() const = 0;
  /// Seconds of the request that made the plan; 0 before that.
  virtual double prepare_seconds() const = 0;
};

}  // namespace attest
