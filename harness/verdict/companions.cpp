#include "harness/verdict/companions.h"

#include "reference/find_fault.h"

namespace attest {
namespace {

/// Lengths about half as long; an empty sequence gets a row. Packed and paged storage only shrinks by this.
void change_lengths(std::vector<std::int64_t>& lengths, std::int64_t most) {
  for (std::int64_t& length : lengths) length = length > 1 ? length / 2 : most > 0 && length == 0 ? 1 : length;
}

/// `change` on a copy that is kept if it still can be a call.
template <class Change>
void try_change(Problem& problem, const Change& change) {
  Problem changed = problem;
  change(changed);
  if (!find_fault(changed)) problem = std::move(changed);
}

}  // namespace

Problem same_sizes_other_values(const Problem& problem) {
  Problem other = problem;
  other.data.fill = {};
  other.data.own_fills = {};
  other.data.poison.clear();
  try_change(other, [](Problem& p) { p.set_seed(p.data.seed + 1); });
  try_change(other, [](Problem& p) { p.scale = p.scale_value() / 2; });
  try_change(other, [](Problem& p) {
    if (p.softcap) p.softcap = *p.softcap * 2;
  });
  try_change(other, [](Problem& p) {
    if (!p.lengths) return;
    change_lengths(p.lengths->key, p.key_length);
    change_lengths(p.lengths->query, p.query_length);
  });
  try_change(other, [](Problem& p) {
    if (!p.alibi) return;
    if (p.alibi_slopes.empty()) p.alibi_slopes = published_alibi_slopes(p.query_heads);
    for (double& slope : p.alibi_slopes) slope = -slope;
  });
  try_change(other, [](Problem& p) {
    for (double& sink : p.sink_values) sink = 1 - sink;
  });
  return other;
}

Problem other_sizes(const Problem& problem) {
  Problem other;
  other.op = problem.op;
  other.dtype = problem.dtype;
  other.query_length = other.key_length = 11;
  other.key_dim = problem.key_dim;
  other.value_dim = problem.value_dim;
  return other;
}

}  // namespace attest
