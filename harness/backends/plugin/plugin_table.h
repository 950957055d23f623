// The rules that what a plug-in exports must keep, before any of its backends is asked for something.
#pragma once

#include <string>
#include <vector>

#include "backends/plugin/attest/attest_plugin.h"

namespace attest {

/// A plug-in's table, read as far as this host knows it.
struct PluginTable {
  std::string path;  ///< of the library, as the user named it
  attest_plugin plugin{};
  std::vector<attest_backend> backends;          ///< members that the plug-in doesn't know are NULL
  std::vector<const attest_backend*> originals;  ///< as the plug-in has them
};

/// Copies and checks what attest_plugin_entry returned. Throws UserError with a sentence that names the rule; whoever
/// knows the library's name puts it in front.
PluginTable read_plugin_table(const attest_plugin* exported);

}  // namespace attest
