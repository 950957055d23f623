#include "harness/cases/class_cases.h"

#include <algorithm>

#include "harness/cases/memory.h"
#include "harness/cases/option_values.h"
#include "harness/cases/random_case.h"
#include "reference/call/tensor_place.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

/// Multiply-adds that no class takes by itself: small cases may grow up to this while they meet more.
constexpr double kSmall = 3e5;

bool is_in(const Problem& p, std::span<const std::size_t> wanted) {
  const auto& table = classes_of_table();
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](std::size_t c) { return table[c].feature->class_of(p) == table[c].which; });
}

std::uint64_t draw(Random& random) { return random.below(std::size_t{1} << 40); }

/// An operator that has the options of all these classes; mostly the one that no line has to say.
std::optional<Op> operator_for(std::span<const std::size_t> wanted, Random& random) {
  const auto& table = classes_of_table();
  std::vector<Op> ops;
  for (Op op : values_of<Op>()) {
    const bool fits = std::all_of(wanted.begin(), wanted.end(), [&](std::size_t c) { return has_class(op, table[c]); });
    if (fits) ops.push_back(op);
  }
  if (ops.empty()) return std::nullopt;
  return ops.front() == Call{}.op && random.below(8) != 0 ? ops.front() : random.pick(ops);
}

/// Sizes that let most options matter, larger with each round of tries: an option may need more keys than a few.
Problem start(Op op, int round, Random& random) {
  static const std::vector<std::int64_t> lengths = {5, 7, 20, 70, 150, 300, 1100};
  const auto length = [&] {
    const std::size_t upto = std::min<std::size_t>(lengths.size(), 2 + static_cast<std::size_t>(round) / 6);
    return lengths[random.below(upto)] + static_cast<std::int64_t>(random.below(3));
  };
  Problem p;
  p.call.op = op;
  p.data.seed = random.below(1000);
  if (random.below(3) == 0) {  // for classes that are large by themselves: everything else as small as it can be
    p.call.query_length = p.call.key_length = 1 + static_cast<std::int64_t>(random.below(2));
    if (random.below(2) == 0) p.call.dtype = DType::f16;
    return p;
  }
  p.call.batch = 1 + static_cast<std::int64_t>(random.below(2));
  p.call.key_heads = 1 + static_cast<std::int64_t>(random.below(2));
  p.call.query_heads = p.call.key_heads * (1 + static_cast<std::int64_t>(random.below(2)));
  p.call.query_length = length();
  p.call.key_length = p.call.has_one_length() || random.below(3) == 0 ? p.call.query_length : length();
  p.call.key_dim = 1 + static_cast<std::int64_t>(random.below(5));
  p.call.value_dim = random.below(2) == 0 ? p.call.key_dim : 1 + static_cast<std::int64_t>(random.below(5));
  if (p.call.has_parts()) {
    p.call.key_heads = p.call.query_heads;
    p.call.value_dim = p.call.key_dim;
  }
  return p;
}

/// Keys for what counts them.
void make_room(Call& p) {
  const std::int64_t wanted = std::max(p.prefix, p.past);
  if (wanted <= p.key_length) return;
  p.key_length = wanted;
  if (p.layout == Layout::qkv) p.query_length = wanted;
}

/// Lists that a line must spell out: longer ones are of no use, and take megabytes.
bool has_long_list(const Call& p) {
  constexpr std::size_t kLongest = 70000;
  return std::max({p.alibi_slopes.size(), p.sink_values.size(), p.past_lengths.size(),
                   p.lengths ? p.lengths->key.size() : 0}) > kLongest;
}

/// The problem as a case, with what it lacks: an alignment where one is needed, lengths for packed sequences.
std::optional<Problem> as_case(Problem p) {
  if (p.call.layout == Layout::qkv) {
    p.call.query_heads = p.call.key_heads;
    p.call.value_dim = p.call.key_dim;
    p.call.query_length = p.call.key_length;
  }
  fit_to_sizes(p);
  if (p.call.packed_sequences()) {
    for (TensorId id : values_of<TensorId>()) {
      if (!follows_packing(id)) continue;
      p.call.tensor(id).strides.reset();
      p.call.tensor(id).layout.reset();
    }
    if ((p.call.past > 0 || p.call.append) && !p.call.page_size)
      p.call.page_size = 16;  // packed queries have their cached keys in pages
    if (!p.call.lengths)
      p.call.lengths =
          LengthSpec{{}, std::vector<std::int64_t>(static_cast<std::size_t>(p.call.batch), p.call.key_length)};
  }
  if (p.call.lengths) {
    // A batch that grew: sequences repeat.
    const auto batch = static_cast<std::size_t>(p.call.batch);
    for (std::vector<std::int64_t>* list : {&p.call.lengths->key, &p.call.lengths->query}) {
      const std::size_t had = list->size();
      for (std::size_t n = had; had > 0 && n < batch; ++n) list->push_back((*list)[n - had]);
    }
  }
  if (has_long_list(p)) return std::nullopt;
  return canonical(p);
}

bool is_within(const Problem& problem, const CaseLimits& limits) {
  const Call& p = problem.call;
  double bytes = storage_bytes(p);
  if (p.has_state()) {  // every backend keeps its states, asked for or not
    bytes += 8 * static_cast<double>(p.batch * p.key_heads) * static_cast<double>(p.key_dim * p.value_dim);
  }
  return random_case_cost(problem) <= limits.multiply_adds && bytes <= limits.bytes && !beyond_walking(p);
}

}  // namespace

bool has_class(Op op, const TableClass& one) {
  if (one.feature->name == "op") return one.which == static_cast<std::size_t>(op);
  // Some of these names are of parts, the others of keys.
  if (one.feature->name == "poison" && (one.name() == "poison=empty:o") != traits_of(op).parts) return false;
  return one.option->has(op);
}

std::optional<Problem> case_in(std::span<const std::size_t> classes, const CaseLimits& limits, Random& random,
                               int tries) {
  const auto& table = classes_of_table();
  std::vector<std::size_t> order(classes.begin(), classes.end());
  std::sort(order.begin(), order.end());  // of the table: sizes first
  for (int round = 0; round < tries; ++round) {
    const std::optional<Op> op = operator_for(classes, random);
    if (!op) return std::nullopt;
    Problem p = start(*op, round, random);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t c : order) {
        if (table[c].feature->class_of(p) != table[c].which) table[c].feature->meet(p, table[c].which, draw(random));
      }
      if (pass == 0) make_room(p);
      fit_to_sizes(p);
    }
    std::optional<Problem> made = as_case(std::move(p));
    if (made && is_in(*made, classes) && is_within(*made, limits)) return made;
    if (round % 8 == 7) std::reverse(order.begin(), order.end());
  }
  return std::nullopt;
}

std::optional<Problem> moved_into(const Problem& problem, std::size_t one, std::span<const std::size_t> kept,
                                  const CaseLimits& limits, Random& random) {
  const TableClass& wanted = classes_of_table()[one];
  if (!wanted.option->has(problem.call.op)) return std::nullopt;
  Problem p = problem;
  wanted.feature->meet(p, wanted.which, draw(random));
  std::optional<Problem> made = as_case(std::move(p));
  if (!made || wanted.feature->class_of(*made) != wanted.which || !is_in(*made, kept) || !is_within(*made, limits)) {
    return std::nullopt;
  }
  return made;
}

std::optional<Problem> covering_case(std::span<const std::size_t> classes, const Coverage& met,
                                     const CaseLimits& limits, int steps, Random& random) {
  std::optional<Problem> best = case_in(classes, limits, random);
  if (!best) return std::nullopt;
  // Cheaper ones are looked for: what it meets besides must not cost more than it does itself.
  for (int n = 0; n < 6 && random_case_cost(*best) > kSmall; ++n) {
    std::optional<Problem> other = case_in(classes, limits, random);
    if (other && random_case_cost(*other) < random_case_cost(*best)) best = std::move(other);
  }
  const auto& table = classes_of_table();
  const CaseLimits beside = {std::min(limits.multiply_adds, std::max(kSmall, 1.5 * random_case_cost(*best))),
                             std::min(limits.bytes, std::max(2e6, 1.2 * storage_bytes(*best)))};
  std::vector<std::size_t> now = classes_of(*best);
  std::size_t fresh = met.count_new(now);
  for (int step = 0; step < steps; ++step) {
    // The class with most to meet beside those of the case, of a few at random.
    std::size_t chosen = 0, most = 0;
    for (int n = 0; n < 10; ++n) {
      const std::size_t c = random.below(table.size());
      std::size_t gain = !met.met(c);
      for (std::size_t other : now) gain += table[other].feature != table[c].feature && !met.met(c, other);
      if (gain > most && std::find(now.begin(), now.end(), c) == now.end()) {
        most = gain;
        chosen = c;
      }
    }
    if (most == 0) continue;
    std::optional<Problem> next = moved_into(*best, chosen, classes, beside, random);
    if (!next) continue;
    std::vector<std::size_t> then = classes_of(*next);
    const std::size_t more = met.count_new(then);
    if (more <= fresh) continue;
    best = std::move(next);
    now = std::move(then);
    fresh = more;
  }
  return best;
}

}  // namespace attest
