// The features of options that change scores, weights and cached keys.
#include <algorithm>
#include <array>
#include <utility>

#include "reference/options/case_line.h"
#include "reference/options/fill_feature.h"
#include "reference/options/given_tensors.h"
#include "reference/options/option_features.h"

namespace attest {
namespace {

using Index = std::optional<std::size_t>;
using Number = std::optional<std::int64_t>;

constexpr std::array<std::int64_t, 7> kBlockCuts = {1, 2, 16, 17, 64, 65, 256};  // rows and keys of a block
constexpr std::array<std::int64_t, 6> kPartCuts = {1, 2, 3, 8, 17, 64};
constexpr std::array<std::int64_t, 7> kPastCuts = {1, 2, 16, 64, 128, 256, 1024};

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

std::vector<Feature> past_per_batch_features() {
  return {flag_feature(
      "past per batch", [](const Call& p) { return !p.past_lengths.empty(); }, give_past_per_batch)};
}

}  // namespace attest
