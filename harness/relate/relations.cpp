#include "harness/relate/relations.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "harness/base/user_error.h"
#include "reference/base/nearest.h"

namespace attest {
namespace {

using List = std::vector<std::int64_t>;

std::size_t at(std::int64_t n) { return static_cast<std::size_t>(n); }

/// The first, the middle and the last of so many.
std::set<std::int64_t> some_of(std::int64_t count) { return {0, count / 2, count - 1}; }

void add_possible(std::vector<Arrangement>& calls, Arrangement part, const Problem& whole, const Inputs& inputs) {
  if (auto call = possible(std::move(part), whole, inputs)) calls.push_back(std::move(*call));
}

bool is_forward_softmax(const Call& p) { return p.has_scores() && p.pass == Pass::forward; }

/// Cached keys of each batch: in tensors of their own, or as the diagonal's offset where keys are paged.
void set_past(Call& call, const List& past) {
  call.past = past.empty() ? 0 : *std::ranges::max_element(past);
  const bool alike = std::ranges::all_of(past, [&](std::int64_t one) { return one == call.past; });
  call.past_lengths = alike ? List() : past;
  call.align = Align::top_left;
}

/// The part with query 0 of batch b at key offsets[b], in each way in which a call can say it: by cached keys, and by
/// the alignment of the last query with the last key.
void add_with_offsets(std::vector<Arrangement>& calls, const Arrangement& part, const List& offsets,
                      const Problem& whole, const Inputs& inputs) {
  bool aligned = true, cached = true;
  for (std::int64_t b = 0; b < part.call.batch; ++b) {
    const std::int64_t offset = offsets[at(b)], keys = part.call.key_count(b);
    aligned = aligned && (part.call.query_count(b) == 0 || offset == keys - part.call.query_count(b));
    cached = cached && offset >= 0 && offset <= keys;
  }
  if (aligned) {
    Arrangement one = part;
    set_past(one.call, {});
    one.call.align = Align::bottom_right;
    add_possible(calls, std::move(one), whole, inputs);
  }
  if (!cached) return;
  Arrangement one = part;
  set_past(one.call, offsets);
  // Without pages each batch must have room for its keys behind its own cached ones.
  for (std::int64_t b = 0; b < part.call.batch; ++b) {
    if (one.call.key_count(b) != part.call.key_count(b)) return;
  }
  add_possible(calls, std::move(one), whole, inputs);
}

/// Queries [first, end) alone, with the keys before `key_ends`, by batches.
Arrangement some_queries(const Call& whole, std::int64_t first, std::int64_t end, const List& key_ends) {
  Arrangement part = Arrangement::same(whole);
  Call& call = part.call;
  call.query_length = end - first;
  std::ranges::fill(part.first_query, first);
  call.key_length = key_ends.empty() ? 0 : *std::ranges::max_element(key_ends);
  set_past(call, {});  // the caller says where the diagonal is
  if (call.lengths && !call.lengths->query.empty()) {
    for (std::int64_t b = 0; b < call.batch; ++b)
      call.lengths->query[at(b)] = std::clamp<std::int64_t>(whole.query_count(b) - first, 0, end - first);
  }
  const bool alike = std::ranges::all_of(key_ends, [&](std::int64_t one) { return one == call.key_length; });
  if (!call.lengths && !alike) call.lengths.emplace();
  if (call.lengths) call.lengths->key = key_ends;
  return part;
}

List key_counts(const Call& whole) {
  List counts;
  for (std::int64_t b = 0; b < whole.batch; ++b) counts.push_back(whole.key_count(b));
  return counts;
}

/// Whether the queries of a call may be computed apart: what they see is a matter of their own numbers alone.
bool has_separable_queries(const Call& p) {
  return is_forward_softmax(p) && p.query_length >= 2 && !p.segments && !p.select;
}

std::vector<Arrangement> decode(const Problem& whole, const Inputs& inputs) {
  const Call& p = whole.call;
  std::vector<Arrangement> calls;
  if (!has_separable_queries(p)) return calls;
  Arrangement last = some_queries(p, 0, 1, key_counts(p));
  List offsets;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t i = std::max<std::int64_t>(p.query_count(b) - 1, 0);
    last.first_query[at(b)] = i;
    offsets.push_back(p.uses_diagonal() ? p.diagonal_offset(b) + i : std::max<std::int64_t>(p.key_count(b) - 1, 0));
  }
  add_with_offsets(calls, last, offsets, whole, inputs);
  return calls;
}

/// Ends of pieces of unequal length; multiples of `unit`.
List cuts(std::int64_t length, std::int64_t unit) {
  List ends;
  for (const std::int64_t end : {length / 3, length / 3 + length / 2}) {
    const std::int64_t rounded = end / unit * unit;
    if (rounded > (ends.empty() ? 0 : ends.back()) && rounded < length) ends.push_back(rounded);
  }
  if (ends.empty() && length >= 2 * unit) ends.push_back(length / 2 / unit * unit);
  ends.push_back(length);
  return ends;
}

std::vector<Arrangement> chunks(const Problem& whole, const Inputs& inputs) {
  const Call& p = whole.call;
  std::vector<Arrangement> calls;
  if (!has_separable_queries(p)) return calls;
  std::int64_t first = 0;
  for (const std::int64_t end : cuts(p.query_length, p.blocks ? p.blocks->rows : 1)) {
    if (end - first == p.query_length) return {};
    List key_ends = key_counts(p), offsets;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      offsets.push_back(p.diagonal_offset(b) + first);
      // As a server has them: later keys aren't there yet.
      if (p.causal && p.prefix == 0)
        key_ends[at(b)] = std::clamp<std::int64_t>(p.diagonal_offset(b) + end, 0, key_ends[at(b)]);
    }
    const Arrangement chunk = some_queries(p, first, end, key_ends);
    if (p.uses_diagonal())
      add_with_offsets(calls, chunk, offsets, whole, inputs);
    else
      add_possible(calls, chunk, whole, inputs);
    first = end;
  }
  return calls;
}

std::vector<Arrangement> pages(const Problem& whole, const Inputs& inputs) {
  std::vector<Arrangement> calls;
  if (!whole.call.page_size || page_count(whole.call) < 2) return calls;
  Arrangement other = Arrangement::same(whole.call);
  other.about = "pages in the opposite order";
  add_possible(calls, std::move(other), whole, inputs);
  return calls;
}

std::vector<Arrangement> paging(const Problem& whole, const Inputs& inputs) {
  const Call& p = whole.call;
  std::vector<Arrangement> calls;
  if (!p.has_scores() || p.page_size || p.past > 0) return calls;
  Arrangement paged = Arrangement::same(p);
  paged.call.page_size = 16;
  add_possible(calls, std::move(paged), whole, inputs);
  return calls;
}

std::vector<Arrangement> packing(const Problem& whole, const Inputs& inputs) {
  const Call& p = whole.call;
  std::vector<Arrangement> calls;
  if (!traits_of(p.op).tokens) return calls;
  Arrangement other = Arrangement::same(p);
  Call& call = other.call;
  call.gap = 0;
  if (p.packed_sequences()) {
    call.layout = Layout::bhld;
  } else {
    call.layout = Layout::thd;
    call.lengths = LengthSpec{{}, key_counts(p)};
    for (std::int64_t b = 0; p.has_scores() && b < p.batch; ++b) call.lengths->query.push_back(p.query_count(b));
    for (TensorSpec& spec : call.tensors) spec.layout.reset();
  }
  add_possible(calls, std::move(other), whole, inputs);
  return calls;
}

std::vector<Arrangement> batch(const Problem& whole, const Inputs& inputs) {
  const Call& p = whole.call;
  std::vector<Arrangement> calls;
  if (p.batch < 2) return calls;
  for (const std::int64_t b : some_of(p.batch)) {
    Arrangement one = Arrangement::same(p);
    Call& call = one.call;
    call.batch = 1;
    one.batches = {b};
    one.first_query = {0};
    one.about = "sequence " + std::to_string(b) + " alone";
    if (p.lengths) {
      for (List* list : {&call.lengths->query, &call.lengths->key}) {
        if (!list->empty()) *list = {(*list)[at(b)]};
      }
    }
    if (!p.past_lengths.empty()) {
      call.past = p.past_length(b);
      call.past_lengths.clear();
      if (!p.page_size) call.key_length = p.stored_keys(b);
    }
    add_possible(calls, std::move(one), whole, inputs);
  }
  return calls;
}

std::vector<Arrangement> head(const Problem& whole, const Inputs& inputs) {
  const Call& p = whole.call;
  std::vector<Arrangement> calls;
  // Gradients of keys and values are sums over the heads of a group.
  const std::int64_t group = p.wants_gradients() ? p.heads_per_group() : 1;
  if (p.query_heads < 2 * group) return calls;
  for (const std::int64_t n : some_of(p.query_heads / group)) {
    Arrangement one = Arrangement::same(p);
    one.first_query_head = n * group;
    one.first_key_head = one.first_query_head / p.heads_per_group();
    one.call.query_heads = group;
    one.call.key_heads = 1;
    one.call.qk_heads = 0;
    one.about = "head " + std::to_string(one.first_query_head) + " alone";
    add_possible(calls, std::move(one), whole, inputs);
  }
  return calls;
}

/// Whether keys may be taken in any order, or some of them alone.
bool has_separable_keys(const Call& p) {
  return p.has_scores() && !p.uses_diagonal() && p.prefix == 0 && !p.segments && !p.select && p.key_length >= 2;
}

std::vector<Arrangement> key_order(const Problem& whole, const Inputs& inputs) {
  const Call& p = whole.call;
  std::vector<Arrangement> calls;
  if (!has_separable_keys(p) || p.blocks) return calls;
  Arrangement other = Arrangement::same(p);
  other.about = "keys in the opposite order";
  // A mask that all batches share follows one order of keys.
  const bool shared = p.mask && !p.mask->kept[0] && p.mask->kept[3];
  const List counts = key_counts(p);
  const std::int64_t fewest = counts.empty() ? 0 : *std::ranges::min_element(counts);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    List& keys = other.keys.emplace_back();
    const std::int64_t count = shared ? fewest : p.key_count(b);
    for (std::int64_t j = 0; j < p.key_length; ++j) keys.push_back(j < count ? count - 1 - j : j);
  }
  add_possible(calls, std::move(other), whole, inputs);
  return calls;
}

std::vector<Arrangement> key_splits(const Problem& whole, const Inputs& inputs) {
  const Call& p = whole.call;
  std::vector<Arrangement> calls;
  if (!has_separable_keys(p) || p.pass != Pass::forward || !p.wants(Output::o)) return calls;
  const List counts = key_counts(p);
  std::int64_t first = 0;
  for (const std::int64_t end : cuts(p.key_length, p.blocks ? p.blocks->columns : 1)) {
    if (end - first == p.key_length) return {};
    Arrangement part = Arrangement::same(p);
    Call& call = part.call;
    set_past(call, {});
    part.first_key = first;
    call.key_length = end - first;
    call.outputs = {Output::o, Output::lse};
    call.page_size.reset();
    if (call.lengths || std::ranges::any_of(counts, [&](std::int64_t n) { return n != p.key_length; })) {
      if (!call.lengths) call.lengths.emplace();
      call.lengths->key.clear();
      for (const std::int64_t count : counts)
        call.lengths->key.push_back(std::clamp<std::int64_t>(count - first, 0, end - first));
    }
    // A sink is one logit more of the whole row, so that one part alone has it.
    if (first > 0) {
      call.sinks = false;
      call.sink_values.clear();
    }
    part.about = "keys " + std::to_string(first) + " to " + std::to_string(end - 1);
    auto one = possible(std::move(part), whole, inputs);
    if (!one) return {};
    calls.push_back(std::move(*one));
    first = end;
  }
  return calls;
}

using enum RelationKind;

constexpr Relation kRelations[] = {
    {"repeat", "the same plan run again, and a new plan, give the same", "every call", runs},
    {"threads", "other numbers of threads give the same", "every call", threads},
    {"batch", "a sequence alone equals the same sequence in the batch", "batches of 2 and more", calls, true, batch},
    {"head", "a head alone equals the same head among all", "2 heads and more; of gradients, 2 groups", calls, true,
     head},
    {"decode", "the last query alone, with all keys or with cached ones, equals the last row",
     "forward passes of 2 queries and more, without segments and selected keys", calls, true, decode},
    {"chunks", "queries in pieces, with the keys so far, equal the queries at once",
     "forward passes of 2 queries and more, without segments and selected keys", calls, true, chunks},
    {"packing", "packed sequences equal padded ones", "softmax and linear attention that can be packed", calls, true,
     packing},
    {"pages", "pages in another order give the same", "paged keys of 2 pages and more", calls, true, pages},
    {"paging", "keys in pages equal keys in one piece", "softmax attention that can have pages", calls, true, paging},
    {"key_order", "keys in another order, with their masks, give the same",
     "calls in which the order of keys doesn't matter: no diagonal, prefix, segments or blocks", calls, false,
     key_order},
    {"key_splits", "parts of the keys, merged by their lse, equal the keys at once",
     "forward passes without diagonal, prefix or segments", parts, false, key_splits},
};

}  // namespace

std::span<const Relation> relations() { return kRelations; }

const Relation& relation_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Relation& one : kRelations) {
    if (one.name == name) return one;
    names.emplace_back(one.name);
  }
  throw UserError("--relation " + std::string(name) + ": unknown; nearest: " + nearest_name(std::string(name), names) +
                  "; `attest relate --list` shows all");
}

}  // namespace attest
