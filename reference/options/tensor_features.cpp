// The features of results, and of how tensors are stored and filled.
#include <algorithm>
#include <array>
#include <utility>

#include "reference/call/tensor_place.h"
#include "reference/options/case_line.h"
#include "reference/options/fill_feature.h"
#include "reference/options/given_tensors.h"
#include "reference/options/operand_features.h"
#include "reference/options/option_features.h"
#include "reference/options/server_features.h"

namespace attest {
namespace {

using Index = std::optional<std::size_t>;

/// Elements from which an index no longer fits in 31 bits.
constexpr std::int64_t kFar = std::int64_t{1} << 31;

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
        for (const Format& format : kFormats) {
          const DType type = format.type;
          const bool fits = is_output(tensor) || size_of(type) <= size_of(accumulator_of(p.call.dtype));
          if (type != own && fits && may_have_type(tensor, type)) others.push_back(type);
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
  static constexpr std::array types = {DType::e4m3, DType::e5m2, DType::i8, DType::e2m1, DType::i4};
  return {named_feature(
      "stored keys", {"e4m3", "e5m2", "i8", "e2m1", "i4"},
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
        // Pairs of codes make even rows.
        const bool is_packed = p.layout == Layout::kv || p.layout == Layout::qkv;
        const bool fits = is_packed || !is_packed_in_pairs(types[which]) || p.value_dim % 2 == 0;
        if (has_tensor(p, TensorId::v)) p.tensor(TensorId::v).dtype = fits ? types[which] : DType::i8;
        if (has_tensor(p, TensorId::past_v)) p.tensor(TensorId::past_v).dtype.reset();
      })};
}

std::vector<Feature> scale_type_features() {
  static constexpr std::array types = {DType::f16, DType::bf16, DType::e4m3, DType::e8m0};
  return {named_feature(
      "scales of keys", {"f16", "bf16", "e4m3", "e8m0"},
      [](const Call& p) -> Index {
        if (!has_tensor(p, TensorId::k_scales)) return std::nullopt;
        const auto* const found = std::ranges::find(types, type_of(p, TensorId::k_scales));
        if (found == types.end()) return std::nullopt;
        return static_cast<std::size_t>(found - types.begin());
      },
      [](Problem& p, std::size_t which, std::uint64_t) {
        give_tensor(p, TensorId::k_scales);
        p.call.tensor(TensorId::k_scales).dtype = types[which];
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
