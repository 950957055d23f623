#include "reference/options/fill_feature.h"

#include <algorithm>
#include <array>
#include <utility>

namespace attest {
namespace {

using Index = std::optional<std::size_t>;

std::vector<std::string> names_of(const std::vector<FillName>& fills) {
  std::vector<std::string> names;
  for (const FillName& fill : fills) names.emplace_back(fill.name);
  return names;
}

Index place_in(const std::vector<std::string>& list, const std::string& wanted) {
  const auto found = std::find(list.begin(), list.end(), wanted);
  if (found == list.end()) return std::nullopt;
  return static_cast<std::size_t>(found - list.begin());
}

/// Usual numbers in half of the draws, in the others anything that the fill takes.
double number_of_fill(const std::string& name, std::uint64_t draw) {
  if (draw % 2 == 1) {
    const std::uint64_t own = draw / 2;
    if (name == "spread") return real_in(1, 512, own);
    if (name == "constant") return (own % 2 == 0 ? 1 : -1) * real_in(0x1p-8, 64, own / 2);
    if (name == "band") return static_cast<double>(number_in({0, 2047}, own));
    if (name == "blocks" || name == "spans" || name == "chunks") return static_cast<double>(number_in({1, 1023}, own));
    if (name == "tree") return static_cast<double>(number_in({1, 63}, own));
    return real_in(0x1p-6, 1, own);
  }
  draw /= 2;
  if (name == "spread") return std::array{8.0, 88.0, 300.0}[draw % 3];
  if (name == "constant") return 0.25;
  if (name == "band") return std::array{3.0, 20.0, 40.0}[draw % 3];
  if (name == "blocks" || name == "chunks") return std::array{2.0, 16.0}[draw % 2];
  if (name == "tree" || name == "spans") return std::array{3.0, 8.0}[draw % 2];
  return std::array{0.5, 0.3, 0.05}[draw % 3];  // probabilities
}

}  // namespace

Fill make_fill(const FillName& fill, std::uint64_t draw) {
  const std::string name(fill.name);
  return {name, fill.arguments == 0 ? std::vector<double>{} : std::vector<double>{number_of_fill(name, draw)}};
}

Feature fill_feature(std::string name, const std::vector<FillName>& fills,
                     std::function<const Fill*(const Problem&)> of, std::function<void(Problem&, Fill)> set) {
  return named_feature(
      std::move(name), names_of(fills),
      [names = names_of(fills), of = std::move(of)](const Problem& p) -> Index {
        const Fill* fill = of(p);
        return fill ? place_in(names, fill->name) : std::nullopt;
      },
      [&fills, set = std::move(set)](Problem& p, std::size_t which, std::uint64_t draw) {
        set(p, make_fill(fills[which], draw));
      });
}

}  // namespace attest
