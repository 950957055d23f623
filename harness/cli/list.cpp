// attest list
#include <fmt/format.h>

#include "harness/backend_set.h"
#include "harness/case.h"
#include "harness/cli/cli.h"
#include "harness/user_error.h"
#include "reference/nearest.h"

namespace attest {
namespace {

int list_backends(const ListOptions& options, std::span<const BackendEntry> registry) {
  const BackendSet backends(registry, {}, options.common.context());
  for (const Backend* backend : backends.all()) {
    const Identity id = backend->identity();
    fmt::print("{:<10} {} on {}\n", id.name, id.library, id.device);
  }
  for (const Unavailable& u : backends.unavailable()) fmt::print("{:<10} not available: {}\n", u.name, u.reason);
  return kOk;
}

int list_suites() {
  for (const Suite& suite : find_suites()) {
    fmt::print("{:<14} {:>5} cases  {}\n", suite.name, load_suite(suite).size(), suite.about);
  }
  return kOk;
}

int list_cases(const ListOptions& options) {
  std::vector<Suite> suites;
  for (const std::string& name : options.suites) suites.push_back(find_suite(name));
  if (suites.empty()) suites = find_suites();
  for (const Suite& suite : suites) {
    for (const Case& one : load_suite(suite)) {
      fmt::print("{}\n", options.suites.size() == 1 ? one.label : suite.name + ": " + one.label);
    }
  }
  return kOk;
}

}  // namespace

int run_list(const ListOptions& options, std::span<const BackendEntry> registry) {
  if (options.what == "backends") return list_backends(options, registry);
  if (options.what == "suites") return list_suites();
  if (options.what == "cases") return list_cases(options);
  throw UserError("unknown list \"" + options.what + "\"; nearest: " +
                  nearest_name(options.what, std::vector<std::string>{"backends", "suites", "cases"}));
}

}  // namespace attest
