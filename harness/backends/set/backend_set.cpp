#include "harness/backends/set/backend_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/group.h"
#include "harness/backends/isolation/isolated_backend.h"
#include "harness/backends/plugin/foreign_backends.h"
#include "harness/base/user_error.h"
#include "harness/tuning/parameters.h"
#include "reference/base/nearest.h"

namespace attest {

namespace {

/// Verdicts, lists and tables know a backend by its name alone.
void check_names(std::span<const BackendEntry> registry) {
  for (std::size_t n = 0; n < registry.size(); ++n) {
    const std::string_view name = registry[n].name;
    const auto same = [&](const BackendEntry& other) { return other.name == name; };
    if (name == "reference")
      throw UserError("a backend may not be called \"reference\": that is what all are held against");
    if (std::any_of(registry.begin(), registry.begin() + static_cast<std::ptrdiff_t>(n), same)) {
      throw UserError("two backends are called \"" + std::string(name) + "\"; give one another name");
    }
  }
}

void check_known(const std::string& name, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw UserError("unknown backend \"" + name + "\"; nearest: " + nearest_name(name, known) +
                  "; `attest list backends` shows all, and --plugin or --python brings others");
}

std::unique_ptr<Backend> make_here(const BackendEntry& entry, const Context& context) {
  if (entry.plugin.empty()) return entry.make(context);
  return make_foreign_backend(std::string(entry.plugin), std::string(entry.name), context);
}

bool wants_process(const std::optional<IsolationOptions>& isolation, std::string_view plugin) {
  return isolation && (isolation->which == IsolatedBackends::all || !plugin.empty());
}

/// A process of its own, but for a backend that spans the ranks of a group: no worker is a rank.
std::unique_ptr<Backend> make_isolated(const BackendEntry& entry, const Context& context,
                                       const IsolationOptions& isolation) {
  try {
    return isolated_backend(std::string(entry.name), context, isolation, std::string(entry.plugin));
  } catch (const BackendUnavailable&) {
    if (!context.group || !entry.make) throw;
    std::unique_ptr<Backend> here = entry.make(context);
    if (!dynamic_cast<const GroupMember*>(here.get())) throw;
    return here;
  }
}

}  // namespace

BackendSet::BackendSet(std::span<const BackendEntry> registry, const std::vector<std::string>& names,
                       const Context& context, const std::optional<IsolationOptions>& isolation)
    : context_(context), fresh_isolation_(isolation) {
  check_names(registry);
  for (const BackendEntry& entry : registry) known_.emplace_back(entry.name);
  for (const std::string& name : names) check_known(name, known_);
  std::vector<std::string> made;
  for (const BackendEntry& entry : registry) {
    const bool named = std::find(names.begin(), names.end(), entry.name) != names.end();
    if (!names.empty() && !named) continue;
    std::string reason(entry.unavailable);
    if (entry.make || !entry.plugin.empty()) {
      try {
        backends_.push_back(wants_process(isolation, entry.plugin) ? make_isolated(entry, context, *isolation)
                                                                   : make_here(entry, context));
        made.emplace_back(entry.name);
        origins_.push_back({std::string(entry.name), std::string(entry.plugin), entry.make});
        continue;
      } catch (const std::exception& error) {
        reason = error.what();
      }
    }
    if (named) throw UserError("backend " + std::string(entry.name) + " can't be had here: " + reason);
    unavailable_.push_back({std::string(entry.name), reason});
  }
  for (std::size_t n = 0; n < backends_.size(); ++n) {
    if (const std::string own = backends_[n]->identity().name; own != made[n]) {
      throw UserError(
          fmt::format("the backend registered as \"{}\" calls itself \"{}\"; its identity().name must be the "
                      "registered one",
                      made[n], own));
    }
  }
  check_named_backends(known_);
  for (const auto& backend : backends_) give_parameters(*backend);
  if (backends_.empty()) throw UserError("no backend can be had here; `attest list backends` says why");
}

void BackendSet::require(const std::vector<std::string>& names) const {
  const std::vector<Backend*> here = all();
  for (const std::string& name : names) {
    check_known(name, known_);
    if (std::any_of(here.begin(), here.end(), [&](const Backend* b) { return b->identity().name == name; })) continue;
    const auto found =
        std::find_if(unavailable_.begin(), unavailable_.end(), [&](const Unavailable& u) { return u.name == name; });
    if (found == unavailable_.end()) throw UserError("--require " + name + ": --backend leaves it out; name it there");
    throw UserError("--require " + name + ": it can't be had here: " + found->reason);
  }
}

std::vector<Backend*> BackendSet::all() const {
  std::vector<Backend*> pointers;
  for (const auto& backend : backends_) pointers.push_back(backend.get());
  return pointers;
}

Backend* BackendSet::find(const std::string& name) const {
  const auto found =
      std::ranges::find_if(backends_, [&](const auto& backend) { return backend->identity().name == name; });
  return found == backends_.end() ? nullptr : found->get();
}

std::unique_ptr<Backend> BackendSet::fresh(const std::string& name, int threads) const {
  const auto origin = std::find_if(origins_.begin(), origins_.end(), [&](const Origin& o) { return o.name == name; });
  if (origin == origins_.end()) return nullptr;
  if (dynamic_cast<const GroupMember*>(backends_[static_cast<std::size_t>(origin - origins_.begin())].get()))
    return nullptr;
  Context context = context_;
  if (threads > 0) context.threads = threads;
  const BackendEntry entry{origin->name, origin->make, "", origin->plugin};
  std::unique_ptr<Backend> made = wants_process(fresh_isolation_, origin->plugin)
                                      ? isolated_backend(origin->name, context, *fresh_isolation_, origin->plugin)
                                      : make_here(entry, context);
  give_parameters(*made);
  return made;
}

std::vector<Backend*> find_in_each(const std::vector<BackendSet>& sets, const std::string& name) {
  std::vector<Backend*> found;
  for (const BackendSet& set : sets) {
    if (Backend* backend = set.find(name)) found.push_back(backend);
  }
  return found;
}

std::vector<std::string> split_names(const std::string& list, const std::string& what) {
  std::vector<std::string> names;
  std::size_t first = 0;
  while (!list.empty() && first <= list.size()) {
    const std::size_t comma = std::min(list.find(',', first), list.size());
    names.push_back(list.substr(first, comma - first));
    if (names.back().empty()) throw UserError("\"" + list + "\": an empty name in the list of " + what);
    first = comma + 1;
  }
  return names;
}

}  // namespace attest
