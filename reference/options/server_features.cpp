#include "reference/options/server_features.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/options/case_line.h"
#include "reference/options/feature.h"
#include "reference/options/option_features.h"

namespace attest {
namespace {

using Number = std::optional<std::int64_t>;

constexpr std::array<std::int64_t, 4> kSelectCuts = {1, 2, 4, 16};    // numbers of a list of keys
constexpr std::array<std::int64_t, 3> kSelectBlockCuts = {1, 2, 16};  // keys of each

}  // namespace

void give_launch(Call& p) {
  p.set_pass(Pass::forward);
  p.past = 0;
  p.past_lengths.clear();
}

void give_select(Problem& problem) {
  Call& p = problem.call;
  p.set_pass(Pass::forward);
  if (p.select) return;
  p.select = SelectSpec{4, 1, false};
  problem.data.select_fill = Fill{"distinct", {}};
}

void give_append(Call& p) {
  give_launch(p);
  p.append = true;
  if (p.layout == Layout::qkv) p.layout = Layout::bhld;
  if (p.packed_sequences() && !p.page_size) p.page_size = 4;
  std::erase(p.outputs, Output::present);
  if (p.outputs.empty()) p.outputs = {Output::o};
  p.key_length = std::max(p.key_length, p.query_length);  // fit_to_sizes fits lengths to it
}

void give_scales(Call& p, TensorId stored, const ScaleSpec& spec) {
  p.op = Op::attention;
  p.set_pass(Pass::forward);
  p.append = false;
  p.rope = Rope::none;
  p.rope_dims = p.rope_positions = 0;
  p.rotated_cache = p.norm_after_rope = false;
  p.norm.reset();
  std::erase(p.outputs, Output::present);
  if (p.outputs.empty()) p.outputs = {Output::o};
  if (stored == TensorId::v) p.latent = false;
  const bool by_rows = spec.share == ScaleShare::token || spec.share == ScaleShare::block;
  if (by_rows && p.packed_sequences()) {
    if (stored == TensorId::q)
      p.layout = Layout::bhld;
    else if (!p.page_size)
      p.page_size = 16;
  }
  const DType type = is_wide(type_of(p, stored)) ? DType::e4m3 : type_of(p, stored);
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v}) {
    // What is packed into one tensor has one type.
    const bool beside =
        p.layout == Layout::qkv || (p.layout == Layout::kv && id != TensorId::q && stored != TensorId::q);
    if (id == stored || beside) p.tensor(id).dtype = type;
  }
  const TensorId past = stored == TensorId::k ? TensorId::past_k : TensorId::past_v;
  if (stored != TensorId::q && has_tensor(p, past) && is_wide(type_of(p, past))) p.tensor(past).dtype = type;
  (stored == TensorId::q ? p.q_scale : stored == TensorId::k ? p.k_scale : p.v_scale) = spec;
}

void give_scales_of_rows(Call& p, TensorId stored) {
  const std::optional<ScaleSpec>& spec = p.scale_of(stored);
  const bool is_packed = p.packed_sequences() && (stored == TensorId::q || !p.page_size);
  if (!spec || spec->share == ScaleShare::tensor)
    give_scales(p, stored, {is_packed ? ScaleShare::head : ScaleShare::token, 0});
}

std::vector<Feature> scale_features(TensorId stored) {
  return {named_feature(
      std::string(name_of(stored)) + ".scale", {"tensor", "head", "token", "block", "short last block"},
      [stored](const Call& p) -> std::optional<std::size_t> {
        const std::optional<ScaleSpec>& spec = p.scale_of(stored);
        if (!spec) return std::nullopt;
        const std::int64_t dim = stored == TensorId::v ? p.value_dim : p.stored_key_dim();
        const bool is_short = spec->share == ScaleShare::block && dim % spec->block != 0;
        return is_short ? 4 : static_cast<std::size_t>(spec->share);
      },
      [stored](Call& p, std::size_t which, std::uint64_t draw) {
        const std::int64_t dim = stored == TensorId::v ? p.value_dim : p.stored_key_dim();
        ScaleSpec spec{static_cast<ScaleShare>(std::min<std::size_t>(which, 3)), 0};
        if (which == 3) spec.block = draw % 2 == 0 || dim % 2 != 0 ? dim : dim / 2;
        if (which == 4) spec.block = dim > 2 ? dim - 1 : dim + 1;
        give_scales(p, stored, spec);
      })};
}

std::vector<Feature> dynamic_features() {
  return {flag_feature(
      "dynamic", [](const Call& p) { return p.dynamic; },
      [](Call& p, std::uint64_t) {
        give_launch(p);
        p.dynamic = true;
      })};
}

std::vector<Feature> append_features() {
  return {flag_feature(
      "append", [](const Call& p) { return p.append; }, [](Call& p, std::uint64_t) { give_append(p); })};
}

void give_latent(Problem& problem, bool narrow_values) {
  Call& p = problem.call;
  p.latent = true;
  p.append = false;
  problem.data.own_fill(TensorId::v).reset();
  if (problem.data.poison.ends_with('v')) problem.data.poison = "hidden:k";
  p.set_pass(Pass::forward);
  if (narrow_values)
    p.value_dim = std::min(p.key_dim, p.value_dim);
  else
    p.key_dim = std::max(p.key_dim, p.value_dim);
  if (p.layout == Layout::qkv || p.layout == Layout::kv) p.layout = Layout::bhld;
  for (const TensorId id : {TensorId::v, TensorId::past_v, TensorId::present_v}) p.tensor(id) = {};
}

void give_latent_parts(Problem& problem) {
  Call& p = problem.call;
  give_latent(problem, false);
  p.latent_apart = true;
  if (p.key_dim == p.value_dim) ++p.key_dim;
  p.past = 0;
  p.past_lengths.clear();
  p.rope = Rope::none;
  p.norm.reset();
  p.rotated_cache = p.norm_after_rope = false;
  p.rope_dims = p.rope_positions = 0;
  std::erase(p.outputs, Output::present);
  if (p.outputs.empty()) p.outputs = {Output::o};
}

std::vector<Feature> latent_features() {
  return {flag_feature(
      "latent", [](const Call& p) { return p.latent; },
      [](Problem& p, std::uint64_t draw) { give_latent(p, draw % 2 == 0); })};
}

std::vector<Feature> latent_parts_features() {
  return {flag_feature(
      "latent.parts=apart", [](const Call& p) { return p.latent_apart; },
      [](Problem& p, std::uint64_t) { give_latent_parts(p); })};
}

std::vector<Feature> select_features() {
  return {size_feature(
              "selected", kSelectCuts,
              [](const Call& p) -> Number {
                if (!p.select) return std::nullopt;
                return p.select->count;
              },
              [](Problem& p, std::int64_t n) {
                give_select(p);
                p.call.select->count = n;
              }),
          size_feature(
              "keys of a selected block", kSelectBlockCuts,
              [](const Call& p) -> Number {
                if (!p.select) return std::nullopt;
                return p.select->block;
              },
              [](Problem& p, std::int64_t n) {
                give_select(p);
                p.call.select->block = n;
              }),
          flag_feature(
              "select shared", [](const Call& p) { return p.select && p.select->shared; },
              [](Problem& p, std::uint64_t) {
                give_select(p);
                p.call.select->shared = true;
              }),
          named_feature(
              "select", {"distinct", "random", "repeated", "after"},
              [](const Problem& p) -> std::optional<std::size_t> {
                if (!p.call.select) return std::nullopt;
                const std::vector<FillName>& fills = select_fills();
                const auto found = std::ranges::find(fills, p.data.select_fill.name, &FillName::name);
                return static_cast<std::size_t>(found - fills.begin());
              },
              [](Problem& p, std::size_t which, std::uint64_t draw) {
                give_select(p);
                const FillName& fill = select_fills()[which];
                static constexpr std::array probabilities = {0.1, 0.5, 0.9};
                static constexpr std::array counts = {0.0, 1.0, 2.0};
                p.data.select_fill = {std::string(fill.name), {}};
                if (fill.arguments > 0)
                  p.data.select_fill.args = {fill.name == "after" ? counts[draw % 3] : probabilities[draw % 3]};
              })};
}

}  // namespace attest
