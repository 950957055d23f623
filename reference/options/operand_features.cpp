#include "reference/options/operand_features.h"

#include <algorithm>
#include <array>
#include <utility>

#include "reference/options/option_features.h"
#include "reference/options/server_features.h"

namespace attest {
namespace {

using Index = std::optional<std::size_t>;

/// Tables end where a position of 16 bits does, and behind it.
constexpr std::array<std::int64_t, 5> kPositionCuts = {1, 2, 64, 4096, 32769};

}  // namespace

void give_rope(Call& p) {
  if (p.rope == Rope::none) p.rope = Rope::halves;
  if (p.key_dim == 1) p.key_dim = 65;  // an end of the same kind
  if (p.rope_dims == 0 && p.key_dim % 2 != 0) p.rope_dims = p.key_dim - 1;
}

void give_positions(Call& p) {
  give_rope(p);
  if (p.rope_positions == 0) p.rope_positions = 100;
}

void give_norm(Call& p) {
  if (!p.norm) p.norm = 1e-6;
}

std::vector<Feature> unscaled_cap_features() {
  return {flag_feature(
      "softcap=unscaled", [](const Call& p) { return p.unscaled_cap; },
      [](Call& p, std::uint64_t) {
        p.softcap = p.softcap.value_or(20);
        p.unscaled_cap = true;
      })};
}

std::vector<Feature> scales_features() {
  std::vector<std::string> names = names_of<Scales>();
  names.erase(names.begin());
  return {named_feature(
      "scales", names,
      [](const Call& p) -> Index {
        if (p.scales == Scales::none) return std::nullopt;
        return static_cast<std::size_t>(p.scales) - 1;
      },
      [](Call& p, std::size_t which, std::uint64_t) { p.scales = static_cast<Scales>(which + 1); })};
}

std::vector<Feature> rope_features() {
  return {
      named_feature(
          "rope", {"halves", "interleaved"},
          [](const Call& p) -> Index {
            if (p.rope == Rope::none) return std::nullopt;
            return static_cast<std::size_t>(p.rope) - 1;
          },
          [](Call& p, std::size_t which, std::uint64_t) {
            give_rope(p);
            p.rope = static_cast<Rope>(which + 1);
          }),
      flag_feature(
          "rope of some features", [](const Call& p) { return p.rope != Rope::none && p.rotated_dims() < p.key_dim; },
          [](Call& p, std::uint64_t draw) {
            give_rope(p);
            const auto pairs = static_cast<std::uint64_t>(std::max<std::int64_t>((p.key_dim - 1) / 2, 1));
            p.rope_dims = 2 * (1 + static_cast<std::int64_t>(draw % pairs));
          })};
}

std::vector<Feature> rope_base_features() {
  return {flag_feature(
      "rope.base", [](const Problem& p) { return p.data.rope_base != TestData{}.rope_base; },
      [](Problem& p, std::uint64_t draw) {
        give_rope(p.call);
        p.data.rope_base = draw % 2 == 0 ? 500000 : real_in(1, 1e6, draw / 2);
      })};
}

std::vector<Feature> position_features() {
  return {size_feature(
      "rope.positions", kPositionCuts,
      [](const Call& p) -> std::optional<std::int64_t> {
        if (p.rope_positions == 0) return std::nullopt;
        return p.rope_positions;
      },
      [](Call& p, std::int64_t n) {
        give_rope(p);
        p.rope_positions = n;
      })};
}

std::vector<Feature> rotated_cache_features() {
  return {named_feature(
              "rope.cache", {"plain", "rotated"},
              [](const Call& p) -> Index {
                if (p.rope == Rope::none || p.past == 0) return std::nullopt;
                return p.rotated_cache ? 1 : 0;
              },
              [](Call& p, std::size_t which, std::uint64_t) {
                give_rope(p);
                p.past = std::max<std::int64_t>(p.past, 1);
                p.rotated_cache = which == 1;
              }),
          flag_feature(
              "appended keys rotated", [](const Call& p) { return p.append && p.rotated_cache; },
              [](Call& p, std::uint64_t) {
                give_append(p);
                give_rope(p);
                p.rotated_cache = true;
              })};
}

std::vector<Feature> norm_features() {
  return {named_feature(
      "norm", {"before", "after"},
      [](const Call& p) -> Index {
        if (!p.norm) return std::nullopt;
        return p.norm_after_rope ? 1 : 0;
      },
      [](Call& p, std::size_t which, std::uint64_t draw) {
        p.norm = draw % 2 == 0 ? 1e-6 : real_in(1e-12, 1, draw / 2);
        p.norm_after_rope = which == 1;
        if (p.norm_after_rope) give_rope(p);
      })};
}

std::vector<Feature> l2norm_features() {
  return {named_feature(
      "l2norm", {"usual", "other"},
      [](const Call& p) -> Index {
        if (!p.l2norm) return std::nullopt;
        return *p.l2norm == 1e-6 ? 0 : 1;
      },
      [](Call& p, std::size_t which, std::uint64_t draw) {
        p.l2norm = which == 0 ? 1e-6 : draw % 2 == 0 ? 1e-2 : real_in(1e-12, 1, draw / 2);
      })};
}

}  // namespace attest
