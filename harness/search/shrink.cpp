#include "harness/search/shrink.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "reference/case_line.h"
#include "reference/find_fault.h"

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

/// Makes what depends on sizes fit them: lists, lengths, segments, counts of keys.
void fit(Problem& p) {
  if (p.key_heads > p.query_heads) p.key_heads = p.query_heads;
  if (p.key_heads > 0) p.query_heads -= p.query_heads % p.key_heads;
  const auto heads = static_cast<std::size_t>(p.query_heads), batch = static_cast<std::size_t>(p.batch);
  if (p.alibi_slopes.size() > heads) p.alibi_slopes.resize(heads);
  if (p.sink_values.size() > heads) p.sink_values.resize(heads);
  if (p.lengths) {
    for (auto [list, most] : {std::pair{&p.lengths->query, p.query_length}, std::pair{&p.lengths->key, p.key_length}}) {
      if (list->size() > batch) list->resize(batch);
      for (std::int64_t& n : *list) n = std::min(n, most);
    }
  }
  p.past = std::min(p.past, p.key_length);
  p.prefix = std::min(p.prefix, p.key_length);
  if (p.segments) {
    // Segments are cut from the end.
    for (auto [list, total] :
         {std::pair{&p.segments->query, p.query_length}, std::pair{&p.segments->key, p.key_length}}) {
      std::int64_t room = total;
      for (std::int64_t& n : *list) {
        n = std::min(n, room);
        room -= n;
      }
      if (!list->empty()) list->back() += room;
    }
  }
}

class Candidates {
 public:
  explicit Candidates(const Problem& from) : from_(from), line_(print_case(from)) {}

  /// `change` edits a copy. Explicit strides that no longer fit the sizes are left to the layout.
  template <class Change>
  void add(const Change& change) {
    for (const bool keep_strides : {true, false}) {
      Problem p = from_;
      change(p);
      fit(p);
      for (TensorSpec& spec : p.tensors) {
        if (!keep_strides) spec.strides.reset();
      }
      if (take(p)) return;
    }
  }
  std::vector<Problem> list;

 private:
  bool take(const Problem& p) {
    if (find_fault(p)) return false;
    try {
      const Problem canonical = parse_case(print_case(p));
      if (print_case(canonical) != line_) list.push_back(canonical);
      return true;
    } catch (const CaseError&) {
      return false;
    }
  }
  const Problem& from_;
  std::string line_;
};

/// One step for a number that wants to be `least`: there at once, half way, one less.
template <class Set>
void towards(Candidates& out, std::int64_t now, std::int64_t least, const Set& set) {
  std::set<std::int64_t> tried;
  for (std::int64_t to : {least, least + 1, least + (now - least) / 2, now - 1}) {
    if (to >= least && to < now && tried.insert(to).second) {
      out.add([&](Problem& p) { set(p, to); });
    }
  }
}

void drop_options(const Problem& now, Candidates& out) {
  const auto drop = [&](bool present, const auto& change) {
    if (present) out.add(change);
  };
  drop(now.mask.has_value(), [](Problem& p) {
    p.mask.reset();
    p.tensor(TensorId::mask) = {};
  });
  drop(now.blocks.has_value(), [](Problem& p) { p.blocks.reset(); });
  drop(now.segments.has_value(), [](Problem& p) { p.segments.reset(); });
  drop(now.lengths.has_value(), [](Problem& p) { p.lengths.reset(); });
  drop(now.lengths && !now.lengths->query.empty(), [](Problem& p) { p.lengths->query.clear(); });
  drop(now.packed_sequences(), [](Problem& p) { p.layout = Layout::bhld; });
  drop(now.packed_sequences(), [](Problem& p) {
    p.layout = Layout::bhld;
    p.lengths.reset();
  });
  drop(now.page_size.has_value(), [](Problem& p) { p.page_size.reset(); });
  drop(now.past > 0, [](Problem& p) { p.past = 0; });
  drop(now.dropout != 0, [](Problem& p) { p.dropout = 0; });
  drop(now.sinks, [](Problem& p) {
    p.sinks = false;
    p.sink_values.clear();
  });
  drop(now.alibi, [](Problem& p) {
    p.alibi = false;
    p.alibi_slopes.clear();
  });
  drop(now.softcap.has_value(), [](Problem& p) { p.softcap.reset(); });
  drop(now.prefix > 0, [](Problem& p) { p.prefix = 0; });
  drop(now.window_left != Problem::kUnbounded, [](Problem& p) { p.window_left = Problem::kUnbounded; });
  drop(now.window_right != Problem::kUnbounded, [](Problem& p) { p.window_right = Problem::kUnbounded; });
  drop(now.causal, [](Problem& p) { p.causal = false; });
  drop(now.align == Align::bottom_right, [](Problem& p) { p.align = Align::top_left; });
  drop(now.scale.has_value(), [](Problem& p) { p.scale.reset(); });
  drop(now.initial_state, [](Problem& p) { p.initial_state = false; });
  drop(now.decay_per_head, [](Problem& p) { p.decay_per_head = false; });
  drop(now.beta_shared, [](Problem& p) { p.beta_shared = false; });
  drop(!now.poison.empty(), [](Problem& p) { p.poison.clear(); });
  drop(now.outputs.size() > 1, [](Problem& p) { p.outputs = {Output::o}; });
  for (Output one : now.outputs) {
    drop(now.outputs.size() > 1, [one](Problem& p) { std::erase(p.outputs, one); });
  }
  drop(now.layout != Layout::bhld, [](Problem& p) { p.layout = Layout::bhld; });
  for (TensorId id : values_of<TensorId>()) {
    drop(now.tensor(id).layout.has_value(), [id](Problem& p) { p.tensor(id).layout.reset(); });
    drop(now.tensor(id).strides.has_value(), [id](Problem& p) { p.tensor(id).strides.reset(); });
    drop(now.tensor(id).offset != 0, [id](Problem& p) { p.tensor(id).offset = 0; });
    const auto& own = now.tensor(id).fill;
    drop(own && fill_rank(now.fill) <= fill_rank(*own), [id](Problem& p) { p.tensor(id).fill.reset(); });
  }
  drop(now.dtype != DType::f32, [](Problem& p) { p.dtype = DType::f32; });
}

void shrink_sizes(const Problem& now, Candidates& out) {
  out.add([](Problem& p) { p.query_heads = p.key_heads = 1; });
  towards(out, now.batch, 1, [](Problem& p, std::int64_t n) { p.batch = n; });
  towards(out, now.key_heads, 1, [](Problem& p, std::int64_t n) {
    p.query_heads = p.query_heads / p.key_heads * n;
    p.key_heads = n;
  });
  towards(out, now.heads_per_group(), 1, [](Problem& p, std::int64_t n) { p.query_heads = p.key_heads * n; });
  if (now.query_length == now.key_length) {
    towards(out, now.query_length, 1, [](Problem& p, std::int64_t n) { p.query_length = p.key_length = n; });
  }
  towards(out, now.query_length, 1, [](Problem& p, std::int64_t n) { p.query_length = n; });
  towards(out, now.key_length, 1, [](Problem& p, std::int64_t n) { p.key_length = n; });
  if (now.query_length > now.key_length) out.add([](Problem& p) { p.query_length = p.key_length; });
  if (now.key_length > now.query_length) out.add([](Problem& p) { p.key_length = p.query_length; });
  if (now.key_dim == now.value_dim) {
    towards(out, now.key_dim, 1, [](Problem& p, std::int64_t n) { p.key_dim = p.value_dim = n; });
  }
  towards(out, now.key_dim, 1, [](Problem& p, std::int64_t n) { p.key_dim = n; });
  towards(out, now.value_dim, 1, [](Problem& p, std::int64_t n) { p.value_dim = n; });
}

void shrink_values(const Problem& now, Candidates& out) {
  const auto side = [&](std::int64_t value, auto member) {
    if (value != Problem::kUnbounded) towards(out, value, 0, [member](Problem& p, std::int64_t n) { p.*member = n; });
  };
  side(now.window_left, &Problem::window_left);
  side(now.window_right, &Problem::window_right);
  towards(out, now.prefix, 1, [](Problem& p, std::int64_t n) { p.prefix = n; });
  towards(out, now.past, 1, [](Problem& p, std::int64_t n) { p.past = n; });
  if (now.page_size) towards(out, *now.page_size, 1, [](Problem& p, std::int64_t n) { p.page_size = n; });
  const auto lists = [&](const std::optional<LengthSpec>& spec, const auto& of) {
    for (const bool keys : {false, true}) {
      const std::vector<std::int64_t> list = !spec ? std::vector<std::int64_t>{} : keys ? spec->key : spec->query;
      for (std::size_t n = 0; n < list.size(); ++n) {
        towards(out, list[n], 0, [&](Problem& p, std::int64_t to) { (keys ? of(p).key : of(p).query)[n] = to; });
      }
    }
  };
  lists(now.lengths, [](Problem& p) -> LengthSpec& { return *p.lengths; });
  lists(now.segments, [](Problem& p) -> LengthSpec& { return *p.segments; });
  for (std::size_t n = 0; now.segments && now.segments->key.size() > 1 && n < now.segments->key.size(); ++n) {
    out.add([n](Problem& p) {
      const auto at = static_cast<std::ptrdiff_t>(n);
      p.segments->key.erase(p.segments->key.begin() + at);
      if (!p.segments->query.empty()) p.segments->query.erase(p.segments->query.begin() + at);
    });
  }
  if (now.blocks) {
    towards(out, now.blocks->rows, 1, [](Problem& p, std::int64_t n) { p.blocks->rows = n; });
    towards(out, now.blocks->columns, 1, [](Problem& p, std::int64_t n) { p.blocks->columns = n; });
    if (now.blocks->fill.name != "none") out.add([](Problem& p) { p.blocks->fill = {"none", {}}; });
  }
  if (now.mask) {
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (now.mask->kept[axis]) out.add([axis](Problem& p) { p.mask->kept[axis] = false; });
    }
    if (now.mask->dtype) out.add([](Problem& p) { p.mask->dtype.reset(); });
    if (!now.mask->additive && now.mask->fill.name != "none") out.add([](Problem& p) { p.mask->fill = {"none", {}}; });
    if (now.mask->additive && now.mask->fill.name != "normal") {
      out.add([](Problem& p) { p.mask->fill = {"normal", {}}; });
    }
  }
  const auto round_list = [&](const std::vector<double>& list, auto member) {
    for (std::size_t n = 0; n < list.size(); ++n) {
      for (double to : {0.0, 1.0, std::trunc(list[n])}) {
        if (std::fabs(to) < std::fabs(list[n])) out.add([=](Problem& p) { (p.*member)[n] = to; });
      }
    }
  };
  round_list(now.alibi_slopes, &Problem::alibi_slopes);
  round_list(now.sink_values, &Problem::sink_values);
  if (now.softcap && *now.softcap != 1) out.add([](Problem& p) { p.softcap = 1; });
  if (now.scale && *now.scale != 1) out.add([](Problem& p) { p.scale = 1; });
  if (now.dropout != 0 && now.dropout != 0.5) out.add([](Problem& p) { p.dropout = 0.5; });
}

void plainer_data(const Problem& now, Candidates& out) {
  for (const Fill& fill : plain_fills()) {
    if (fill_rank(fill) < fill_rank(now.fill)) out.add([&](Problem& p) { p.fill = fill; });
  }
  for (TensorId id : {TensorId::q, TensorId::k, TensorId::v}) {
    const Fill held = now.tensor(id).fill.value_or(now.fill);
    for (const Fill& fill : plain_fills()) {
      if (fill_rank(fill) < fill_rank(held)) out.add([&](Problem& p) { p.tensor(id).fill = fill; });
    }
  }
  if (now.seed != 0) out.add([](Problem& p) { p.seed = 0; });
}

}  // namespace

std::vector<Problem> simpler_problems(const Problem& problem) {
  Candidates out(problem);
  drop_options(problem, out);
  shrink_sizes(problem, out);
  shrink_values(problem, out);
  plainer_data(problem, out);
  return std::move(out.list);
}

Shrunk shrink(const Problem& failing, const std::function<bool(const Problem&)>& fails,
              const std::function<bool()>& go_on) {
  Shrunk result{failing, 0, true};
  std::set<std::string> tried = {print_case(failing)};
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Problem& candidate : simpler_problems(result.problem)) {
      if (!tried.insert(print_case(candidate)).second) continue;
      if (!go_on()) {
        result.finished = false;
        return result;
      }
      ++result.tried;
      if (!fails(candidate)) continue;
      result.problem = candidate;
      smaller = true;
      break;
    }
  }
  return result;
}

}  // namespace attest
