#include "harness/isolation/backend_set.h"

#include <algorithm>

#include "harness/base/user_error.h"
#include "harness/isolation/isolated_backend.h"
#include "reference/nearest.h"

namespace attest {

BackendSet::BackendSet(std::span<const BackendEntry> registry, const std::vector<std::string>& names,
                       const Context& context, const std::optional<IsolationOptions>& isolation) {
  std::vector<std::string> known;
  for (const BackendEntry& entry : registry) known.emplace_back(entry.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UserError("unknown backend \"" + name + "\"; nearest: " + nearest_name(name, known) +
                      "; `attest list backends` shows all");
    }
  }
  for (const BackendEntry& entry : registry) {
    const bool named = std::find(names.begin(), names.end(), entry.name) != names.end();
    if (!names.empty() && !named) continue;
    std::string reason(entry.unavailable);
    if (entry.make) {
      try {
        backends_.push_back(isolation ? isolated_backend(std::string(entry.name), context, *isolation)
                                      : entry.make(context));
        continue;
      } catch (const std::exception& error) {
        reason = error.what();
      }
    }
    if (named) throw UserError("backend " + std::string(entry.name) + " can't be had here: " + reason);
    unavailable_.push_back({std::string(entry.name), reason});
  }
  if (backends_.empty()) throw UserError("no backend can be had here; `attest list backends` says why");
}

std::vector<Backend*> BackendSet::all() const {
  std::vector<Backend*> pointers;
  for (const auto& backend : backends_) pointers.push_back(backend.get());
  return pointers;
}

std::vector<std::string> split_names(const std::string& list) {
  std::vector<std::string> names;
  std::size_t first = 0;
  while (!list.empty() && first <= list.size()) {
    const std::size_t comma = std::min(list.find(',', first), list.size());
    names.push_back(list.substr(first, comma - first));
    if (names.back().empty()) throw UserError("\"" + list + "\": an empty name in the list of backends");
    first = comma + 1;
  }
  return names;
}

}  // namespace attest
