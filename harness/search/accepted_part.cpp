#include "harness/search/accepted_part.h"

#include <algorithm>

#include "harness/cases/option_values.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

using Accepts = std::function<bool(const Problem&)>;

std::optional<Problem> if_accepted(const Problem& problem, const Accepts& accepts) {
  std::optional<Problem> taken = canonical(problem);
  return taken && accepts(*taken) ? taken : std::nullopt;
}

std::int64_t to_multiple(std::int64_t n, std::int64_t of) { return std::max(of, n / of * of); }

/// The sizes alone, then sizes that kernels usually have.
std::optional<Problem> accepted_sizes(const Problem& problem, const Accepts& accepts, const Problem* always) {
  Problem bare = always ? *always : Problem{};
  if (!always) bare.call.op = problem.call.op;
  bare.data.seed = problem.data.seed;
  bare.call.batch = problem.call.batch;
  bare.call.query_heads = problem.call.query_heads;
  bare.call.key_heads = problem.call.key_heads;
  bare.call.query_length = problem.call.query_length;
  bare.call.key_length = problem.call.key_length;
  bare.call.key_dim = problem.call.key_dim;
  bare.call.value_dim = problem.call.value_dim;
  if (always) fit_to_sizes(bare);
  if (auto taken = if_accepted(bare, accepts)) return taken;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    Problem p = bare;
    p.call.dtype = dtype;
    const auto same_dims = [](Call& q) { q.value_dim = q.key_dim; };
    const auto same_heads = [](Call& q) { q.key_heads = q.query_heads; };
    const auto one_head = [](Call& q) { q.query_heads = q.key_heads = q.batch = 1; };
    const auto same_lengths = [](Call& q) { q.key_length = q.query_length; };
    const auto whole_tiles = [](Call& q) {
      q.query_length = to_multiple(q.query_length, 64);
      q.key_length = to_multiple(q.key_length, 64);
    };
    const auto dim = [](std::int64_t d) { return [d](Call& q) { q.key_dim = q.value_dim = d; }; };
    const std::initializer_list<std::function<void(Problem&)>> changes = {
        [](Problem&) {}, same_dims, same_heads, same_lengths, dim(64), dim(128), one_head, whole_tiles};
    // Each alone, then all up to it together.
    Problem together = p;
    for (const auto& change : changes) {
      Problem alone = p;
      change(alone);
      if (auto taken = if_accepted(alone, accepts)) return taken;
      change(together);
      if (auto taken = if_accepted(together, accepts)) return taken;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Problem> accepted_part(const Problem& problem, const Accepts& accepts, const Problem* always) {
  std::optional<Problem> part = accepted_sizes(problem, accepts, always);
  if (const Option& op = *find_option("op"); !part && !always && op.is_set(problem)) {
    Problem softmax = problem;
    op.drop(softmax);
    part = accepted_sizes(softmax, accepts, nullptr);
  }
  if (!part) return std::nullopt;
  for (const Option& option : options()) {
    if (!option.droppable || !option.is_set(problem) || !option.has(part->call.op)) continue;
    if (always && option.is_set(*always)) continue;
    Problem more = *part;
    option.copy(more, problem);
    fit_to_sizes(more);
    if (auto taken = if_accepted(more, accepts)) part = std::move(taken);
  }
  return part;
}

}  // namespace attest
