#include "harness/search/shrink.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "harness/base/fingerprint.h"
#include "harness/cases/option_values.h"
#include "harness/cases/sequence_mask.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

/// Fills by how much a reader has to think.
int fill_rank(const Fill& fill) {
  if (fill.name == "constant") return fill.args == std::vector{1.0} ? 0 : 1;
  if (fill.name == "integer") return 2;
  if (fill.name == "normal") return 3;
  return 4;
}

const std::vector<Fill>& plain_fills() {
  static const std::vector<Fill> fills = {{"constant", {1}}, {"integer", {}}, {"normal", {}}};
  return fills;
}

/// As long as any line's, however long that is.
std::string fingerprint_of(const Problem& problem) {
  Fingerprint fingerprint;
  fingerprint.add(print_case(problem));
  return fingerprint.text();
}

/// Hands over one change after the other, until somebody has had enough.
class Candidates {
 public:
  explicit Candidates(const std::function<bool(const Simplification&)>& visit) : visit_(visit) {}

  void add(const Simplification& change) { wanted_ = wanted_ && visit_(change); }
  bool wanted() const { return wanted_; }

 private:
  const std::function<bool(const Simplification&)>& visit_;
  bool wanted_ = true;
};

template <class Set>
void towards(Candidates& out, std::int64_t now, std::int64_t min, const Set& set) {
  for (std::int64_t to : steps_towards(min, now)) out.add([&](Problem& p) { set(p, to); });
}

/// Options left out, the last of the table first: they change the least of what comes before them.
void drop_options(const Problem& problem, Candidates& out) {
  const Call& now = problem.call;
  const std::span<const Option> table = options();
  // Without `out` a backward pass has three results, which are more than one or two that are named.
  const bool default_is_more = default_outputs(now.pass).size() > now.outputs.size();
  for (auto option = table.rbegin(); option != table.rend(); ++option) {
    if (!option->droppable || !option->is_set(problem) || (option->key == "out" && default_is_more)) continue;
    out.add([&](Problem& p) { option->drop(p); });
  }
  // Halves of options, and two that need each other.
  const auto drop = [&](bool present, const auto& change) {
    if (present) out.add(change);
  };
  drop(now.lengths && !now.lengths->query.empty(), [](Call& p) {
    if (p.lengths) p.lengths->query.clear();
  });
  drop(!now.past_lengths.empty(), [](Call& p) { p.past_lengths.clear(); });
  drop(now.packed_sequences(), [](Call& p) {
    p.layout = Layout::bhld;
    p.lengths.reset();
  });
  drop(now.window_left != Call::kUnbounded, [](Call& p) { p.window_left = Call::kUnbounded; });
  drop(now.window_right != Call::kUnbounded, [](Call& p) { p.window_right = Call::kUnbounded; });
  drop(problem.data.empty_parts > 0, [](Problem& p) { p.data.empty_parts = 0; });
  for (Output one : now.outputs) {
    drop(now.outputs.size() > 1, [one](Call& p) { std::erase(p.outputs, one); });
  }
}

void shrink_sizes(const Problem& problem, Candidates& out) {
  const Call& now = problem.call;
  out.add([](Call& p) { p.query_heads = p.key_heads = 1; });
  towards(out, now.batch, 1, [](Call& p, std::int64_t n) { p.batch = n; });
  towards(out, now.key_heads, 1, [](Call& p, std::int64_t n) {
    p.query_heads = p.query_heads / p.key_heads * n;
    p.key_heads = n;
  });
  towards(out, now.heads_per_group(), 1, [](Call& p, std::int64_t n) { p.query_heads = p.key_heads * n; });
  if (now.query_length == now.key_length) {
    towards(out, now.query_length, 1, [](Call& p, std::int64_t n) { p.query_length = p.key_length = n; });
  }
  towards(out, now.query_length, 1, [](Call& p, std::int64_t n) { p.query_length = n; });
  towards(out, now.key_length, 1, [](Call& p, std::int64_t n) { p.key_length = n; });
  if (now.query_length > now.key_length) out.add([](Call& p) { p.query_length = p.key_length; });
  if (now.key_length > now.query_length) out.add([](Call& p) { p.key_length = p.query_length; });
  if (now.key_dim == now.value_dim) {
    towards(out, now.key_dim, 1, [](Call& p, std::int64_t n) { p.key_dim = p.value_dim = n; });
  }
  towards(out, now.key_dim, 1, [](Call& p, std::int64_t n) { p.key_dim = n; });
  towards(out, now.value_dim, 1, [](Call& p, std::int64_t n) { p.value_dim = n; });
}

void shrink_values(const Problem& problem, Candidates& out) {
  const Call& now = problem.call;
  for (const Option& option : options()) {
    if (!option.droppable) continue;  // sizes have steps of their own
    for (const std::string& value : simpler_values(option, problem)) {
      out.add([&](Problem& p) {
        option.drop(p);
        option.parse(p, {value, 1});
      });
    }
  }
  const auto side = [&](std::int64_t value, auto member) {
    if (value != Call::kUnbounded) towards(out, value, 0, [member](Call& p, std::int64_t n) { p.*member = n; });
  };
  side(now.window_left, &Call::window_left);
  side(now.window_right, &Call::window_right);
  // A change may meet another problem, of a pair: one that lacks what it changes.
  const auto lists = [&](const std::optional<LengthSpec>& spec, std::optional<LengthSpec> Call::*of) {
    for (const bool keys : {false, true}) {
      const std::vector<std::int64_t> list = !spec ? std::vector<std::int64_t>{} : keys ? spec->key : spec->query;
      for (std::size_t n = 0; out.wanted() && n < list.size(); ++n) {
        towards(out, list[n], 0, [&](Problem& p, std::int64_t to) {
          if (std::optional<LengthSpec>& own = p.call.*of) {
            std::vector<std::int64_t>& numbers = keys ? own->key : own->query;
            if (n < numbers.size()) numbers[n] = to;
          }
        });
      }
    }
  };
  lists(now.lengths, &Call::lengths);
  lists(now.segments, &Call::segments);
  for (std::size_t n = 0; out.wanted() && n < now.past_lengths.size(); ++n) {
    towards(out, now.past_lengths[n], 0, [n](Problem& p, std::int64_t to) {
      if (n < p.call.past_lengths.size()) p.call.past_lengths[n] = to;
      fit_to_sizes(p);
    });
  }
  for (std::size_t n = 0; now.segments && now.segments->key.size() > 1 && n < now.segments->key.size(); ++n) {
    out.add([n](Call& p) {
      const auto at = static_cast<std::ptrdiff_t>(n);
      if (!p.segments || n >= p.segments->key.size()) return;
      p.segments->key.erase(p.segments->key.begin() + at);
      if (n < p.segments->query.size()) p.segments->query.erase(p.segments->query.begin() + at);
    });
  }
  if (now.has_parts()) towards(out, now.parts, 1, [](Call& p, std::int64_t n) { p.parts = n; });
  if (now.blocks) {
    const auto side_of_block = [&](std::int64_t size, std::int64_t BlockSpec::*of) {
      towards(out, size, 1, [of](Call& p, std::int64_t n) {
        if (p.blocks) (*p.blocks).*of = n;
      });
    };
    side_of_block(now.blocks->rows, &BlockSpec::rows);
    side_of_block(now.blocks->columns, &BlockSpec::columns);
    if (problem.data.block_fill.name != "none") out.add([](Problem& p) { p.data.block_fill = {"none", {}}; });
  }
  if (now.mask) {
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (!now.mask->kept[axis]) continue;
      out.add([axis](Call& p) {
        if (p.mask) p.mask->kept[axis] = false;
      });
    }
    if (!now.mask->additive && problem.data.mask_fill.name != "none")
      out.add([](Problem& p) { p.data.mask_fill = {"none", {}}; });
    if (now.mask->additive && problem.data.mask_fill.name != "normal") {
      out.add([](Problem& p) { p.data.mask_fill = {"normal", {}}; });
    }
    if (SequenceMask::has(problem.data.mask_fill)) {
      towards(out, static_cast<std::int64_t>(problem.data.mask_fill.args[0]), 1, [](Problem& p, std::int64_t n) {
        if (SequenceMask::has(p.data.mask_fill)) p.data.mask_fill.args[0] = static_cast<double>(n);
      });
    }
  }
}

void plainer_data(const Problem& now, Candidates& out) {
  for (const Fill& fill : plain_fills()) {
    if (fill_rank(fill) < fill_rank(now.data.fill)) out.add([&](Problem& p) { p.data.fill = fill; });
  }
  for (TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::dout}) {
    if (!has_tensor(now, id)) continue;
    const std::optional<Fill>& own = now.data.own_fill(id);
    if (own && fill_rank(now.data.fill) <= fill_rank(*own)) out.add([id](Problem& p) { p.data.own_fill(id).reset(); });
    for (const Fill& fill : plain_fills()) {
      if (fill_rank(fill) < fill_rank(now.data.fill_of(id))) out.add([&](Problem& p) { p.data.own_fill(id) = fill; });
    }
  }
  if (now.data.seed != 0) out.add([](Problem& p) { p.set_seed(0); });
}

}  // namespace

void each_simplification(const Problem& problem, const std::function<bool(const Simplification&)>& visit) {
  Candidates out(visit);
  for (const auto step : {drop_options, shrink_sizes, shrink_values, plainer_data}) {
    if (out.wanted()) step(problem, out);
  }
}

std::optional<Problem> simplified(const Problem& from, const Simplification& change) {
  for (const bool keep_strides : {true, false}) {
    Problem p = from;
    change(p);
    fit_to_sizes(p);
    for (TensorSpec& spec : p.call.tensors) {
      if (!keep_strides) spec.strides.reset();
    }
    if (std::optional<Problem> taken = canonical(p)) {
      if (print_case(*taken) == print_case(from)) return std::nullopt;
      return taken;
    }
  }
  return std::nullopt;
}

void each_simpler_problem(const Problem& problem, const std::function<bool(const Problem&)>& visit) {
  each_simplification(problem, [&](const Simplification& change) {
    const std::optional<Problem> simpler = simplified(problem, change);
    return !simpler || visit(*simpler);
  });
}

std::vector<Problem> simpler_problems(const Problem& problem) {
  std::vector<Problem> list;
  each_simpler_problem(problem, [&](const Problem& simpler) {
    list.push_back(simpler);
    return true;
  });
  return list;
}

Shrunk shrink(const Problem& failing, const std::function<bool(const Problem&)>& fails,
              const std::function<bool()>& go_on) {
  Shrunk result{failing, 0, true};
  std::set<std::string> tried = {fingerprint_of(failing)};
  for (bool smaller = true; smaller && result.finished;) {
    smaller = false;
    const Problem now = result.problem;
    each_simplification(now, [&](const Simplification& change) {
      result.finished = go_on();
      if (!result.finished) return false;
      const std::optional<Problem> candidate = simplified(now, change);
      if (!candidate || !tried.insert(fingerprint_of(*candidate)).second) return true;
      ++result.tried;
      if (!fails(*candidate)) return true;
      result.problem = *candidate;
      smaller = true;
      return false;
    });
  }
  return result;
}

}  // namespace attest
