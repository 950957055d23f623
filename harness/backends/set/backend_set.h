// The backends of a command: those that the user named, or all that are available here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/backends/isolation/isolation_options.h"
#include "harness/base/unavailable.h"

namespace attest {

class BackendSet {
 public:
  /// Without `names`: every backend of the registry; unavailable() lists those that cannot be created.
  /// Throws UserError for an unknown name, with the nearest one; for a named backend that is not available; and for a
  /// backend whose name is "reference", that of another, or not the registry's.
  /// With `isolation` each that it is for runs in a process of its own, but for those that span the ranks of
  /// context.group. Each has the parameters chosen for it (harness/tuning/parameters.h), which throws UserError, too.
  BackendSet(std::span<const BackendEntry> registry, const std::vector<std::string>& names, const Context& context,
             const std::optional<IsolationOptions>& isolation = std::nullopt);

  /// Throws UserError for the first of these names that is unknown, not available here, or not selected.
  void require(const std::vector<std::string>& names) const;
  std::vector<Backend*> all() const;
  /// Null where the set has none of this name.
  Backend* find(const std::string& name) const;
  /// One of these made anew, as the set made it, or for another number of threads: with isolation in a process of its
  /// own. Null for a backend that spans ranks. Throws as a backend's factory.
  std::unique_ptr<Backend> fresh(const std::string& name, int threads = 0) const;
  /// From now on fresh() gives each a process of its own, which what the program keeps can't reach.
  void isolate_fresh(const IsolationOptions& isolation) { fresh_isolation_ = isolation; }
  const std::vector<Unavailable>& unavailable() const { return unavailable_; }

 private:
  /// A row of the registry that outlives it.
  struct Origin {
    std::string name, plugin;
    std::function<std::unique_ptr<Backend>(const Context&)> make;
  };

  Context context_;
  std::optional<IsolationOptions> fresh_isolation_;
  std::vector<Origin> origins_;     ///< of backends_, in their order
  std::vector<std::string> known_;  ///< names of the registry
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<Unavailable> unavailable_;
};

/// The backend of this name in each of the sets that have it.
std::vector<Backend*> find_in_each(const std::vector<BackendSet>& sets, const std::string& name);

/// Names in "a,b,c"; throws UserError for an empty one. `what` they are stands in the message.
std::vector<std::string> split_names(const std::string& list, const std::string& what = "backends");

}  // namespace attest
