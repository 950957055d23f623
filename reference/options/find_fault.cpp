#include "reference/options/find_fault.h"

#include <algorithm>

#include "reference/call/tensor_place.h"
#include "reference/options/launch_faults.h"
#include "reference/options/operand_faults.h"
#include "reference/options/option_text.h"
#include "reference/options/options.h"

namespace attest {
namespace {

bool is_self_shaped(const Call& p) {
  return p.past == 0 && !p.page_size && p.query_length == p.key_length && p.query_heads == p.key_heads &&
         p.key_dim == p.value_dim;
}

std::optional<Fault> check_lengths(const Call& p) {
  if (!p.lengths) return std::nullopt;
  const auto check = [&](const std::vector<std::int64_t>& list, std::int64_t limit,
                         const char* what) -> std::optional<Fault> {
    if (static_cast<std::int64_t>(list.size()) != p.batch) {
      return Fault{"lengths", "one length per batch is needed: " + std::to_string(p.batch) + ", not " +
                                  std::to_string(list.size())};
    }
    for (std::int64_t n : list) {
      if (n > limit) {
        return Fault{"lengths", std::to_string(n) + " is beyond " + what + " = " + std::to_string(limit)};
      }
    }
    return std::nullopt;
  };
  if (auto fault = check(p.lengths->key, p.key_length, p.has_one_length() ? "L" : "Lk")) return fault;
  if (p.has_one_length() && !p.lengths->query.empty())
    return Fault{"lengths", "a token is query and key at once; give one list"};
  if (!p.lengths->query.empty()) return check(p.lengths->query, p.query_length, "Lq");
  return std::nullopt;
}

std::optional<Fault> check_segments(const Call& p) {
  if (!p.segments) return std::nullopt;
  const auto& query = p.segments->query.empty() ? p.segments->key : p.segments->query;
  if (query.size() != p.segments->key.size()) {
    return Fault{"segments", "as many query segments as key segments are needed"};
  }
  const auto check = [](const std::vector<std::int64_t>& list, std::int64_t want,
                        const char* what) -> std::optional<Fault> {
    std::int64_t sum = 0;
    for (std::int64_t n : list) {
      if (__builtin_add_overflow(sum, n, &sum)) sum = -1;
    }
    if (sum == want) return std::nullopt;
    return Fault{"segments", "the lengths must add up to " + std::string(what) + " = " + std::to_string(want)};
  };
  if (auto fault = check(query, p.query_length, "Lq")) return fault;
  return check(p.segments->key, p.key_length, "Lk");
}

std::optional<Fault> check_tree(const Problem& problem) {
  const Call& p = problem.call;
  const Fill& fill = problem.data.mask_fill;
  if (!p.mask || fill.name != "tree" || fill.args[0] <= static_cast<double>(std::min(p.query_length, p.key_length)))
    return std::nullopt;
  return Fault{"mask", "the tokens of " + fill_text(fill) + " are the last queries and the last keys; Lq = " +
                           std::to_string(p.query_length) + " and Lk = " + std::to_string(p.key_length)};
}

std::optional<Fault> check_combinations(const Call& p) {
  for (TensorId id : values_of<TensorId>()) {
    if (p.tensor(id).layout == Layout::thd) {
      return Fault{std::string(name_of(id)) + ".layout", "thd packs every tensor; say layout=thd"};
    }
  }
  if (p.packed_sequences()) {
    if (!p.lengths && !p.dynamic) return Fault{"layout", "thd packs sequences of given lengths; add lengths="};
    for (TensorId id : values_of<TensorId>()) {
      if (follows_packing(id) && (p.tensor(id).strides || p.tensor(id).layout)) {
        return Fault{std::string(name_of(id)) + ".strides", "thd has no strides to choose"};
      }
    }
    if (p.past > 0 && !p.page_size) return Fault{"past", "thd has no cached keys but in pages; add paged=n"};
  } else if (p.gap > 0) {
    return Fault{"gap", "rows between packed sequences; add layout=thd"};
  }
  if (p.wants(Output::present) && p.has_scores() && !p.stores_every_key()) {
    return Fault{"out",
                 "present belongs to past, the same of all batches: neither layout=thd nor paged nor past=n,..."};
  }
  for (const TensorId id : outputs_of(p)) {
    if (std::ranges::find(row_of(id).axes, Axis::keys) == row_of(id).axes.end() || p.stores_every_key()) continue;
    if (is_gradient(*row_of(id).result)) continue;
    return Fault{"out",
                 std::string(name_of(id)) + " needs every key stored: neither layout=thd nor paged nor past=n,..."};
  }
  if (p.segments && p.past > 0) return Fault{"segments", "segments and past exclude each other"};
  return std::nullopt;
}

/// "op=gated or op=gated_delta", "op=linear or its kin".
std::string operators_with(const Option& option) {
  if (option.of == &OperatorTraits::state) return "op=linear or its kin";
  std::string list;
  for (Op op : values_of<Op>()) {
    if (option.has(op)) list += (list.empty() ? "op=" : " or op=") + std::string(name_of(op));
  }
  return list;
}

/// Results and inputs that the pass doesn't have.
std::optional<Fault> check_pass(const Problem& problem) {
  const Call& p = problem.call;
  const std::string pass = "pass=" + std::string(name_of(p.pass));
  for (const Output output : p.outputs) {
    const std::string name(name_of(output));
    if (is_gradient(output) && !p.wants_gradients())
      return Fault{"out", name + " is a gradient; say pass=backward or pass=both"};
    if (!is_gradient(output) && !p.runs_forward()) return Fault{"out", pass + " gives no " + name + "; say pass=both"};
    if (output == Output::dmask && !(p.mask && p.mask->additive))
      return Fault{"out", std::string(p.mask ? "a boolean mask has no gradient" : "there is no mask") +
                              "; dmask belongs to an additive one (mask=add:...)"};
    if (output == Output::dsinks && !p.sinks) return Fault{"out", "there are no sinks; say sinks"};
    if (output == Output::dstate && !p.initial_state) return Fault{"out", "there is no state; say state"};
  }
  if (p.wants_gradients()) return std::nullopt;
  const char* const needs = "there are no gradients; say pass=backward or pass=both";
  if (p.dlse) return Fault{"dlse", needs};
  if (p.dpresent) return Fault{"dpresent", needs};
  if (problem.data.own_fill(TensorId::dout)) return Fault{"do.fill", needs};
  if (problem.data.poison == "hidden:do") return Fault{"poison", needs};
  return std::nullopt;
}

/// Sizes and layouts of a merge, which has rows of one kind.
std::optional<Fault> check_merge(const Problem& problem) {
  const Call& p = problem.call;
  if (p.query_heads != p.key_heads) return Fault{"heads", "op=merge has no key heads; say heads=H"};
  if (p.query_length != p.key_length) return Fault{"seq", "op=merge has rows alone, no keys; say seq=L"};
  if (p.key_dim != p.value_dim) return Fault{"dim", "op=merge has one dimension; say dim=D"};
  if (p.layout == Layout::qkv || p.layout == Layout::kv || p.layout == Layout::thd)
    return Fault{"layout", "op=merge has no q, k and v to pack; bhld, blhd or bld"};
  return std::nullopt;
}

/// Heads and lengths of linear attention.
std::optional<Fault> check_states(const Call& p) {
  if (p.qk_heads > 0) {
    if (p.query_heads != p.key_heads)
      return Fault{"qk_heads", "heads of q and k are given twice; say heads=H, of the states, and qk_heads"};
    if (p.key_heads < p.qk_heads || p.key_heads % p.qk_heads != 0)
      return Fault{"qk_heads", std::to_string(p.qk_heads) + " heads of q and k do not divide " +
                                   std::to_string(p.key_heads) + " states"};
    if (p.layout == Layout::qkv) return Fault{"qk_heads", "one packed tensor has as many heads of q, k and v"};
    if (p.layout == Layout::kv) return Fault{"qk_heads", "one packed tensor has as many heads of k and v"};
  }
  if (!p.wants_gradients()) return std::nullopt;
  if (p.qk_heads > 0) return Fault{"qk_heads", "gradients of shared heads are not defined yet; leave it out"};
  if (p.l2norm) return Fault{"l2norm", "gradients through it are not defined yet; leave it out"};
  if (p.lengths) return Fault{"lengths", "gradients of linear attention have no lengths yet; leave them out"};
  return std::nullopt;
}

/// Poison of tensors that the operator doesn't have.
std::optional<Fault> check_poison(const Problem& problem) {
  const bool of_parts = problem.data.poison == "empty:o";
  if (problem.call.latent && problem.data.poison.find('v', problem.data.poison.find(':')) != std::string::npos)
    return Fault{"poison", "latent values lie in the keys; say hidden:k or visible:k"};
  if (problem.call.latent && problem.data.own_fill(TensorId::v))
    return Fault{"v.fill", "latent values lie in the keys, which k.fill fills"};
  if (problem.data.poison.empty() || of_parts == problem.call.has_parts()) return std::nullopt;
  return Fault{"poison", of_parts ? "empty parts belong to op=merge" : "op=merge has parts alone; say poison=empty:o"};
}

/// Options that the operator doesn't have.
std::optional<Fault> check_operator(const Problem& problem) {
  const Call& p = problem.call;
  const std::string op = token_of(*find_option("op"), problem);  // empty: softmax attention
  if (p.has_state() && p.past != 0) {
    return Fault{"past", op + " keeps a state instead of cached keys; say state"};
  }
  for (const Option* option : set_options(problem)) {
    if (option->has(p.op)) continue;
    if (op.empty()) {
      return Fault{option->key, "softmax attention has no " + option->key + "; choose " + operators_with(*option)};
    }
    return Fault{option->key, op + " has no such option; leave it out"};
  }
  if (problem.data.state_fill && !p.initial_state) return Fault{"state.fill", "there is no state to fill; say state"};
  const std::vector<Output> given = outputs_of(p.op);
  for (const Output output : p.outputs) {
    if (std::ranges::find(given, output) != given.end()) continue;
    const std::string names = joined(
        given, [](Output one) { return std::string(name_of(one)); }, " and ");
    return Fault{"out", op + " gives " + names + " alone"};
  }
  if (p.has_state() && p.query_length != p.key_length) return Fault{"seq", op + " needs as many keys as queries"};
  if (p.has_state()) {
    if (auto fault = check_states(p)) return fault;
  }
  if (p.has_parts()) return check_merge(problem);
  return std::nullopt;
}

/// Types of single tensors.
std::optional<Fault> check_types(const Call& p) {
  const DType accumulator = accumulator_of(p.dtype);
  for (TensorId id : values_of<TensorId>()) {
    const std::optional<DType>& type = p.tensor(id).dtype;
    const std::string key = std::string(name_of(id)) + ".dtype";
    if (!type) continue;
    if (id != TensorId::mask && !has_tensor(p, id)) return Fault{key, "there is no " + std::string(name_of(id))};
    if (!may_have_type(id, *type)) {
      return Fault{key, is_scales(id)
                            ? "scales are stored in f64, f32, f16, bf16, e4m3 or e8m0"
                            : "types of 8 and 4 bits are storage of q, k and v, and of cached keys and values"};
    }
    if (id != TensorId::mask && !is_output(id) && size_of(*type) > size_of(accumulator)) {
      return Fault{key, "a call in " + std::string(name_of(p.dtype)) + " adds in " + std::string(name_of(accumulator)) +
                            ", which can't hold inputs in " + std::string(name_of(*type)) +
                            "; say dtype=" + std::string(name_of(*type))};
    }
  }
  for (TensorId id : outputs_of(p)) {
    if (!is_wide(type_of(p, id))) {
      return Fault{is_copied(id) ? "out" : std::string(name_of(id)) + ".dtype",
                   std::string(name_of(id)) + " would be a result in " + std::string(name_of(type_of(p, id))) +
                       "; results have 16 bits or more"};
    }
  }
  const DType k = type_of(p, TensorId::k), v = type_of(p, TensorId::v);
  const bool one_of_kv = p.layout == Layout::kv || p.layout == Layout::qkv;
  if ((one_of_kv && k != v) || (p.layout == Layout::qkv && k != type_of(p, TensorId::q))) {
    return Fault{"layout", "one packed tensor has one type; leave out q.dtype, k.dtype and v.dtype"};
  }
  if (!p.wants(Output::present)) return std::nullopt;
  for (const TensorId past : {TensorId::past_k, TensorId::past_v}) {
    if (!p.tensor(past).dtype) continue;
    return Fault{std::string(name_of(past)) + ".dtype",
                 "out=present gives cached and new ones in one type; leave it out"};
  }
  return std::nullopt;
}

/// Of elements that lie two to a byte: every row begins with a byte.
std::optional<Fault> check_pairs(const TensorPlace& place, const std::string& name, bool has_strides,
                                 std::int64_t whole_row) {
  if (place.shape[3] % 2 != 0 || whole_row % 2 != 0)
    return Fault{"dim", "two elements of " + name + " lie in each byte; make its rows an even number of them long"};
  if (place.offset % 2 != 0)
    return Fault{name + ".offset", "two elements of " + name + " lie in each byte; say an even number"};
  const bool is_dense = place.strides[3] == 1 && std::all_of(place.strides.begin(), place.strides.begin() + 3,
                                                             [](std::int64_t stride) { return stride % 2 == 0; });
  if (!is_dense)
    return Fault{has_strides ? name + ".strides" : "layout",
                 "two elements of " + name + " lie in each byte; rows are dense, and other strides are even"};
  return std::nullopt;
}

std::optional<Fault> check_storage(const Call& p) {
  for (const TensorRow& row : tensor_rows()) {
    const TensorId id = row.id;
    const std::string name(name_of(id));
    const TensorSpec& spec = p.tensor(id);
    if (!has_tensor(p, id)) {
      if (spec.layout) return Fault{name + ".layout", "there is no " + name + " to lay out"};
      if (spec.strides) return Fault{name + ".strides", "there is no " + name + " to lay out"};
      if (spec.offset != 0) return Fault{name + ".offset", "there is no " + name + " to lay out"};
      continue;
    }
    const TensorPlace place = place_of(p, id);
    if (!place.elements) {
      return Fault{spec.strides ? name + ".strides" : "seq",
                   "the size of " + name + " does not fit in 63 bits; make it smaller"};
    }
    if (is_packed_in_pairs(type_of(p, id))) {
      const bool has_parts = id == TensorId::q || id == TensorId::k;  // the parts of latent rows are even, too
      if (auto fault = check_pairs(place, name, spec.strides.has_value(), has_parts ? p.key_dim : 0)) return fault;
    }
    const bool is_written = p.append && (id == TensorId::k || id == TensorId::v);
    const bool unique = has_place_for_each(id) || is_written;
    if (unique && spec.strides && !is_injective(place.shape, place.strides)) {
      return Fault{name + ".strides", "two elements of " + (id == TensorId::out ? "the output" : name) +
                                          " would share storage; give every axis room"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fault> find_fault(const Problem& problem) {
  const Call& p = problem.call;
  if (p.key_heads == 0 ? p.query_heads != 0 : p.query_heads % p.key_heads != 0) {
    return Fault{"heads", std::to_string(p.key_heads) + " key heads do not divide " + std::to_string(p.query_heads) +
                              " query heads"};
  }
  if (p.layout == Layout::qkv && !is_self_shaped(problem)) {
    return Fault{"layout", "one packed qkv tensor needs equal lengths, heads and dims of q, k and v"};
  }
  if (p.past > p.key_length) {
    return Fault{"past", std::to_string(p.past) + " cached keys are more than Lk = " + std::to_string(p.key_length)};
  }
  if (!p.past_lengths.empty() && static_cast<std::int64_t>(p.past_lengths.size()) != p.batch) {
    return Fault{"past", std::to_string(p.past_lengths.size()) + " counts for " + std::to_string(p.batch) +
                             " batches; one for all, or one for each"};
  }
  if (p.prefix > p.key_length) {
    return Fault{"prefix", std::to_string(p.prefix) + " keys are more than Lk = " + std::to_string(p.key_length)};
  }
  if (p.prefix_causal && !p.causal) return Fault{"prefix", "N:causal needs causal, which it keeps for the prefix"};
  if (auto fault = check_operator(problem)) return fault;
  if (auto fault = check_poison(problem)) return fault;
  if (auto fault = check_pass(problem)) return fault;
  if (auto fault = check_combinations(problem)) return fault;
  const auto per_head = [&](const char* key, const std::vector<double>& list) -> std::optional<Fault> {
    const auto count = static_cast<std::int64_t>(list.size());
    if (list.empty() || count == p.query_heads) return std::nullopt;
    const bool by_batch = key == std::string_view("alibi");
    if (by_batch && count == p.batch * p.query_heads) return std::nullopt;
    return Fault{key, "one number per query head" + std::string(by_batch ? ", or per batch and query head," : "") +
                          " is needed: " + std::to_string(p.query_heads) + ", not " + std::to_string(count)};
  };
  if (auto fault = per_head("alibi", p.alibi_slopes)) return fault;
  if (auto fault = per_head("sinks", p.sink_values)) return fault;
  if (auto fault = check_lengths(problem)) return fault;
  if (auto fault = operand_fault(problem)) return fault;
  if (auto fault = check_segments(problem)) return fault;
  if (auto fault = find_launch_fault(problem)) return fault;
  if (auto fault = check_tree(problem)) return fault;
  if (auto fault = check_types(problem)) return fault;
  return check_storage(problem);
}

}  // namespace attest
