// The backends that a function of the module works with, as Python names them.
#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/backends/isolation/isolation_options.h"
#include "harness/backends/set/backend_set.h"
#include "harness/backends/set/plugins.h"

namespace attest {

/// What every function that runs backends is given. Its members are those of attest._api.Request, in Python.
struct Request {
  int threads = 1;
  std::string device;
  IsolationOptions limits;                    ///< of processes of their own
  std::optional<IsolationOptions> isolation;  ///< the same, where backends have them

  explicit Request(const nanobind::object& request);
  Context context() const { return {threads, device}; }
};

/// Natives by name, plug-ins and importable objects by their source, and objects that live in this interpreter.
class ChosenBackends {
 public:
  /// `request.backends` is a list of (name, object or None, source). With the interpreter's lock. Throws UserError.
  ChosenBackends(const nanobind::object& request, std::span<const BackendEntry> native);
  ~ChosenBackends();
  ChosenBackends(const ChosenBackends&) = delete;
  ChosenBackends& operator=(const ChosenBackends&) = delete;

  /// Makes them. Without the interpreter's lock.
  BackendSet make(const Context& context, const std::optional<IsolationOptions>& isolation) const;

 private:
  std::deque<std::string> texts_;
  std::vector<BackendEntry> registry_;
  std::optional<Plugins> plugins_;
  std::vector<std::string> names_;
};

/// One backend as a plan wants it: a copy of the object, or an instance of the class, told threads and device.
std::unique_ptr<Backend> make_python_backend(const nanobind::object& object, const std::string& source,
                                             const Context& context);

/// The native backends of this module.
void set_native_backends(std::span<const BackendEntry> native);
std::span<const BackendEntry> native_backends();

}  // namespace attest
