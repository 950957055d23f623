// What the verdicts of a run depend on besides its cases, as a later run compares it before it goes on from them.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "harness/backends/isolation/isolation_options.h"
#include "harness/backends/set/backend_set.h"
#include "harness/report/conditions.h"

namespace attest {

/// The contents of the program, of the libraries that it was linked with and of the drivers that its backends loaded;
/// processor, how many of them it may use, threads, device, isolation; what each backend says of itself; and the
/// environment variables that these libraries read. `libraries`: what was loaded before the backends were made, as
/// loaded_libraries() tells; `of_job` are those that don't count.
Conditions run_conditions(const BackendSet& backends, const Context& context,
                          const std::optional<IsolationOptions>& isolation, bool bitwise,
                          const std::vector<std::filesystem::path>& libraries,
                          const std::vector<std::filesystem::path>& of_job = {});

}  // namespace attest
