#include "harness/report/conditions.h"

#include <set>
#include <vector>

namespace attest {
namespace {

bool is_of_some_runs(const std::string& name) { return name.starts_with("backend.") || name == "drivers"; }

std::string value_of(const Conditions& conditions, const std::string& name) {
  const auto found = conditions.find(name);
  return found == conditions.end() || found->second.empty() ? "none" : found->second;
}

}  // namespace

std::optional<std::string> difference(const Conditions& earlier, const Conditions& now) {
  if (earlier == now) return std::nullopt;
  if (earlier.empty()) return "the file does not say under which conditions its verdicts were found";
  std::set<std::string> names;
  for (const Conditions* one : {&earlier, &now}) {
    for (const auto& [name, value] : *one) names.insert(name);
  }
  // What others follow from comes first.
  std::vector<std::string> order = {"program", "threads", "device", "isolation", "bitwise"};
  order.insert(order.end(), names.begin(), names.end());
  for (const std::string& name : order) {
    const bool both = earlier.contains(name) && now.contains(name);
    if (!names.contains(name) || (!both && is_of_some_runs(name))) continue;
    const std::string before = value_of(earlier, name), after = value_of(now, name);
    if (both && before == after) continue;
    if (name == "program") return "it comes from another build of attest (" + before + ", not " + after + ")";
    if (name == "libraries" || name == "drivers") {
      return "the " + name + " that are loaded have changed since (" + before + ", not " + after + ")";
    }
    return "it was run with " + name + " " + before + ", not " + after;
  }
  return std::nullopt;
}

}  // namespace attest
