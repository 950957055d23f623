#include "reference/options/options.h"

#include <algorithm>
#include <tuple>

#include "reference/call/tensor_place.h"
#include "reference/options/option_features.h"
#include "reference/options/option_rows.h"

namespace attest {
namespace {

using namespace option_rows;

constexpr OperatorTrait kTokens = &OperatorTraits::tokens, kGradients = &OperatorTraits::gradients,
                        kScores = &OperatorTraits::scores, kState = &OperatorTraits::state,
                        kDecay = &OperatorTraits::decay, kBeta = &OperatorTraits::beta, kParts = &OperatorTraits::parts,
                        kLse = &OperatorTraits::lse;

bool any_number(double) { return true; }

/// "a|b|c", the names of E's values.
template <NamedEnum E>
std::string alternatives() {
  return joined(
      values_of<E>(), [](E value) { return std::string(name_of(value)); }, "|");
}

std::vector<std::string> types_but_f32() {
  std::vector<std::string> names(kWideNames.begin(), kWideNames.end());
  std::erase(names, "f32");
  return names;
}

/// Two sizes with one key: always printed, or where they are not 1.
Option sizes(std::string key, std::int64_t Call::*first, std::int64_t Call::*second, char separator, std::int64_t min,
             const std::string& what, bool always) {
  Option option = composite(std::move(key), "", "");
  option.files(InFiles::shown).kept().version(0);
  option.parse = [=](Call& p, const OptionText& v) {
    std::tie(p.*first, p.*second) = parse_pair(v, separator, min, what);
  };
  option.print = [=](const Call& p) -> std::optional<std::string> {
    if (!always && p.*first == Call{}.*first && p.*second == Call{}.*second) return std::nullopt;
    return pair_text(p.*first, p.*second, separator);
  };
  option.copy = [=](Call& to, const Call& from) {
    to.*first = from.*first;
    to.*second = from.*second;
  };
  return option;
}

Option out() {
  Option option =
      composite("out", "o,lse,...",
                "results: " + joined(
                                  values_of<Output>(), [](Output o) { return std::string(name_of(o)); }, " "));
  option.parse = [](Call& p, const OptionText& v) {
    std::array<bool, kNames<Output>.size()> wanted{};
    for (const OptionText& part : v.split(',')) {
      bool& one = wanted[static_cast<std::size_t>(parse_enum<Output>(part, "output"))];
      if (one) part.fail("listed twice");
      one = true;
    }
    p.outputs.clear();
    for (std::size_t n = 0; n < wanted.size(); ++n) {
      if (wanted[n]) p.outputs.push_back(static_cast<Output>(n));
    }
  };
  option.print = [](const Call& p) -> std::optional<std::string> {
    if (p.outputs == default_outputs(p.pass)) return std::nullopt;
    return joined(p.outputs, [](Output o) { return std::string(name_of(o)); });
  };
  option.copy = [](Call& to, const Call& from) {
    to.outputs = to.pass == from.pass ? from.outputs : default_outputs(to.pass);
  };
  return option;
}

/// The version of the contract that brought the gradients of the call's operator.
int gradients_since(const Call& p) { return !p.wants_gradients() ? 0 : p.has_state() ? 6 : 5; }

/// Which results there are depends on it.
Option pass() {
  Option option = name_option("pass", &Call::pass, kNames<Pass>, "pass");
  option.copy = [](Call& to, const Call& from) { to.set_pass(from.pass); };
  return option;
}

/// How many results are merged, and the share of them that saw nothing.
Option parts() {
  Option option =
      integer_option("parts", &Call::parts, 1, "a count of parts")
          .values("n or n:empty(p)", "results that are merged; with probability p a row of a part is empty");
  option.kind = OptionKind::composite;
  option.parse = [count = option.parse](Problem& p, const OptionText& v) {
    const std::vector<OptionText> texts = v.split(':');
    if (texts.size() > 2) v.fail("parts=n:empty(p) is wanted, as parts=4:empty(0.3)");
    count(p, texts[0]);
    p.data.empty_parts = texts.size() == 1 ? 0 : parse_fill(texts[1], part_fills()).args[0];
  };
  option.print = [](const ProblemView& p) -> std::optional<std::string> {
    const double empty = p.data ? p.data->empty_parts : 0;
    if (p.call.parts == Call{}.parts && empty == 0) return std::nullopt;
    return integer_text(p.call.parts) + (empty > 0 ? ":" + fill_text({"empty", {empty}}) : "");
  };
  option.copy = [](Problem& to, const Problem& from) {
    to.call.parts = from.call.parts;
    to.data.empty_parts = from.data.empty_parts;
  };
  return option;
}

// clang-format off
std::vector<Option> make_table() {
  using Names2 = std::array<std::string_view, 2>;
  std::vector<Option> rows = {
    name_option("op", &Call::op, kNames<Op>, "operator").grown([](const Call& p) { return traits_of(p.op).since; }).values(alternatives<Op>(), "softmax attention, a rule of linear attention, or the merge of partial results").kept(),
    pass().version(5).grown(gradients_since).values(alternatives<Pass>(), "results, gradients from saved results, or both").tried({"backward", "both"}).often(16).cut(pass_features()).only(kGradients),
    name_option("dtype", &Call::dtype, kWideNames, "type").values(alternatives_of(kWideNames), "storage of q, k, v and out, and of what has no type of its own").grown([](const Call& p) { return format_of(p.dtype).since; }).tried(types_but_f32()).often(2).files(InFiles::shown),
    integer_option("batch", &Call::batch, 0, "a batch size").version(0).values("B", "sequences").files(InFiles::shown).kept().covers(batch_covered).cut(batch_features()),
    sizes("heads", &Call::query_heads, &Call::key_heads, '/', 0, "a head count H or Hq/Hkv", false).values("H or Hq/Hkv", "Hkv divides Hq").covers(heads_covered).cut(head_features()),
    sizes("seq", &Call::query_length, &Call::key_length, 'x', 0, "a length L or LqxLk", true).values("L or LqxLk", "lengths of queries and keys, past keys too").covers(lengths_covered).cut(length_features()),
    sizes("dim", &Call::key_dim, &Call::value_dim, '/', 1, "a head dimension D or Dqk/Dv", true).values("D or Dqk/Dv", "head dimensions").covers(dims_covered).cut(dim_features()),
    number_option("scale", &Call::scale, any_number, "").values("x", "of the scores; 1/sqrt(Dqk) otherwise").tried({"1", "0", "-0.3", "0.05", "2.5"}).cut(scale_features()).only(kTokens),

    flag_option("causal", &Call::causal).values("", "a query sees no key right of the diagonal").only(kScores),
    align().values("top-left|bottom-right", "corner that the diagonal goes through").tried({"bottom-right"}).cut(align_features()).only(kScores),
    window().tried({"0:0", "0:7", "15:0", "127:64", "1:inf", "inf:7"}).covers(window_covered).cut(window_features()).only(kScores),
    prefix().tried({"1", "5", "40"}).up_to(Axis::keys).also_cut(causal_prefix_features()).only(kScores),
    lengths("lengths", &Call::lengths, "a length", "of keys, or of queries and keys, per batch").grown([](const Call& p) { return p.has_state() ? 8 : 0; }).often(3).cut(ragged_features()).only(kTokens),
    lengths("segments", &Call::segments, "a segment length", "of documents one after the other").cut(segment_features()).only(kScores),
    mask().often(2).covers(mask_covered).cut(mask_features()).only(kScores),
    type_of_tensor(TensorId::mask).tried({"f64", "f32"}).cut(mask_type_features()).only(kScores),
    select().version(9).tried({"1", "4", "3x2", "7:shared", "5:random(0.5)", "4:repeated(0.5)", "6x3:shared:after(2)"}).often(8).cut(select_features()).only(kScores),
    blocks().tried({"16x16:random(0.5)", "7x33:random(0.3)", "64x128:random(0.7)", "32x16:blocks(2)"}).cut(block_features()).only(kScores),

    softcap().grown([](const Call& p) { return p.unscaled_cap ? 9 : 0; }).tried({"1", "1.5", "20", "1000"}).cut(softcap_features()).also_cut(unscaled_cap_features()).only(kScores),
    name_option("scales", &Call::scales, kNames<Scales>, "scales").version(9).values("head|query|both", "numbers that multiply the scale: of each query head, of each query, or both").tried({"head", "query", "both"}).often(24).cut(scales_features()).only(kScores),
    rope().version(9).tried({"halves", "interleaved", "halves:2", "interleaved:4", "halves:16"}).often(8).cut(rope_features()).only(kScores),
    rope_base().version(9).tried({"500000", "1", "100"}).often(2).cut(rope_base_features()).only(kScores),
    integer_option("rope.positions", &Call::rope_positions, 1, "a count of positions").version(9).values("n", "positions come as tensors, each below n").tried({"64", "40000", "1"}).often(2).cut(position_features()).only(kScores),
    name_option("rope.cache", &Call::rotated_cache, Names2{"plain", "rotated"}, "kind of cached keys").version(9).values("plain|rotated", "cached keys were stored before norm and rotation, or after").tried({"rotated"}).often(2).cut(rotated_cache_features()).only(kScores),
    norm().version(9).tried({"1e-06", "1e-05", "0.001:after", "1e-06:after"}).often(8).cut(norm_features()).only(kScores),
    numbers_option("alibi", &Call::alibi_slopes, &Call::alibi, "a slope").values("m,...", "one slope per query head, or per batch and query head; the published ones where it stands alone").tried({"", "0.75", "-0.1"}).also_cut(slopes_per_batch_features()).only(kScores),
    numbers_option("sinks", &Call::sink_values, &Call::sinks, "a sink", true).values("s,...", "one logit per query head, -inf for none; drawn by the seed where it stands alone").tried({"", "-2.5", "30", "-inf"}).only(kScores),
    number_option("dropout", &Call::dropout, [](double p) { return p >= 0 && p < 1; }, "dropout must lie in [0, 1)").values("p", "share of the weights that is dropped").tried({"0.5", "0.1", "0.95"}).cut(dropout_features()).only(kScores),
    past().grown([](const Call& p) { return p.past_lengths.empty() ? 0 : 3; }).values("n or n,...", "cached keys, at most Lk, of all batches or of each").tried({"1", "7", "64"}).cut(past_features()).also_cut(past_per_batch_features()).up_to(Axis::keys).often(9).files(InFiles::unsaid).only(kScores),
    integer_option("paged", &Call::page_size, 1, "a page size").grown([](const Call& p) { return p.packed_sequences() ? 3 : 0; }).values("n", "rows of a page of cached keys").tried({"1", "16", "64"}).often(9).only(kScores),
    flag_option("dynamic", &Call::dynamic).version(9).values("", "lengths and page table are data, which change between the runs of a plan").often(8).cut(dynamic_features()).only(kScores),
    flag_option("latent", &Call::latent).version(9).values("", "values are the first Dv columns of the keys").often(8).cut(latent_features()).only(kScores),
    name_option("latent.parts", &Call::latent_apart, Names2{"joined", "apart"}, "place of the parts of latent keys").version(9).values("joined|apart", "columns of q and k behind the values lie beside the others, or in tensors q_rope and k_rope").tried({"apart"}).often(2).cut(latent_parts_features()).only(kScores),
    flag_option("append", &Call::append).version(9).values("", "new keys and values are written into the cache before it is read").often(8).cut(append_features()).only(kScores),
    name_option("decay", &Call::decay_per_head, Names2{"dim", "head"}, "decay").values("dim|head", "one for each key dimension, or one for the head").tried({"head"}).only(kDecay),
    name_option("beta", &Call::beta_shared, Names2{"head", "one"}, "beta").values("head|one", "one for each key head, or one for all").tried({"one"}).only(kBeta),
    tensor_option("state", &Call::initial_state, TensorId::state).values("", "a state to start from").only(kState),
    integer_option("qk_heads", &Call::qk_heads, 1, "a count of heads").version(8).values("n", "heads of q and k, fewer than states").files(InFiles::shown).tried({"1", "2"}).often(4).cut(shared_head_features()).only(kState),
    l2norm().version(9).tried({"1e-06", "1e-05", "0.001", "1"}).often(4).cut(l2norm_features()).only(kState),
    parts().version(7).files(InFiles::shown).tried({"1", "3", "4:empty(0.3)", "8:empty(0.8)"}).often(2).cut(part_features()).only(kParts),
    name_option("base", &Call::base2, Names2{"e", "2"}, "base").version(7).values("e|2", "base of the logsumexps of a merge").tried({"2"}).often(3).only(kParts),
    tensor_option("dlse", &Call::dlse, TensorId::dlse).version(5).values("", "the loss depends on lse, too").often(3).cut(loss_features(TensorId::dlse)).only(kScores),
    tensor_option("dpresent", &Call::dpresent, TensorId::dpresent).version(6).values("", "the loss depends on the last state, too").often(3).cut(loss_features(TensorId::dpresent)).only(kState),

    out().grown([](const Call& p) { return p.wants(Output::max) || p.wants(Output::sum) ? 7 : gradients_since(p); }).tried({"o,lse", "o,lse,weights", "o,raw,capped", "o,lse,biased,weights", "o,present", "o,max,sum"}).often(2).covers(outputs_covered).cut(output_features()),
    name_option("layout", &Call::layout, kNames<Layout>, "layout").values(alternatives<Layout>(), "order of the axes in storage").tried({"blhd", "bld", "kv", "qkv", "thd"}).often(2).files(InFiles::unsaid),
    integer_option("gap", &Call::gap, 0, "a count of rows").version(2).values("N", "rows between packed sequences (layout=thd) that belong to none").tried({"1", "5"}).often(2).cut(gap_features()).files(InFiles::unsaid).only(kTokens),
  };
  const std::initializer_list<TensorId> inputs = {TensorId::q, TensorId::k, TensorId::v}, without_mask = {TensorId::q, TensorId::k, TensorId::v, TensorId::out};
  for (TensorId id : without_mask) rows.push_back(layout_of(id).tried({"blhd", "bld"}).often(12).cut(layout_features(id)).only(row_of(id).of));
  const std::initializer_list<TensorId> placed = {TensorId::q, TensorId::k, TensorId::v, TensorId::mask, TensorId::out};
  for (TensorId id : placed) rows.push_back(strides_of(id).often(9).cut(stride_features(id)).only(id == TensorId::mask ? nullptr : row_of(id).of));
  for (TensorId id : placed) rows.push_back(offset_of(id).tried({"1", "3", "7"}).often(12).cut(offset_features(id)).only(id == TensorId::mask ? nullptr : row_of(id).of));
  // Those that came later; dropout's decisions come with a file and never with a line.
  std::vector<TensorId> others;
  for (TensorId id : values_of<TensorId>()) {
    if (id != TensorId::keep && std::ranges::find(placed, id) == placed.end()) others.push_back(id);
  }
  const auto came_with_operands = [](TensorId id) { return is_scales(id) || (id >= TensorId::cos && id <= TensorId::k_rope); };
  const auto since = [&](TensorId id, int version) { return row_of(id).of == kParts ? 7 : is_of_launch(id) || came_with_operands(id) ? 9 : !is_of_gradients(id) ? version : row_of(id).of == kTokens || row_of(id).of == kScores ? 5 : 6; };
  const auto rarely = [&](TensorId id) { return id == TensorId::past_lengths || is_of_launch(id) || came_with_operands(id) ? 2 : is_of_gradients(id) ? 4 : row_of(id).of == kScores || row_of(id).of == kLse ? 16 : 3; };
  for (TensorId id : others) {
    if (has_layout(id) && !is_part(id)) rows.push_back(layout_of(id).version(since(id, 5)).tried({"blhd", "bld"}).often(4).cut(layout_features(id)).only(row_of(id).of));
  }
  for (TensorId id : others) rows.push_back(strides_of(id).version(since(id, 3)).often(rarely(id)).cut(placement_features(id, "strides")).only(row_of(id).of));
  for (TensorId id : others) rows.push_back(offset_of(id).version(since(id, 3)).tried({"1", "3"}).often(rarely(id)).cut(placement_features(id, "offset")).only(row_of(id).of));
  const auto has_type = [&](TensorId id) { return has_own_type(id) && id != TensorId::mask; };
  const auto typed = [&](TensorId id) { return type_of_tensor(id).version(since(id, 4)).tried(types_to_try(id)).often(is_of_launch(id) || came_with_operands(id) ? 2 : is_of_gradients(id) ? 4 : row_of(id).of == kState ? 6 : 24).cut(type_features(id)).also_cut(id == TensorId::k ? narrow_cache_features() : id == TensorId::k_scales ? scale_type_features() : std::vector<Feature>()).only(row_of(id).of); };
  for (TensorId id : without_mask) rows.push_back(typed(id));
  for (TensorId id : others) {
    if (has_type(id)) rows.push_back(typed(id));
  }
  const auto scaled = [&](TensorId id, std::optional<ScaleSpec> Call::*member) { return scales_of(id, member).version(9).tried({"tensor", "head", "token", "block:2", "block:32"}).often(6).cut(scale_features(id)).only(kScores); };
  rows.push_back(scaled(TensorId::q, &Call::q_scale));
  rows.push_back(scaled(TensorId::k, &Call::k_scale));
  rows.push_back(scaled(TensorId::v, &Call::v_scale));
  rows.push_back(fill().tried({"uniform", "spread(8)", "spread(88)", "spread(300)", "ties", "onehot", "constant(0.25)", "denormal", "huge", "integer", "cancel", "mixed", "infinite(0.02)", "largest(0.1)"}).often(2).cut(fill_features()));
  for (TensorId id : inputs) rows.push_back(fill_of(id).cut(own_fill_features(id)).only(kTokens));
  rows.push_back(fill_of(TensorId::dout).version(5).cut(own_fill_features(TensorId::dout)).only(kTokens));
  rows.push_back(fill_of_input("decay.fill", &TestData::decay_fill).only(kDecay));
  rows.push_back(fill_of_input("beta.fill", &TestData::beta_fill).only(kBeta));
  rows.push_back(fill_of_input("state.fill", &TestData::state_fill).cut(state_fill_features()).only(kState));
  rows.push_back(poison());
  rows.push_back(seed().cut(seed_features()));
  for (Option& row : rows) {
    if (row.features.empty()) row.features = features_by_kind(row);
    row.features.insert(row.features.end(), row.more_features.begin(), row.more_features.end());
  }
  return rows;
}
// clang-format on

}  // namespace

std::span<const Option> options() {
  static const std::vector<Option> table = make_table();
  return table;
}

const Option* find_option(std::string_view key) {
  const std::span<const Option> table = options();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Option& option) { return option.key == key; });
  return found == table.end() ? nullptr : &*found;
}

std::vector<const Option*> set_options(const ProblemView& view) {
  std::vector<const Option*> list;
  for (const Option& option : options()) {
    if (option.is_set(view)) list.push_back(&option);
  }
  return list;
}

std::string token_of(const Option& option, const ProblemView& view) {
  const std::optional<std::string> value = option.print(view);
  if (!value) return "";
  return value->empty() ? option.key : option.key + "=" + *value;
}

}  // namespace attest
