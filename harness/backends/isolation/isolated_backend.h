// A backend in a process of its own: what it does to its memory, its process or its time stays there.
//
// It is a Backend like any other: refuse, arithmetic, prepare, upload, run and download become requests to a worker.
// Inputs lie read-only against inaccessible pages there, outputs against inaccessible pages. When a worker dies or
// takes too long, the step throws CaseFault and the next request starts a new worker.
#pragma once

#include <memory>
#include <string>

#include "backends/backend.h"
#include "harness/backends/isolation/isolation_options.h"

namespace attest {

/// Starts a worker; `plugin` is the path of the library that has the backend, "" for this program. Throws
/// BackendUnavailable with the worker's reason.
std::unique_ptr<Backend> isolated_backend(std::string name, const Context& context, const IsolationOptions& options,
                                          std::string plugin = "");

/// The fingerprint of what a backend's worker has loaded, program and libraries; "" for a backend in this process.
std::string worker_code(const Backend& backend);

/// The layers of a sandbox around a backend's worker, as sandbox_text() says them; "" where there is none.
std::string sandbox_of(const Backend& backend);

/// A backend that is another one under a name of its own.
class StandsFor {
 public:
  virtual ~StandsFor() = default;
  virtual const Backend& backend() const = 0;
};

/// Whether it is one of these, or stands for one. So with the function below.
bool is_isolated(const Backend& backend);

/// Waits until a backend's worker, if it has one, has done all requests: plans are dropped without a reply. Throws
/// CaseFault when the worker ends or takes too long.
void wait_for_worker(const Backend& backend);

}  // namespace attest
