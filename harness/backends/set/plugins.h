// Plug-ins that the user named, as rows of the registry behind those of the program.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/backends/isolation/isolation_options.h"

namespace attest {

class Plugins {
 public:
  /// Each library is tried in a process of its own first, within `limits`: whatever its constructors or a module's
  /// statements do, this process goes on. Throws
  /// UserError, one line with the library's path as it is given here, where one can't be used or its backends are
  /// called as others.
  Plugins(const std::vector<std::string>& paths, std::span<const BackendEntry> registry,
          const IsolationOptions& limits = {});
  Plugins(const Plugins&) = delete;
  Plugins& operator=(const Plugins&) = delete;

  /// The rows of the program, then those of the libraries in their order. They refer to this object.
  std::span<const BackendEntry> entries() const { return entries_; }
  /// Backends of the libraries.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::deque<std::string> texts_;
  std::vector<BackendEntry> entries_;
  std::vector<std::string> names_;
};

}  // namespace attest
