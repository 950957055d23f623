// What can't be met, or not by a case that runs in seconds, each with its reason.
#include <algorithm>
#include <bitset>
#include <iterator>
#include <string_view>
#include <vector>

#include "harness/cases/class_cases.h"
#include "harness/cases/coverage.h"

namespace attest {
namespace {

/// Two groups of classes that exclude each other. A group is a class by its name, or, ending in *, all whose names
/// begin so; several are separated by |.
struct Rule {
  std::string_view a, b;
  const char* reason;
};

constexpr std::string_view
    kLinear =
        "op=linear|op=gated|op=delta|op=gated_delta|decay=*|beta=*|qk_heads=*|l2norm=*|state|decay.*|beta.*|state.*|"
        "present_"
        "state.*|"
        "out=ddecay|out=dbeta|out=dstate|ddecay.*|dbeta.*|dstate.*|dpresent*",
    kMerge = "op=merge|parts=*|empty parts=*|base=*|part_o.*|part_lse.*|poison=empty:o",
    kForward =
        "out=lse|out=max|out=sum|out=weights|out=raw|out=capped|out=biased|out=present|lse.*|max.*|sum.*|raw.*|"
        "capped.*|biased.*|weights.*|present_k.*|present_v.*|present_state.*|out.layout=*|out.strides=*|out.offset=*|"
        "out.dtype",
    kGradients =
        "out=dq|out=dk|out=dv|out=dmask|out=dsinks|out=ddecay|out=dbeta|out=dstate|dq.*|dk.*|dv.*|dmask.*|dsinks.*|"
        "ddecay.*|dbeta.*|dstate.*|saved_o.*|saved_lse.*|do.*|dlse*|dpresent*",
    kDynamic = "dynamic|query_lengths.*|key_lengths.*",
    kAppend = "append|appended keys rotated|new_k.*|new_v.*|cache_k.*|cache_v.*",
    kRope =
        "appended keys rotated|rope=*|rope of some "
        "features|rope.base|rope.positions=*|rope.cache=*|cos.*|sin.*|q_positions.*|k_positions.*|norm=after",
    kOperands = "norm=*|q_norm.*|k_norm.*|scales=*|head_scales.*|query_scales.*|softcap=unscaled",
    kScales = "q.scale=*|q_scales.*|k.scale=*|k_scales.*|v.scale=*|v_scales.*|scales of keys=*",
    kLatentParts = "latent.parts=apart|q_rope.*|k_rope.*", kLatent = "latent|latent.parts=apart|q_rope.*|k_rope.*",
    kPairs = "stored keys=e2m1|stored keys=i4", kSelect = "selected=*|keys of a selected block=*|select*|indices.*",
    kMaskWithoutKeys =
        "mask axes=1111|mask axes=11Q1|mask axes=1H11|mask axes=1HQ1|"
        "mask axes=B111|mask axes=B1Q1|mask axes=BH11|mask axes=BHQ1";

constexpr Rule kRules[] = {
    {"boolean mask=*", "additive mask=*|mask=add|mask.dtype=*", "a mask is boolean or additive"},
    {"additive mask=*|mask.dtype=*", "mask=bool", "a mask is boolean or additive"},
    {"boolean mask=tree|additive mask=tree", "queries=0|keys=0", "a tree has a token or more"},
    {"past*", "segments=*|empty segment", "segments and past exclude each other"},
    {"past*", "align=*", "past sets the diagonal"},
    {"past*|paged=*|page_table.*", "layout=qkv", "a cache has keys of its own"},
    {"past_k.*|past_v.*", "layout=thd|gap", "packed queries have their cached keys in pages"},
    {"past per batch|past_lengths.*", "batch=0|batch=1", "one sequence has one count"},
    {"past per batch|past_lengths.*",
     "out=weights|out=raw|out=capped|out=biased|out=present|raw.*|capped.*|biased.*|weights.*|present_k.*|present_v.*",
     "stages and present need every key stored"},
    {"past_k.dtype|past_v.dtype", "out=present|present_k.*|present_v.*", "present is cached and new ones in one type"},
    {"past_k.*|past_v.*", "paged=*|page_table.*", "pages hold the cached keys, too"},
    {"past_k.*|past_v.*|past_lengths.*|past per batch", "keys=0", "there is no key to keep"},
    {"paged=*|page_table.*|layout=thd|gap",
     "out=weights|out=raw|out=capped|out=biased|raw.*|capped.*|biased.*|weights.*|present_k.*|present_v.*",
     "stages and present need every key stored"},
    {"paged=*|page_table.*", "out=present", "present needs every key stored"},
    {kDynamic, "pass=backward|pass=both", "gradients have no lengths that change"},
    {kDynamic, kGradients, "gradients have no lengths that change"},
    {kDynamic, "past*", "dynamic lengths place the diagonal"},
    {"stored keys=*", kMerge, "a merge has no keys"},
    {"stored keys=*", "present_k.*|present_v.*|cache_k.*|cache_v.*|append|appended keys rotated|new_k.*|new_v.*",
     "results have 16 bits or more"},
    {kPairs,
     "key dim=1|key dim=3|end of key dim=64n+1|end of key dim=64n-1|end of key dim=16n+1|end of key "
     "dim=16n-1|k.strides=features apart|k.strides=transposed|k.offset=odd",
     "each row of pairs begins with a byte, and is dense"},
    {kSelect, "pass=backward|pass=both", "gradients of selected keys are not defined"},
    {kSelect, kGradients, "gradients of selected keys are not defined"},
    {kRope, "pass=backward|pass=both", "gradients of rotated rows are not defined"},
    {kRope, kGradients, "gradients of rotated rows are not defined"},
    {kOperands, "pass=backward|pass=both", "gradients of prepared rows are not defined"},
    {kOperands, kGradients, "gradients of prepared rows are not defined"},
    {kRope, "key dim=1", "one feature is no pair"},
    {"scales=head", "query_scales.*", "scales of heads alone"},
    {"scales=query", "head_scales.*", "scales of queries alone"},
    {"rope of some features", "key dim=2", "a part of one pair is none"},
    {"rope.cache=*", "align=*", "past sets the diagonal"},
    {"rope.cache=*", "segments=*|empty segment", "segments and past exclude each other"},
    {"rope.cache=*", "keys=0", "there is no cached key"},
    {"rope.cache=*", "layout=qkv", "a cache has keys of its own"},
    {"rope.cache=*", kDynamic, "dynamic lengths place the diagonal"},
    {"rope.cache=*", kAppend, "the lengths of a cache count its new keys"},
    {"rope.cache=rotated", "paged=*|page_table.*|layout=thd|gap|out=present|present_k.*|present_v.*",
     "a cache that was rotated lies in tensors of its own"},
    {kScales, "pass=backward|pass=both", "gradients by scaled codes are not defined"},
    {kScales, kGradients, "gradients by scaled codes are not defined"},
    {kScales, kRope, "codes are rotated before they are stored"},
    {kScales, "norm=*|q_norm.*|k_norm.*", "codes are normalised before they are stored"},
    {kScales, kAppend, "new keys have no scales"},
    {kScales, "out=present|present_k.*|present_v.*", "present has no scales"},
    {"q.scale=token|q.scale=block|q.scale=short last block", "layout=thd|gap", "packed rows have no scales"},
    {kScales, kLinear, "linear attention has no codes"},
    {kScales, kMerge, "parts are no codes"},
    {kLatent, "v.scale=*|v_scales.*", "latent values have the scales of their keys"},
    {kLatent, "pass=backward|pass=both", "gradients of latent values are not defined"},
    {kLatent, kGradients, "gradients of latent values are not defined"},
    {kLatent, kAppend, "latent keys are appended before the call"},
    {kLatent, "layout=qkv|layout=kv|key dim to value dim=smaller", "latent values are columns of keys"},
    {kLatent, "v.*|past_v.*|present_v.*|poison=hidden:kv|poison=hidden:v|poison=visible:v",
     "latent values lie in the keys"},
    {kLatentParts, "key dim to value dim=equal|key dim=1", "columns lie behind the values"},
    {kLatentParts, "past*|rope.cache=*|out=present|present_k.*", "keys in two tensors are not cached ones"},
    {kLatentParts, kRope, "keys in two tensors are rotated before the call"},
    {kLatentParts, "norm=*|q_norm.*|k_norm.*", "keys in two tensors are normalised before the call"},
    {kAppend, "pass=backward|pass=both", "gradients of appended keys are not defined"},
    {kAppend, kGradients, "gradients of appended keys are not defined"},
    {kAppend, "queries=32768..65535|queries=65536..", "as many keys are too many pairs for a suite"},
    {kAppend, "past*", "the lengths of a cache count its new keys"},
    {kAppend, "layout=qkv", "one packed tensor is no cache"},
    {kAppend, "out=present|present_k.*|present_v.*", "append gives the cache itself"},
    {kAppend, "queries to keys=more", "each query brings a key"},
    {kAppend, "k.strides=one head|k.strides=one row|v.strides=one head|v.strides=one row",
     "a cache that is written has a place for each element"},
    {"layout=thd|gap",
     "q.layout=*|k.layout=*|v.layout=*|out.layout=*|q.strides=*|k.strides=*|v.strides=*|out.strides=*|lse.strides|"
     "max.strides|sum.strides|"
     "saved_o.layout=*|do.layout=*|dq.layout=*|dk.layout=*|dv.layout=*|saved_o.strides|saved_lse.strides|do.strides|"
     "new_k.layout=*|new_v.layout=*|new_k.strides|new_v.strides|cache_k.layout=*|cache_v.layout=*|cache_k.strides|"
     "cache_v.strides|indices.strides|q_positions.strides|k_positions.strides|query_scales.strides|dlse.strides|dq."
     "strides|dk.strides|dv.strides|q_rope.strides|k_rope.strides|decay."
     "strides|beta.strides",
     "thd has no strides to choose"},
    {"pass=forward", kGradients, "a forward pass has no gradients"},
    {"pass=backward|saved_o.*|saved_lse.*", kForward, "a backward pass gives gradients alone"},
    {"pass=forward|pass=both", "saved_o.*|saved_lse.*", "saved results are inputs of a backward pass alone"},
    {"boolean mask=*|mask=bool", "out=dmask|dmask.*", "a boolean mask has no gradient"},
    {"layout=qkv", "queries to keys=fewer|queries to keys=more|align=*|keys a multiple of queries",
     "one packed tensor has one length"},
    {"layout=qkv", "key dim to value dim=smaller|key dim to value dim=larger", "one packed tensor has one dimension"},
    {"key dim=1", "key dim to value dim=larger", "no dimension is below 1"},
    {"value dim=1", "key dim to value dim=smaller", "no dimension is below 1"},
    {"batch=0|batch=1|query heads=0|query heads=1|key heads=0", "as many heads as sequences", "one of each is no many"},
    {"keys=0|keys=1|keys=2|keys=3|queries=0|queries=1|queries to keys=equal|queries to keys=more",
     "keys a multiple of queries", "two queries or more, and twice as many keys"},
    {"keys=5|keys=17|keys=257", "keys a multiple of queries", "a prime is a multiple of itself alone"},
    {"queries to keys=equal", "align=*", "where the lengths are equal both corners are one"},
    {kLinear, "queries to keys=fewer|queries to keys=more|keys a multiple of queries",
     "linear attention has one length"},
    {kLinear, "mask.strides=*|mask.offset=*", "linear attention has no mask"},
    {kMerge, "queries to keys=fewer|queries to keys=more|keys a multiple of queries", "a merge has one length"},
    {kMerge, "group=2|group=3|group=4|group=5..7|group=8|group=9..31|group=32..", "a merge has no key heads"},
    {kMerge, "key dim to value dim=smaller|key dim to value dim=larger", "a merge has one dimension"},
    {kMerge, "mask.strides=*|mask.offset=*", "a merge has no mask"},
    {kMerge, "layout=qkv|layout=kv|layout=thd|gap", "a merge has no q, k and v to pack"},
    {"gap", "layout=bhld|layout=blhd|layout=bld|layout=qkv|layout=kv", "sequences with a gap between them are packed"},
    {"gap", "batch=0|batch=1", "a gap lies between two sequences"},
    {kLinear, "lengths=of queries and keys", "a token is query and key at once"},
    {"out=ddecay|out=dbeta|out=dstate|ddecay.*|dbeta.*|dstate.*|dpresent*", "lengths*|shortest length=*|layout=thd|gap",
     "gradients of linear attention have no lengths"},
    {"qk_heads=*", kGradients, "gradients of shared heads are not defined"},
    {"qk_heads=*", "pass=backward|pass=both", "gradients of shared heads are not defined"},
    {"l2norm=*", "pass=backward|pass=both", "gradients of normalised rows are not defined"},
    {"l2norm=*", kGradients, "gradients of normalised rows are not defined"},
    {"qk_heads=*", "layout=qkv|layout=kv", "one packed tensor has as many heads of q, k and v"},
    {"qk_heads=*", "group=2|group=3|group=4|group=5..7|group=8|group=9..31|group=32..|query heads=0|key heads=0",
     "the heads of q and k are given once"},
    {"qk_heads=one|qk_heads=some", "query heads=1|key heads=1", "one state is not shared"},
    {"qk_heads=some", "query heads=2|key heads=2|query heads=3|key heads=3", "two heads or more of two states or more"},
    {"qk_heads=one", "q.strides=one head|k.strides=one head", "one head is no broadcast"},
    {"batch=0", "lengths=*|shortest length=*|layout=thd", "no sequence has a length"},
    {"keys=0", "shortest length=some|shortest length=whole|queries to keys=fewer|past of all keys",
     "more than there are keys"},
    {"keys=1", "shortest length=some", "between none and one lies no length"},
    {"queries=0", "queries to keys=more", "no number is below 0"},
    {"queries=1", "queries to keys=more", "leaves no key"},
    {"keys=1", "queries to keys=fewer", "leaves no query"},
    {"segments=1", "empty segment", "leaves no key"},
    {"key heads=0", "group=*", "without key heads there are no groups"},
    {"query heads=0|key heads=0", "alibi=given|alibi per batch|sinks=given", "an empty list is no list"},
    {"keys=0", "prefix=causal", "more than there are keys"},
    {"batch=0|batch=1|alibi=drawn", "alibi per batch", "slopes of each batch are given, for two batches or more"},
    {"layout=qkv", "group=2|group=3|group=4|group=5..7|group=8|group=9..31|group=32..",
     "one packed tensor has equal heads"},
    {"key dim=1", "scale=1", "1 is the default of one feature"},
    {"keys=0", "k.strides=transposed|v.strides=transposed", "no two rows lie next to each other"},
    {"paged=1", "k.strides=transposed|k.strides=one row|v.strides=transposed|v.strides=one row", "a page of one row"},
    {"queries=0|queries=1", "q.strides=transposed|q.strides=one row|out.strides=transposed|mask.strides=transposed",
     "fewer than two rows lie next to each other"},
    {"query heads=0|query heads=1", "q.strides=one head|k.strides=one head|v.strides=one head",
     "one head is no broadcast"},
    {"key heads=0|key heads=1", "k.strides=one head|v.strides=one head", "one head is no broadcast"},
    {"key heads=0", "q.strides=one head", "one head is no broadcast"},
    {"mask axes=1111|mask axes=111K", "mask.strides=rows apart", "these axes have one row"},
    {"mask axes=1111", "mask.strides=beyond 2^31", "these axes have one element"},
    {kMaskWithoutKeys, "mask.strides=features apart", "these axes have one key"},
    {kMaskWithoutKeys, "mask.strides=transposed", "these axes have one key"},
    {"mask axes=111K|mask axes=1H1K|mask axes=B11K|mask axes=BH1K", "mask.strides=transposed",
     "these axes have one row"},
};

bool is_of(const TableClass& one, std::string_view groups) {
  const std::string_view name = one.name();
  while (!groups.empty()) {
    const std::size_t end = std::min(groups.find('|'), groups.size());
    const std::string_view group = groups.substr(0, end);
    if (group.ends_with('*') ? name.starts_with(group.substr(0, group.size() - 1)) : name == group) return true;
    groups.remove_prefix(std::min(end + 1, groups.size()));
  }
  return false;
}

/// Which rules name the class, on either side.
struct Named {
  std::bitset<std::size(kRules)> first, second;
};

/// Of each class of the table. Found once: there are hundreds of thousands of pairs.
const std::vector<Named>& named_by_rules() {
  static const std::vector<Named> all = [] {
    std::vector<Named> list;
    for (const TableClass& one : classes_of_table()) {
      Named& named = list.emplace_back();
      for (std::size_t n = 0; n < std::size(kRules); ++n) {
        named.first[n] = is_of(one, kRules[n].a);
        named.second[n] = is_of(one, kRules[n].b);
      }
    }
    return list;
  }();
  return all;
}

/// Whether the class asks for a result that the operator doesn't give.
bool asks_for_other_result(const TableClass& one, Op op) {
  constexpr std::string_view kOut = "out=";
  if (!one.feature->name.starts_with(kOut)) return false;
  const std::optional<Output> output = value_named<Output>(one.feature->name.substr(kOut.size()));
  const std::vector<Output> given = outputs_of(op);
  return output && std::ranges::find(given, *output) == given.end();
}

bool no_operator_has(const TableClass& a, const TableClass& b) {
  for (Op op : values_of<Op>()) {
    const auto fits = [op](const TableClass& one) { return has_class(op, one) && !asks_for_other_result(one, op); };
    if (fits(a) && fits(b)) return false;
  }
  return true;
}

const Range* range_of(const TableClass& one) {
  return one.feature->ranges.empty() ? nullptr : &one.feature->ranges[one.which];
}

/// Numbers worth looking at in a range: what a rule of division or of ends can ask for comes early in an open one.
std::int64_t last_to_try(const Range& range) { return range.last == Range::kOpen ? 2 * range.first + 200 : range.last; }

/// Whether some n of `a` and m of `b` fit together.
template <class Fits>
bool some_fit(const Range& a, const Range& b, Fits fits) {
  for (std::int64_t n = a.first; n <= last_to_try(a); ++n) {
    for (std::int64_t m = b.first; m <= last_to_try(b); ++m) {
      if (fits(n, m)) return true;
    }
  }
  return false;
}

/// Numbers that depend on each other; `a` and `b` in the order of the table.
const char* why_numbers_exclude(const TableClass& a, const TableClass& b) {
  const std::string &of_a = a.feature->name, &of_b = b.feature->name;
  const Range *in_a = range_of(a), *in_b = range_of(b);
  if (in_a && of_b == "end of " + of_a) {
    return in_a->last > 0 &&
                   nearest_with_end(in_a->first, b.which, {std::max<std::int64_t>(in_a->first, 1), in_a->last})
               ? nullptr
               : "no number of this range ends so";
  }
  if (!in_a || !in_b) return nullptr;
  if (of_a == "keys" && (of_b == "prefix" || of_b == "past") && in_b->first > in_a->last)
    return "more than there are keys";
  const auto divides = [](std::int64_t n, std::int64_t m) { return m == 0 ? n == 0 : n % m == 0 && n >= m; };
  const bool heads = of_a == "query heads" && (of_b == "key heads" || of_b == "group");
  if (heads && !some_fit(*in_a, *in_b, divides)) return "key heads and groups divide query heads";
  return nullptr;
}

/// Why even the smallest case in both classes is too much.
const char* why_too_large(const TableClass& a, const TableClass& b) {
  const auto least = [&](std::string_view name) {
    for (const TableClass* one : {&a, &b}) {
      if (one->feature->name == name) return static_cast<double>(range_of(*one)->first);
    }
    return 1.0;
  };
  double batch = least("batch"), heads = std::max(least("query heads"), least("key heads") * least("group"));
  double queries = least("queries"), keys = std::max(least("keys"), std::max(least("prefix"), least("past")));
  const auto is_either = [&](std::string_view name) { return a.name() == name || b.name() == name; };
  if (is_either("as many heads as sequences")) batch = heads = std::max(batch, heads);
  if (is_either("keys a multiple of queries")) keys = std::max(keys, 2 * queries);
  if (is_of(a, kAppend) || is_of(b, kAppend)) keys = std::max(keys, queries);  // each query brings one
  if (is_either("queries to keys=more")) queries = std::max(queries, keys + 1);
  if (is_either("queries to keys=fewer")) keys = std::max(keys, queries + 1);
  if (is_either("queries to keys=equal") || is_either("layout=qkv")) queries = keys = std::max(queries, keys);
  if (batch * heads * queries * keys * (least("key dim") + least("value dim")) > kSuiteLimits.multiply_adds) {
    return "takes more than 2e8 multiply-adds";
  }
  const double stored = std::max(keys, least("paged"));  // a page is stored whole
  const double elements =
      (batch * heads * queries + batch * least("key heads") * stored) * (least("key dim") + least("value dim"));
  return 2 * elements > kSuiteLimits.bytes ? "takes more than 256 MiB" : nullptr;
}

}  // namespace

const char* why_impossible(std::size_t one, std::size_t other) {
  const auto& table = classes_of_table();
  const TableClass &a = table[std::min(one, other)], &b = table[std::max(one, other)];
  if (one == other) return nullptr;
  if (no_operator_has(a, b)) return "no operator has both";
  const Named &of_a = named_by_rules()[std::min(one, other)], &of_b = named_by_rules()[std::max(one, other)];
  const auto both = (of_a.first & of_b.second) | (of_a.second & of_b.first);
  for (std::size_t n = 0; both.any() && n < both.size(); ++n) {
    if (both[n]) return kRules[n].reason;
  }
  // A tensor's own layout is said where it is another than that of all.
  if (a.feature->name == "layout" && b.feature->name.ends_with(".layout") &&
      a.name().substr(a.name().find('=')) == b.name().substr(b.name().find('='))) {
    return "a tensor's own layout is another than the call's";
  }
  if (const char* reason = why_numbers_exclude(a, b)) return reason;
  return why_too_large(a, b);
}

const char* why_impossible(const Triple& triple) {
  if (const char* reason = why_impossible(triple.type, triple.length)) return reason;
  const char* reason = nullptr;
  for (std::size_t one : visibilities()[triple.visibility].classes) {
    reason = why_impossible(one, triple.length);
    if (!reason) reason = why_impossible(triple.type, one);
    if (!reason) return nullptr;
  }
  return reason;
}

const char* why_impossible_option(const Option& option, std::size_t one) {
  const TableClass& length = classes_of_table()[one];
  if (length.name() == "keys=0" && (option.key == "prefix" || option.key.starts_with("past")))
    return "more than there are keys";
  // None of its classes can be met there.
  const char* why = nullptr;
  for (std::size_t n = 0; n < classes_of_table().size(); ++n) {
    if (classes_of_table()[n].option != &option) continue;
    why = why_impossible(n, one);
    if (!why) return nullptr;
  }
  return why;
}

}  // namespace attest
