#include "harness/backends/plugin/feature_words.h"

#include <algorithm>
#include <functional>

#include "reference/call/tensor_place.h"
#include "reference/options/options.h"

namespace attest {
namespace {

struct FeatureWord {
  std::string word;
  std::function<bool(const Call&)> in;
};

/// A word for each name of an enumeration: "op=linear".
template <class Names, class In>
void add_names(std::vector<FeatureWord>& words, const std::string& key, const Names& values, const In& in) {
  for (const auto value : values)
    words.push_back({key + "=" + std::string(name_of(value)), [=](const Call& c) { return in(c, value); }});
}

/// Whether one of the tensors that layouts and masks are about, or of all others, lies otherwise than the call's layout
/// says.
bool is_any_placed(const Call& c, bool of_layouts) {
  return std::ranges::any_of(values_of<TensorId>(), [&](TensorId id) {
    return (has_layout(id) || id == TensorId::mask) == of_layouts && c.tensor(id).is_placed();
  });
}

bool is_strided(const Call& c) {
  return (c.layout != Layout::bhld && c.layout != Layout::thd) || is_any_placed(c, true);
}

std::vector<FeatureWord> make_words() {
  std::vector<FeatureWord> words;
  const auto add = [&](std::initializer_list<FeatureWord> more) { words.insert(words.end(), more); };
  add_names(words, "dtype", kWideTypes, [](const Call& c, DType type) { return c.dtype == type; });
  add_names(words, "op", values_of<Op>(), [](const Call& c, Op op) { return c.op == op; });
  add_names(words, "pass", values_of<Pass>(), [](const Call& c, Pass pass) { return c.pass == pass; });
  add({{"batch", [](const Call& c) { return c.batch != 1; }},
       {"heads", [](const Call& c) { return c.query_heads != 1; }},
       {"grouped heads", [](const Call& c) { return c.query_heads != c.key_heads; }},
       {"seq=LqxLk", [](const Call& c) { return c.query_length != c.key_length; }},
       {"dim=Dqk/Dv", [](const Call& c) { return c.key_dim != c.value_dim; }},
       {"a size 0", [](const Call& c) { return c.batch * c.query_heads * c.query_length * c.key_length == 0; }},
       {"scale", [](const Call& c) { return c.scale.has_value(); }},
       {"causal", [](const Call& c) { return c.causal; }},
       {"align=bottom-right", [](const Call& c) { return c.align == Align::bottom_right; }},
       {"window", [](const Call& c) { return c.window_left != c.kUnbounded || c.window_right != c.kUnbounded; }},
       {"prefix", [](const Call& c) { return c.prefix != 0; }},
       {"lengths", [](const Call& c) { return c.lengths.has_value(); }},
       {"lengths of queries", [](const Call& c) { return c.lengths && !c.lengths->query.empty(); }},
       {"segments", [](const Call& c) { return c.segments.has_value(); }},
       {"mask=bool", [](const Call& c) { return c.mask && !c.mask->additive; }},
       {"mask=add", [](const Call& c) { return c.mask && c.mask->additive; }},
       {"mask.dtype", [](const Call& c) { return c.tensor(TensorId::mask).dtype.has_value(); }},
       {"blocks", [](const Call& c) { return c.blocks.has_value(); }},
       {"softcap", [](const Call& c) { return c.softcap.has_value(); }},
       {"alibi", [](const Call& c) { return c.alibi || !c.alibi_slopes.empty(); }},
       {"sinks", [](const Call& c) { return c.sinks || !c.sink_values.empty(); }},
       {"dropout", [](const Call& c) { return c.dropout != 0; }},
       {"past", [](const Call& c) { return c.past != 0; }},
       {"paged", [](const Call& c) { return c.page_size.has_value(); }},
       {"dynamic", [](const Call& c) { return c.dynamic; }},
       {"select", [](const Call& c) { return c.select.has_value(); }},
       {"latent", [](const Call& c) { return c.latent; }},
       {"append", [](const Call& c) { return c.append; }},
       {"decay=head", [](const Call& c) { return c.decay_per_head; }},
       {"beta=one", [](const Call& c) { return c.beta_shared; }},
       {"parts", [](const Call& c) { return c.parts != Call{}.parts; }},
       {"base=2", [](const Call& c) { return c.base2; }},
       {"qk_heads", [](const Call& c) { return c.qk_heads != 0; }}});
  for (const Option& option : options()) {
    if (option.kind == OptionKind::tensor) add({{option.key, [&option](const Call& c) { return option.is_set(c); }}});
  }
  add_names(words, "out", values_of<Output>(), [](const Call& c, Output o) { return c.wants(o); });
  // What a call has that says nothing else.
  std::erase_if(words, [](const FeatureWord& one) { return one.word == "out=o" || one.word == "pass=forward"; });
  add({{"scales=head", [](const Call& c) { return c.has_head_scales(); }},
       {"scales=query", [](const Call& c) { return c.has_query_scales(); }},
       {"softcap=unscaled", [](const Call& c) { return c.unscaled_cap; }},
       {"rope=halves", [](const Call& c) { return c.rope == Rope::halves; }},
       {"rope=interleaved", [](const Call& c) { return c.rope == Rope::interleaved; }},
       {"rope of some features", [](const Call& c) { return c.rotated_dims() > 0 && c.rotated_dims() < c.key_dim; }},
       {"rope.positions", [](const Call& c) { return c.rope_positions > 0; }},
       {"rope.cache=rotated", [](const Call& c) { return c.rotated_cache; }},
       {"norm", [](const Call& c) { return c.norm.has_value(); }},
       {"norm=after", [](const Call& c) { return c.norm_after_rope; }},
       {"latent.parts=apart", [](const Call& c) { return c.latent_apart; }},
       {"l2norm", [](const Call& c) { return c.l2norm.has_value(); }}});
  add({{"strides", is_strided},
       {"layout=thd", [](const Call& c) { return c.packed_sequences(); }},
       {"prefix=causal", [](const Call& c) { return c.prefix_causal; }},
       {"alibi per batch", [](const Call& c) { return c.slopes_per_batch(); }},
       {"gap", [](const Call& c) { return c.gap > 0; }},
       {"past per batch", [](const Call& c) { return !c.past_lengths.empty(); }},
       {"strides of other tensors", [](const Call& c) { return is_any_placed(c, false); }},
       {"mixed types", has_mixed_types}});
  add({{"q.scale", [](const Call& c) { return c.q_scale.has_value(); }},
       {"k.scale", [](const Call& c) { return c.k_scale.has_value(); }},
       {"v.scale", [](const Call& c) { return c.v_scale.has_value(); }}});
  for (const DType type : kScaleTypes) {
    if (is_wide(type)) continue;
    words.push_back({"scales in " + std::string(name_of(type)), [type](const Call& c) {
                       return std::ranges::any_of(values_of<TensorId>(), [&](TensorId id) {
                         return is_scales(id) && has_tensor(c, id) && type_of(c, id) == type;
                       });
                     }});
  }
  for (const DType type : kStorageTypes) {
    if (is_wide(type)) continue;
    words.push_back({"stored=" + std::string(name_of(type)), [type](const Call& c) {
                       return std::ranges::any_of(values_of<TensorId>(), [&](TensorId id) {
                         return may_be_narrow(id) && has_tensor(c, id) && type_of(c, id) == type;
                       });
                     }});
  }
  return words;
}

const std::vector<FeatureWord>& table_of_words() {
  static const std::vector<FeatureWord> words = make_words();
  return words;
}

}  // namespace

std::vector<std::string> feature_words(const Call& call) {
  std::vector<std::string> used;
  for (const FeatureWord& one : table_of_words()) {
    if (one.in(call)) used.push_back(one.word);
  }
  return used;
}

std::vector<std::string> all_feature_words() {
  std::vector<std::string> all;
  for (const FeatureWord& one : table_of_words()) all.push_back(one.word);
  return all;
}

}  // namespace attest
