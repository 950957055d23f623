// The features of masks, scores, outputs, storage and data; those of sizes and of who sees whom are in
// option_features.cpp.
#include <algorithm>
#include <array>
#include <utility>

#include "reference/call/tensor_place.h"
#include "reference/options/case_line.h"
#include "reference/options/operand_features.h"
#include "reference/options/option_features.h"
#include "reference/options/server_features.h"

namespace attest {
namespace {

using Index = std::optional<std::size_t>;
using Number = std::optional<std::int64_t>;

constexpr std::array<std::int64_t, 7> kBlockCuts = {1, 2, 16, 17, 64, 65, 256};  // rows and keys of a block
constexpr std::array<std::int64_t, 6> kPartCuts = {1, 2, 3, 8, 17, 64};
constexpr std::array<std::int64_t, 7> kPastCuts = {1, 2, 16, 64, 128, 256, 1024};
/// Elements from which an index no longer fits in 31 bits.
constexpr std::int64_t kFar = std::int64_t{1} << 31;

std::vector<std::string> names_of(const std::vector<FillName>& fills) {
  std::vector<std::string> names;
  for (const FillName& fill : fills) names.emplace_back(fill.name);
  return names;
}

Index place_in(const std::vector<std::string>& list, const std::string& wanted) {
  const auto found = std::find(list.begin(), list.end(), wanted);
  if (found == list.end()) return std::nullopt;
  return static_cast<std::size_t>(found - list.begin());
}

/// Usual numbers in half of the draws, in the others anything that the fill takes.
double number_of_fill(const std::string& name, std::uint64_t draw) {
  if (draw % 2 == 1) {
    const std::uint64_t own = draw / 2;
    if (name == "spread") return real_in(1, 512, own);
    if (name == "constant") return (own % 2 == 0 ? 1 : -1) * real_in(0x1p-8, 64, own / 2);
    if (name == "band") return static_cast<double>(number_in({0, 2047}, own));
    if (name == "blocks" || name == "spans" || name == "chunks") return static_cast<double>(number_in({1, 1023}, own));
    if (name == "tree") return static_cast<double>(number_in({1, 63}, own));
    return real_in(0x1p-6, 1, own);
  }
  draw /= 2;
  if (name == "spread") return std::array{8.0, 88.0, 300.0}[draw % 3];
  if (name == "constant") return 0.25;
  if (name == "band") return std::array{3.0, 20.0, 40.0}[draw % 3];
  if (name == "blocks" || name == "chunks") return std::array{2.0, 16.0}[draw % 2];
  if (name == "tree" || name == "spans") return std::array{3.0, 8.0}[draw % 2];
  return std::array{0.5, 0.3, 0.05}[draw % 3];  // probabilities
}

Fill make_fill(const FillName& fill, std::uint64_t draw) {
  const std::string name(fill.name);
  return {name, fill.arguments == 0 ? std::vector<double>{} : std::vector<double>{number_of_fill(name, draw)}};
}

/// `of` gives nullptr where there is nothing to fill.
Feature fill_feature(std::string name, const std::vector<FillName>& fills,
                     std::function<const Fill*(const Problem&)> of, std::function<void(Problem&, Fill)> set) {
  return named_feature(
      std::move(name), names_of(fills),
      [names = names_of(fills), of = std::move(of)](const Problem& p) -> Index {
        const Fill* fill = of(p);
        return fill ? place_in(names, fill->name) : std::nullopt;
      },
      [&fills, set = std::move(set)](Problem& p, std::size_t which, std::uint64_t draw) {
        set(p, make_fill(fills[which], draw));
      });
}

void give_mask(Problem& problem, bool additive) {
  Call& p = problem.call;
  if (p.mask && p.mask->additive == additive) return;
  const std::array<bool, 4> kept = p.mask ? p.mask->kept : std::array{true, true, true, true};
  p.mask = MaskSpec{additive, kept};
  problem.data.mask_fill = additive ? Fill{"neginf", {0.3}} : Fill{"random", {0.5}};
  if (!additive) p.tensor(TensorId::mask).dtype.reset();
}

void give_blocks(Problem& p) {
  if (p.call.blocks) return;
  p.call.blocks = BlockSpec{16, 16};
  p.data.block_fill = Fill{"random", {0.5}};
}

/// Lets one of the axes that have more than one place step over 2^31 or 2^32 elements in all.
void move_beyond(Index4& strides, const Index4& shape, std::uint64_t draw) {
  for (std::uint64_t turn = 0; turn < 4; ++turn) {
    const std::size_t axis = (draw + turn) % 4;
    if (shape[axis] < 2) continue;
    // Past 2^31 a signed index is too small, past 2^32 an unsigned one, too.
    const std::int64_t far = draw / 4 % 2 == 0 ? kFar : 2 * kFar;
    strides[axis] = std::max(strides[axis], far / (shape[axis] - 1) + 5);
    return;
  }
}

}  // namespace

std::vector<Feature> mask_features() {
  std::vector<std::string> axes;
  for (std::size_t n = 0; n < 16; ++n)
    axes.push_back(mask_axes_text({n / 8 == 1, n / 4 % 2 == 1, n / 2 % 2 == 1, n % 2 == 1}));
  const auto of_kind = [](bool additive) {
    return fill_feature(
        additive ? "additive mask" : "boolean mask", additive ? additive_mask_fills() : boolean_mask_fills(),
        [additive](const Problem& p) {
          return p.call.mask && p.call.mask->additive == additive ? &p.data.mask_fill : nullptr;
        },
        [additive](Problem& p, Fill fill) {
          give_mask(p, additive);
          p.data.mask_fill = std::move(fill);
        });
  };
  return {named_feature(
              "mask", {"bool", "add"},
              [](const Call& p) -> Index {
                if (!p.mask) return std::nullopt;
                return p.mask->additive ? 1 : 0;
              },
              [](Problem& p, std::size_t which, std::uint64_t) { give_mask(p, which == 1); }),
          named_feature(
              "mask axes", axes,
              [](const Call& p) -> Index {
                if (!p.mask) return std::nullopt;
                const auto& kept = p.mask->kept;
                return (kept[0] ? 8u : 0u) + (kept[1] ? 4u : 0u) + (kept[2] ? 2u : 0u) + (kept[3] ? 1u : 0u);
              },
              [](Problem& p, std::size_t which, std::uint64_t draw) {
                if (!p.call.mask) give_mask(p, draw % 2 == 1);
                p.call.mask->kept = {which / 8 == 1, which / 4 % 2 == 1, which / 2 % 2 == 1, which % 2 == 1};
                p.call.tensor(TensorId::mask).strides.reset();
              }),
          of_kind(false), of_kind(true)};
}

std::vector<Feature> mask_type_features() {
  return {named_feature(
      "mask.dtype", {kWideNames.begin(), kWideNames.end()},
      [](const Call& p) -> Index {
        if (!p.mask || !p.mask->additive) return std::nullopt;
        return static_cast<std::size_t>(type_of(p, TensorId::mask));
      },
      [](Problem& p, std::size_t which, std::uint64_t) {
        give_mask(p, true);
        p.call.tensor(TensorId::mask).dtype = static_cast<DType>(which);
      })};
}

std::vector<Feature> block_features() {
  const auto side = [](std::string name, std::int64_t BlockSpec::*member) {
    return size_feature(
        std::move(name), kBlockCuts,
        [member](const Call& p) -> Number {
          if (!p.blocks) return std::nullopt;
          return (*p.blocks).*member;
        },
        [member](Problem& p, std::int64_t n) {
          give_blocks(p);
          (*p.call.blocks).*member = n;
        });
  };
  return {side("rows of a block", &BlockSpec::rows), side("keys of a block", &BlockSpec::columns),
          fill_feature(
              "blocks", block_fills(), [](const Problem& p) { return p.call.blocks ? &p.data.block_fill : nullptr; },
              [](Problem& p, Fill fill) {
                give_blocks(p);
                p.data.block_fill = std::move(fill);
              })};
}

std::vector<Feature> softcap_features() {
  static constexpr std::array values = {0.5, 1.5, 20.0, 1000.0};
  return {named_feature(
      "softcap", {"below 1", "1 to 10", "10 to 100", "above 100"},
      [](const Call& p) -> Index {
        if (!p.softcap) return std::nullopt;
        return *p.softcap < 1 ? 0 : *p.softcap < 10 ? 1 : *p.softcap < 100 ? 2 : 3;
      },
      [](Call& p, std::size_t which, std::uint64_t draw) {
        static constexpr std::array firsts = {0x1p-6, 1.0, 10.0, 100.0, 0x1p20};
        p.softcap = draw % 2 == 0 ? values[which] : real_in(firsts[which], firsts[which + 1], draw / 2);
      })};
}

std::vector<Feature> dropout_features() {
  static constexpr std::array values = {0.1, 0.5, 0.95};
  return {named_feature(
      "dropout", {"rare", "half", "nearly all"},
      [](const Call& p) -> Index {
        if (p.dropout == 0) return std::nullopt;
        return p.dropout < 0.25 ? 0 : p.dropout < 0.75 ? 1 : 2;
      },
      [](Call& p, std::size_t which, std::uint64_t draw) {
        static constexpr std::array firsts = {0x1p-8, 0.25, 0.75, 1.0};
        p.dropout = draw % 2 == 0 ? values[which] : real_in(firsts[which], firsts[which + 1], draw / 2);
      })};
}

std::vector<Feature> past_features() {
  return {size_feature(
              "past", kPastCuts,
              [](const Call& p) -> Number {
                if (p.past == 0) return std::nullopt;
                return p.past;
              },
              [](Call& p, std::int64_t n) {
                p.past = n;
                p.past_lengths.clear();
              }),
          flag_feature(
              "past of all keys", [](const Call& p) { return p.past > 0 && p.past == p.key_length; },
              [](Call& p, std::uint64_t) {
                p.past = p.key_length;
                p.past_lengths.clear();
              })};
}

std::vector<Feature> part_features() {
  return {size_feature(
              "parts", kPartCuts,
              [](const Call& p) -> Number {
                if (!p.has_parts()) return std::nullopt;
                return p.parts;
              },
              [](Call& p, std::int64_t n) { p.parts = n; }),
          named_feature(
              "empty parts", {"some", "most"},
              [](const Problem& p) -> Index {
                if (p.data.empty_parts == 0) return std::nullopt;
                return p.data.empty_parts < 0.5 ? 0 : 1;
              },
              [](Problem& p, std::size_t which, std::uint64_t draw) {
                p.data.empty_parts = which == 0 ? real_in(0x1p-4, 0.5, draw) : real_in(0.5, 1, draw);
              })};
}

std::vector<Feature> causal_prefix_features() {
  return {flag_feature(
      "prefix=causal", [](const Call& p) { return p.prefix_causal; },
      [](Call& p, std::uint64_t) {
        p.causal = p.prefix_causal = true;
        p.prefix = std::max<std::int64_t>(p.prefix, 1);
      })};
}

std::vector<Feature> shared_head_features() {
  return {named_feature(
      "qk_heads", {"one", "some", "all"},
      [](const Problem& p) -> Index {
        if (p.call.qk_heads == 0) return std::nullopt;
        return p.call.qk_heads == p.call.key_heads ? 2 : p.call.qk_heads == 1 ? 0 : 1;
      },
      [](Problem& p, std::size_t which, std::uint64_t draw) {
        Call& c = p.call;
        const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(c.key_heads, 1));
        c.qk_heads = which == 2   ? static_cast<std::int64_t>(most)
                     : which == 0 ? 1
                                  : 2 + static_cast<std::int64_t>(draw % 3);
        if (which < 2 && c.key_heads < 2 * c.qk_heads) c.key_heads = 2 * c.qk_heads;
        c.query_heads = c.key_heads;
      })};
}

std::vector<Feature> gap_features() {
  return {flag_feature(
      "gap", [](const Call& p) { return p.gap > 0 && p.batch > 1; },
      [](Call& p, std::uint64_t draw) {
        p.layout = Layout::thd;
        p.gap = 1 + static_cast<std::int64_t>(draw % 9);
        if (!p.lengths) p.lengths.emplace();
        if (p.lengths->key.empty()) p.lengths->key.assign(static_cast<std::size_t>(p.batch), p.key_length);
      })};
}

std::vector<Feature> slopes_per_batch_features() {
  return {flag_feature(
      "alibi per batch", [](const Call& p) { return p.slopes_per_batch(); },
      [](Call& p, std::uint64_t draw) {
        p.alibi = true;
        p.alibi_slopes.clear();
        p.batch = std::max<std::int64_t>(p.batch, 2);
        for (std::int64_t n = 0; n < p.batch * p.query_heads; ++n) {
          const std::uint64_t own = draw + static_cast<std::uint64_t>(n) * 0x9e3779b97f4a7c15u;
          p.alibi_slopes.push_back(real_in(0x1p-10, 16, own >> 8));
        }
      })};
}

namespace {

/// Different counts of cached keys, the last of them 1 or more.
void give_past_per_batch(Call& p, std::uint64_t draw) {
  p.batch = std::max<std::int64_t>(p.batch, 2);
  p.past = std::max<std::int64_t>(p.past, 1);
  p.key_length = std::max(p.key_length, p.past);
  p.past_lengths.clear();
  for (std::int64_t b = 0; b + 1 < p.batch; ++b) {
    const std::uint64_t own = (draw + static_cast<std::uint64_t>(b)) * 0x9e3779b97f4a7c15u >> 8;
    p.past_lengths.push_back(static_cast<std::int64_t>(own % static_cast<std::uint64_t>(p.past)));
  }
  p.past_lengths.push_back(p.past);
}

}  // namespace

std::vector<Feature> past_per_batch_features() {
  return {flag_feature(
      "past per batch", [](const Call& p) { return !p.past_lengths.empty(); }, give_past_per_batch)};
}

namespace {

/// Asks for the result, of a pass that has it.
void give_output(Problem& problem, Output output) {
  Call& p = problem.call;
  const bool has = is_gradient(output) ? p.wants_gradients() : p.runs_forward();
  if (!has) p.set_pass(Pass::both);
  if (!p.wants(output)) p.outputs.push_back(output);
  std::ranges::sort(p.outputs);
  if (output == Output::dmask) give_mask(problem, true);
  if (output == Output::dsinks) p.sinks = true;
  if (output == Output::ddecay && !p.has_decay()) p.op = Op::gated;
  if (output == Output::dbeta && !p.has_beta()) p.op = Op::delta;
  if (output == Output::dstate) p.initial_state = true;
}

}  // namespace

std::vector<Feature> output_features() {
  std::vector<Feature> features;
  for (Output output : values_of<Output>()) {
    if (output == Output::o) continue;
    features.push_back(flag_feature(
        "out=" + std::string(name_of(output)), [output](const Call& p) { return p.wants(output); },
        [output](Problem& p, std::uint64_t) { give_output(p, output); }));
  }
  features.push_back(flag_feature(
      "out without o", [](const Call& p) { return !p.wants(Output::o); },
      [](Call& p, std::uint64_t) {
        const std::vector<Output> all = outputs_of(p.op);
        if (p.outputs.size() < 2 && p.wants(Output::o) && all.size() > 1) p.outputs = {all[1]};
        if (p.outputs.size() > 1) std::erase(p.outputs, Output::o);
      }));
  return features;
}

namespace {

/// Makes the call one that has the tensor.
void give_tensor(Problem& problem, TensorId tensor) {
  Call& p = problem.call;
  if (has_tensor(p, tensor)) return;
  switch (tensor) {
    case TensorId::past_k:
    case TensorId::past_v:
      p.page_size.reset();
      p.past = std::max<std::int64_t>(p.past, 1);
      break;
    case TensorId::past_lengths: give_past_per_batch(p, 1); break;
    case TensorId::page_table: p.page_size = 4; break;
    case TensorId::new_k:
    case TensorId::new_v:
    case TensorId::cache_k:
    case TensorId::cache_v: give_append(p); break;
    case TensorId::query_lengths:
    case TensorId::key_lengths:
      give_launch(p);
      p.dynamic = true;
      break;
    case TensorId::q_scales: give_scales_of_rows(p, TensorId::q); break;
    case TensorId::k_scales: give_scales_of_rows(p, TensorId::k); break;
    case TensorId::v_scales: give_scales_of_rows(p, TensorId::v); break;
    case TensorId::blocks: give_blocks(problem); break;
    case TensorId::indices: give_select(problem); break;
    case TensorId::slopes: p.alibi = true; break;
    case TensorId::sinks: p.sinks = true; break;
    case TensorId::cos:
    case TensorId::sin: give_rope(p); break;
    case TensorId::q_positions:
    case TensorId::k_positions: give_positions(p); break;
    case TensorId::q_norm:
    case TensorId::k_norm: give_norm(p); break;
    case TensorId::head_scales: p.scales = p.has_query_scales() ? Scales::both : Scales::head; break;
    case TensorId::query_scales: p.scales = p.has_head_scales() ? Scales::both : Scales::query; break;
    case TensorId::q_rope:
    case TensorId::k_rope: give_latent_parts(problem); break;
    case TensorId::state: p.initial_state = true; break;
    case TensorId::part_o:
    case TensorId::part_lse: p.op = Op::merge; break;
    case TensorId::decay: p.op = Op::gated; break;
    case TensorId::beta: p.op = Op::delta; break;
    case TensorId::saved_o:
    case TensorId::saved_lse: p.set_pass(Pass::backward); break;
    case TensorId::dout:
    case TensorId::dlse:
    case TensorId::dpresent:
      if (!p.wants_gradients()) {
        const TensorSpec& out = p.tensor(TensorId::out);
        p.set_pass(out.is_placed() || out.dtype ? Pass::both : Pass::backward);
      }
      p.dlse = p.dlse || tensor == TensorId::dlse;
      p.dpresent = p.dpresent || tensor == TensorId::dpresent;
      break;
    default:
      if (const auto output = row_of(tensor).result) give_output(problem, *output);
  }
}

}  // namespace

std::vector<Feature> pass_features() {
  return {named_feature(
      "pass", names_of<Pass>(),
      [](const Call& p) -> Index {
        if (!traits_of(p.op).tokens) return std::nullopt;
        return static_cast<std::size_t>(p.pass);
      },
      [](Call& p, std::size_t which, std::uint64_t) { p.set_pass(static_cast<Pass>(which)); })};
}

std::vector<Feature> loss_features(TensorId tensor) {
  return {flag_feature(
      std::string(name_of(tensor)), [tensor](const Call& p) { return has_tensor(p, tensor); },
      [tensor](Problem& p, std::uint64_t) { give_tensor(p, tensor); })};
}

std::vector<Feature> layout_features(TensorId tensor) {
  std::vector<std::string> names = names_of<Layout>();
  names.pop_back();  // thd packs every tensor
  return {named_feature(
      std::string(name_of(tensor)) + ".layout", names,
      [tensor](const Call& p) -> Index {
        if (!p.tensor(tensor).layout) return std::nullopt;
        return static_cast<std::size_t>(*p.tensor(tensor).layout);
      },
      [tensor](Problem& problem, std::size_t which, std::uint64_t draw) {
        give_tensor(problem, tensor);
        Call& p = problem.call;
        p.tensor(tensor).layout = static_cast<Layout>(which);
        if (p.layout == p.tensor(tensor).layout || p.packed_sequences())
          p.layout = static_cast<Layout>((which + 1 + draw % 2) % 3);
      })};
}

std::vector<Feature> stride_features(TensorId tensor) {
  std::vector<std::string> kinds = {"rows apart", "features apart", "transposed"};
  if (tensor != TensorId::out && tensor != TensorId::mask) kinds.insert(kinds.end(), {"one head", "one row"});
  kinds.emplace_back("beyond 2^31");
  const std::size_t beyond = kinds.size() - 1;
  return {named_feature(
      std::string(name_of(tensor)) + ".strides", kinds,
      [tensor, beyond](const Call& p) -> Index {
        if (!p.tensor(tensor).strides) return std::nullopt;
        const Index4 s = *p.tensor(tensor).strides, n = place_of(p, tensor).shape;
        for (std::size_t axis = 0; axis < 4; ++axis) {
          if (n[axis] > 1 && s[axis] >= kFar / (n[axis] - 1)) return beyond;
        }
        const bool is_input = tensor != TensorId::out && tensor != TensorId::mask;
        if (is_input && s[2] == 0 && n[2] > 1) return 4;
        if (is_input && s[1] == 0 && n[1] > 1) return 3;
        if (s[3] <= 1) return 0;
        return s[2] == 1 && n[2] > 1 ? 2 : 1;
      },
      [tensor, beyond](Problem& p, std::size_t which, std::uint64_t draw) {
        if (tensor == TensorId::mask && !p.call.mask) give_mask(p, draw % 2 == 0);
        p.call.tensor(tensor).strides.reset();
        const Index4 n = place_of(p, tensor).shape;
        const std::int64_t gap = n[3] + 1 + static_cast<std::int64_t>(draw % 4);
        Index4 s = {n[1] * n[2] * gap, n[2] * gap, gap, 1};
        // Rows that are dense, and a gap behind each head.
        if (which == 0 && draw / 4 % 2 == 1) s = {n[1] * (n[2] * n[3] + gap), n[2] * n[3] + gap, n[3], 1};
        if (which == beyond) move_beyond(s, n, draw);
        if (which == 1) s = {n[1] * n[2] * n[3] * 2, n[2] * n[3] * 2, n[3] * 2, 2};
        if (which == 2) s = {n[1] * n[2] * n[3], n[2] * n[3], 1, n[2]};
        if (which == 3) s[1] = 0;
        if (which == 4) s = {0, n[2] * n[3], 0, 1};
        for (std::size_t axis = 0; axis < 4; ++axis) {
          if ((which < 3 || which == beyond) && s[axis] == 0) s[axis] = 1;
          if (tensor == TensorId::mask && !p.call.mask->kept[axis]) s[axis] = 0;
        }
        p.call.tensor(tensor).strides = s;
      })};
}

namespace {

/// Rows apart, features apart, or heads apart from each other; 0 along axes that are broadcast.
Index4 drawn_strides(const Call& p, TensorId tensor, std::uint64_t draw) {
  const Index4 n = stored_shape(p, tensor);
  const std::int64_t gap = n[3] + 1 + static_cast<std::int64_t>(draw / 3 % 4);
  Index4 s = {n[1] * n[2] * gap, n[2] * gap, gap, 1};
  if (draw % 3 == 1) s = {n[1] * n[2] * n[3] * 2, n[2] * n[3] * 2, n[3] * 2, 2};
  if (draw % 3 == 2) s = {n[1] * (n[2] * n[3] + gap), n[2] * n[3] + gap, n[3], 1};
  const std::array<bool, 4> shared = broadcast_axes(p, tensor);
  for (std::size_t axis = 0; axis < 4; ++axis)
    s[axis] = shared[axis] && !is_output(tensor) ? 0 : std::max<std::int64_t>(s[axis], 1);
  return s;
}

}  // namespace

std::vector<Feature> placement_features(TensorId tensor, const std::string& what) {
  const bool strides = what == "strides";
  return {flag_feature(
      std::string(name_of(tensor)) + "." + what,
      [tensor, strides](const Call& p) {
        return strides ? p.tensor(tensor).strides.has_value() : p.tensor(tensor).offset != 0;
      },
      [tensor, strides](Problem& p, std::uint64_t draw) {
        give_tensor(p, tensor);
        if (strides)
          p.call.tensor(tensor).strides = drawn_strides(p, tensor, draw);
        else
          p.call.tensor(tensor).offset = 1 + static_cast<std::int64_t>(draw % 16);
      })};
}

std::vector<Feature> type_features(TensorId tensor) {
  return {flag_feature(
      std::string(name_of(tensor)) + ".dtype", [tensor](const Call& p) { return p.tensor(tensor).dtype.has_value(); },
      [tensor](Problem& p, std::uint64_t draw) {
        give_tensor(p, tensor);
        p.call.tensor(tensor).dtype.reset();
        // Any but its own; an input is read into the accumulator, which must hold it.
        const DType own = type_of(p, tensor);
        std::vector<DType> others;
        for (const DType type : kStorageTypes) {
          if (!is_wide(type) && !may_be_narrow(tensor)) continue;
          const bool fits = is_output(tensor) || size_of(type) <= size_of(accumulator_of(p.call.dtype));
          if (type != own && fits) others.push_back(type);
        }
        p.call.tensor(tensor).dtype = others[draw % others.size()];
        // What is packed into one tensor has one type.
        const bool of_kv = tensor == TensorId::k || tensor == TensorId::v;
        const bool packed =
            p.call.layout == Layout::qkv ? of_kv || tensor == TensorId::q : p.call.layout == Layout::kv && of_kv;
        for (const TensorId other : {TensorId::q, TensorId::k, TensorId::v}) {
          if (packed && (other != TensorId::q || p.call.layout == Layout::qkv))
            p.call.tensor(other).dtype = p.call.tensor(tensor).dtype;
        }
      })};
}

std::vector<Feature> narrow_cache_features() {
  static constexpr std::array types = {DType::e4m3, DType::e5m2, DType::i8};
  return {named_feature(
      "stored keys", {"e4m3", "e5m2", "i8"},
      [](const Call& p) -> Index {
        if (!has_tensor(p, TensorId::k)) return std::nullopt;
        const auto* const found = std::ranges::find(types, type_of(p, TensorId::k));
        if (found == types.end()) return std::nullopt;
        return static_cast<std::size_t>(found - types.begin());
      },
      [](Call& p, std::size_t which, std::uint64_t) {
        if (!p.has_scores() && !p.has_state()) p.op = Op::attention;
        // What is packed into one tensor has one type.
        if (p.layout == Layout::qkv) p.tensor(TensorId::q).dtype = types[which];
        p.append = false;
        if (p.has_scores()) std::erase(p.outputs, Output::present);
        if (p.outputs.empty()) p.outputs = default_outputs(p.pass);
        p.tensor(TensorId::k).dtype = types[which];
        p.tensor(TensorId::past_k).dtype.reset();
        if (has_tensor(p, TensorId::v)) p.tensor(TensorId::v).dtype = types[which];
        if (has_tensor(p, TensorId::past_v)) p.tensor(TensorId::past_v).dtype.reset();
      })};
}

std::vector<Feature> offset_features(TensorId tensor) {
  static constexpr std::array<std::int64_t, 5> values = {1, 2, 4, 16, kFar};
  return {named_feature(
      std::string(name_of(tensor)) + ".offset", {"odd", "2n", "4n", "16n", "beyond 2^31"},
      [tensor](const Call& p) -> Index {
        const std::int64_t offset = p.tensor(tensor).offset;
        if (offset == 0) return std::nullopt;
        if (offset >= kFar) return 4;
        return offset % 2 != 0 ? 0 : offset % 4 != 0 ? 1 : offset % 16 != 0 ? 2 : 3;
      },
      [tensor](Problem& p, std::size_t which, std::uint64_t draw) {
        if (tensor == TensorId::mask && !p.call.mask) give_mask(p, false);
        const auto times = static_cast<std::int64_t>(draw % 3 * 2 + 1);  // odd: the class stays
        p.call.tensor(tensor).offset = which == 4 ? kFar + 1 : values[which] * times;
      })};
}

std::vector<Feature> fill_features() {
  return {fill_feature(
      "fill", tensor_fills(), [](const Problem& p) { return &p.data.fill; },
      [](Problem& p, Fill fill) { p.data.fill = std::move(fill); })};
}

std::vector<Feature> own_fill_features(TensorId tensor) {
  return {flag_feature(
      std::string(name_of(tensor)) + ".fill", [=](const Problem& p) { return p.data.own_fill(tensor).has_value(); },
      [=](Problem& p, std::uint64_t draw) {
        const auto& fills = tensor_fills();
        Fill own = make_fill(fills[draw % fills.size()], draw / fills.size());
        if (own == p.data.fill) own = Fill{"constant", {0.5}};
        give_tensor(p, tensor);
        p.data.own_fill(tensor) = std::move(own);
      })};
}

std::vector<Feature> state_fill_features() {
  return {flag_feature(
      "state.fill", [](const Problem& p) { return p.data.state_fill.has_value(); },
      [](Problem& p, std::uint64_t) {
        p.call.initial_state = true;
        p.data.state_fill = Fill{"wide", {}};
      })};
}

std::vector<Feature> seed_features() {
  static constexpr std::array<std::uint64_t, 4> firsts = {1, 1u << 31, std::uint64_t{1} << 32, std::uint64_t{1} << 63};
  return {named_feature(
      "seed", {"31 bits", "32 bits", "63 bits", "64 bits"},
      [](const Problem& p) -> Index {
        if (p.data.seed == 0) return std::nullopt;
        std::size_t which = 0;
        while (which + 1 < firsts.size() && p.data.seed >= firsts[which + 1]) ++which;
        return which;
      },
      [](Problem& p, std::size_t which, std::uint64_t draw) { p.set_seed(firsts[which] + draw % 1000); })};
}

}  // namespace attest
