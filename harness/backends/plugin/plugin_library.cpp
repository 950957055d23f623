#include "harness/backends/plugin/plugin_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "harness/backends/plugin/plugin_backend.h"
#include "harness/base/float_environment.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"

namespace attest {

namespace {

/// As dlopen must be given it: a name without a folder would be looked for elsewhere.
PluginTable load(const std::string& path) {
  const FloatEnvironment environment;  // constructors of libraries built with -ffast-math switch to flushing
  const std::string absolute = std::filesystem::absolute(path).string();
  void* library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    std::string why = dlerror();
    // The loader puts the path in front of some complaints, and the library that is missing in front of others.
    if (why.starts_with(absolute + ": ")) why.erase(0, absolute.size() + 2);
    throw UserError("it can't be loaded: " + printable_line(why));
  }
  void* symbol = dlsym(library, "attest_plugin_entry");
  if (!symbol) throw UserError("it exports no attest_plugin_entry, so it is no plug-in of attest");
  const auto entry = reinterpret_cast<decltype(&attest_plugin_entry)>(symbol);
  PluginTable table = read_plugin_table(entry(ATTEST_PLUGIN_ABI));
  table.path = path;
  return table;
}

}  // namespace

std::shared_ptr<const PluginTable> load_plugin(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const PluginTable>> loaded;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const PluginTable>& plugin = loaded[path];
  if (!plugin) plugin = std::make_shared<const PluginTable>(load(path));
  return plugin;
}

std::vector<std::string> backends_of(const PluginTable& plugin) {
  std::vector<std::string> names;
  for (const attest_backend& backend : plugin.backends) names.emplace_back(backend.name);
  return names;
}

std::unique_ptr<Backend> make_plugin_backend(const std::shared_ptr<const PluginTable>& plugin, const std::string& name,
                                             const Context& context) {
  for (std::size_t n = 0; n < plugin->backends.size(); ++n) {
    if (plugin->backends[n].name == name) return std::make_unique<PluginBackend>(plugin, n, context);
  }
  throw BackendUnavailable("the plug-in has no backend \"" + name + "\"");
}

}  // namespace attest
