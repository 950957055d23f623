// "did you mean": the known name closest to what was typed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Levenshtein distance between two short names.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

/// The nearest of `names`, or the empty string when there are none. Ties go to the first.
template <class Names>
std::string nearest_name(std::string_view typed, const Names& names) {
  std::string best;
  std::size_t best_distance = static_cast<std::size_t>(-1);
  for (const auto& name : names) {
    const std::size_t longer = std::max(typed.size(), std::size(name)),
                      shorter = std::min(typed.size(), std::size(name));
    if (longer - shorter >= best_distance) continue;
    const std::size_t distance = edit_distance(typed, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = std::string(name);
    }
  }
  return best;
}

}  // namespace attest
