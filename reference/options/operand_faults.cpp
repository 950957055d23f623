#include "reference/options/operand_faults.h"

#include <string>

namespace attest {
namespace {

/// Positions are numbers of rows of the tables: none lies left of the first key.
std::optional<Fault> check_places(const Call& p) {
  if (p.rope_positions > 0) return std::nullopt;
  for (std::int64_t b = 0; b < p.batch && p.query_length > 0; ++b) {
    const std::int64_t first = p.diagonal_offset(b);
    if (first < 0)
      return Fault{"rope", "query 0 of batch " + std::to_string(b) + " stands at " + std::to_string(first) +
                               ", left of the first key; say rope.positions=n"};
    if (!p.lengths && p.past_lengths.empty()) break;  // all alike
  }
  return std::nullopt;
}

std::optional<Fault> check_rope(const Problem& problem) {
  const Call& p = problem.call;
  if (p.rope == Rope::none) {
    const char* const needs = "nothing is rotated; say rope=halves or rope=interleaved";
    if (problem.data.rope_base != TestData{}.rope_base) return Fault{"rope.base", needs};
    if (p.rope_positions > 0) return Fault{"rope.positions", needs};
    if (p.rotated_cache) return Fault{"rope.cache", needs};
    if (p.norm_after_rope) return Fault{"norm", needs};
    return std::nullopt;
  }
  if (p.rotated_dims() > p.key_dim)
    return Fault{"rope", std::to_string(p.rope_dims) + " features are more than Dqk = " + std::to_string(p.key_dim)};
  if (p.rotated_dims() % 2 != 0)
    return Fault{"rope", "Dqk = " + std::to_string(p.key_dim) + " is odd, and features are rotated in pairs; " +
                             (p.key_dim > 1 ? "say rope=style:" + std::to_string(p.key_dim - 1) : "leave it out")};
  if (p.rotated_cache && p.past == 0 && !p.append)
    return Fault{"rope.cache", "there are no cached keys; say past, or append"};
  if (p.rotated_cache && p.page_size && !p.append)
    return Fault{"rope.cache", "pages hold cached and new keys alike; leave it out"};
  if (p.rotated_cache && p.wants(Output::present))
    return Fault{"rope.cache", "out=present repeats cached and new keys as they come, all of one kind; leave it out"};
  return check_places(p);
}

}  // namespace

std::optional<Fault> operand_fault(const Problem& problem) {
  const Call& p = problem.call;
  if (p.wants_gradients()) {
    const auto undefined = [](const char* key) {
      return Fault{key, "gradients through it are not defined yet; leave it out"};
    };
    if (p.rope != Rope::none) return undefined("rope");
    if (p.norm) return undefined("norm");
    if (p.scales != Scales::none) return undefined("scales");
    if (p.unscaled_cap) return undefined("softcap");
  }
  return check_rope(problem);
}

}  // namespace attest
