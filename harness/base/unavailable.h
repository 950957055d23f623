// What can't be had here, and why.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace attest {

struct Unavailable {
  std::string name, reason;
};

/// For people: those with the same reason as one, their names joined by commas, where the first of them stood.
inline std::vector<Unavailable> by_reason(const std::vector<Unavailable>& all) {
  std::vector<Unavailable> joined;
  for (const Unavailable& one : all) {
    const auto same =
        std::find_if(joined.begin(), joined.end(), [&](const Unavailable& u) { return u.reason == one.reason; });
    if (same == joined.end())
      joined.push_back(one);
    else
      same->name += ", " + one.name;
  }
  return joined;
}

}  // namespace attest
