// A plug-in in this process: a library with backends behind the interface of backends/plugin/attest/attest_plugin.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/backends/plugin/plugin_table.h"

namespace attest {

/// Loads the library at a path into this process, for good: threads and tables of its own may outlive its last backend.
/// Its constructors run here; asked again, it is not loaded again. Throws UserError with a sentence that doesn't name
/// the library.
std::shared_ptr<const PluginTable> load_plugin(const std::string& path);

/// Those that it has, in its order.
std::vector<std::string> backends_of(const PluginTable& plugin);

/// Makes one of them. Throws BackendUnavailable with its reason, or where what it says of itself breaks a rule.
std::unique_ptr<Backend> make_plugin_backend(const std::shared_ptr<const PluginTable>& plugin, const std::string& name,
                                             const Context& context);

}  // namespace attest
