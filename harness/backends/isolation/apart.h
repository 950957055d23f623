// A plan in a worker process whose steps are one request, timed from this process.
//
// The worker has neither the clock nor what is expected. It is stopped, with all its threads, as soon as it has
// answered, and goes on when the next request's data are written: nothing that it does before or afterwards helps, nor
// does it keep others from the processor meanwhile.
// Its processor time is the system's account.
#pragma once

#include <functional>

#include "reference/call/tensors.h"

namespace attest {

/// Of one request with upload, run and download.
struct ApartCost {
  double seconds = 0;  ///< from the request to its answer, and the processor time from there until it was stopped
  double cpu = 0;      ///< of all threads of the worker meanwhile
};

class RunsApart {
 public:
  virtual ~RunsApart() = default;
  /// `inputs` and what `outputs` hold are given to the worker; after the request its outputs stand in `outputs`.
  /// `before_waking`, where not empty, is called when all is written. Throws as steps do.
  virtual ApartCost run_apart(const Inputs& inputs, const Outputs& outputs,
                              const std::function<void()>& before_waking = {}) = 0;
  /// A request to do nothing.
  virtual ApartCost empty_request() = 0;
  /// Seconds of processor time that the worker has taken.
  virtual double cpu_seconds() const = 0;
};

}  // namespace attest
