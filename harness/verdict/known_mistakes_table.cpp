// The table of known mistakes: what each changes of a call, its inputs or its results.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "harness/verdict/known_mistakes.h"
#include "harness/verdict/mistaken_calls.h"
#include "harness/verdict/mistaken_results.h"

namespace attest {
namespace {

std::int64_t same(std::int64_t n) { return n; }

using Rows = const std::vector<RowIndex>&;

// Of two that can't be told apart the earlier one is told first: what was asked for and left out stands before what was
// done otherwise, and what is common before what is rare.
/// A gradient times the scale to a power.
template <TensorId id, int power>
bool scale_again(const Call& p, ResultValues& values, Bounds& bounds, Bounds& own, Rows) {
  const double scale = p.scale_value();
  return scale != 0 && scale_gradients(p, values, bounds, own, {id}, std::pow(scale, power));
}

constexpr KnownMistake kMistakes[] = {
    {"scale_left_out", "the scale left out, as with scale=1", [](MistakenCall& c) { return scaled_by(c, 1); }},
    {"given_scale_ignored", "the given scale ignored: 1/sqrt(head dimension) in its place",
     [](MistakenCall& c) { return scaled_by(c, 1 / std::sqrt(static_cast<double>(c.call.key_dim))); }},
    {"scale_by_dim", "the scale 1/d, not 1/sqrt(d)",
     [](MistakenCall& c) { return scaled_by(c, 1 / static_cast<double>(c.call.key_dim)); }},
    {"scale_by_value_dim", "the scale of the values' head dimension, 1/sqrt(dv)",
     [](MistakenCall& c) { return scaled_by(c, 1 / std::sqrt(static_cast<double>(c.call.value_dim))); }},
    {"scale_twice", "the scale multiplied in twice",
     [](MistakenCall& c) { return scaled_by(c, c.call.scale_value() * c.call.scale_value()); }},
    {"scale_negated", "the scale's sign turned", [](MistakenCall& c) { return scaled_by(c, -c.call.scale_value()); }},
    {"causal_ignored", "causal ignored", [](MistakenCall& c) { return std::exchange(c.call.causal, false); }},
    {"causal_one_key_more", "the causal diagonal shifted by one: a key too many is seen",
     [](MistakenCall& c) { return causal_by(c, 1); }},
    {"causal_one_key_less", "the causal diagonal shifted by one: a row doesn't see the key on its diagonal",
     [](MistakenCall& c) { return causal_by(c, -1); }},
    {"causal_reversed", "the causal mask turned round: a row sees the keys behind its diagonal",
     [](MistakenCall& c) {
       const bool causal = std::exchange(c.call.causal, false);
       if (causal) c.call.window_left = 0;
       return causal;
     }},
    {"other_corner", "the diagonal at the other corner (top-left for bottom-right, or the reverse)",
     [](MistakenCall& c) {
       c.call.align = c.call.align == Align::top_left ? Align::bottom_right : Align::top_left;
       return c.call.uses_diagonal() && c.call.past == 0;
     }},
    {"corner_of_full_lengths", "the bottom-right corner of the full tensors, not of the sequence's lengths",
     [](MistakenCall& c) {
       Call& p = c.call;
       const std::int64_t offset = p.key_length - p.query_length;
       if (!p.lengths || p.align != Align::bottom_right || p.segments || p.past > 0 || offset < 0) return false;
       p.past = offset;
       if (offset == 0) p.align = Align::top_left;
       return true;
     }},
    {"past_without_offset", "cached keys that don't move the diagonal",
     [](MistakenCall& c) {
       const bool ragged = !c.call.past_lengths.empty();
       return !ragged && std::exchange(c.call.past, 0) > 0 && c.call.uses_diagonal();
     }},
    {"largest_past_for_all", "the longest sequence's cached keys move the diagonal of all",
     [](MistakenCall& c) {
       const bool ragged = c.call.page_size && !c.call.past_lengths.empty();
       if (ragged) c.call.past_lengths.clear();
       return ragged && c.call.uses_diagonal();
     }},
    {"window_ignored", "the window ignored",
     [](MistakenCall& c) {
       const bool given = has_window(c.call);
       c.call.window_left = c.call.window_right = Call::kUnbounded;
       return given;
     }},
    {"window_left_one_less", "a window that is one key narrower on the left",
     [](MistakenCall& c) { return window_by(c, &Call::window_left, -1); }},
    {"window_left_one_more", "a window that is one key wider on the left",
     [](MistakenCall& c) { return window_by(c, &Call::window_left, 1); }},
    {"window_right_one_less", "a window that is one key narrower on the right",
     [](MistakenCall& c) { return window_by(c, &Call::window_right, -1); }},
    {"window_right_one_more", "a window that is one key wider on the right",
     [](MistakenCall& c) { return window_by(c, &Call::window_right, 1); }},
    {"window_left_ignored", "the left side of the window ignored",
     [](MistakenCall& c) {
       return std::exchange(c.call.window_left, Call::kUnbounded) != Call::kUnbounded &&
              c.call.window_right != Call::kUnbounded;
     }},
    {"window_right_ignored", "the right side of the window ignored",
     [](MistakenCall& c) {
       return std::exchange(c.call.window_right, Call::kUnbounded) != Call::kUnbounded &&
              c.call.window_left != Call::kUnbounded;
     }},
    {"window_sides_swapped", "left and right of the window swapped",
     [](MistakenCall& c) {
       std::swap(c.call.window_left, c.call.window_right);
       return c.call.window_left != c.call.window_right;
     }},
    {"prefix_ignored", "the prefix ignored", [](MistakenCall& c) { return std::exchange(c.call.prefix, 0) > 0; }},
    {"prefix_one_less", "a prefix that is one key shorter", [](MistakenCall& c) { return c.call.prefix-- > 0; }},
    {"prefix_one_more", "a prefix that is one key longer", [](MistakenCall& c) { return c.call.prefix++ > 0; }},
    {"heads_interleaved", "query head h reading key head h mod Hkv, not h div (Hq/Hkv)",
     [](MistakenCall& c) {
       const std::int64_t heads = c.call.key_heads;
       return heads > 0 && read_key_heads(
                               c, [&](std::int64_t h) { return h % heads; }, same);
     }},
    {"first_key_head", "every query head reading the first key head",
     [](MistakenCall& c) {
       return c.call.key_heads > 0 && read_key_heads(
                                          c, [](std::int64_t) { return std::int64_t{0}; }, same);
     }},
    {"first_key_head_of_keys", "every query head reading the keys of the first key head, and the values of its own",
     [](MistakenCall& c) { return read_first_keys(c); }},
    {"key_heads_reversed", "key heads in reverse order",
     [](MistakenCall& c) {
       const std::int64_t heads = c.call.key_heads, group = c.call.heads_per_group();
       return heads > 0 && read_key_heads(
                               c, [&](std::int64_t h) { return heads - 1 - h / group; }, same);
     }},
    {"first_sequence", "every sequence of the batch reading the first one's keys and values",
     [](MistakenCall& c) {
       const std::int64_t group = c.call.heads_per_group();
       return read_key_heads(
           c, [&](std::int64_t h) { return h / group; }, [](std::int64_t) { return std::int64_t{0}; });
     }},
    {"softcap_ignored", "the softcap left out",
     [](MistakenCall& c) { return std::exchange(c.call.softcap, std::nullopt).has_value(); }},
    {"softcap_after_bias", "the softcap taken after the mask and not before",
     [](MistakenCall& c) {
       if (!c.call.softcap || (!c.inputs.slopes() && !(c.inputs.mask() && is_additive(*c.inputs.mask())))) return false;
       const double cap = *c.call.softcap;
       return score_pairs(c, [cap](double raw, double additive, double alibi) {
         return cap * std::tanh((raw + additive + alibi) / cap);
       });
     }},
    {"softcap_without_division", "a softcap that multiplies tanh(score), the score not divided by the cap",
     [](MistakenCall& c) {
       if (!c.call.softcap) return false;
       const double cap = *c.call.softcap;
       return score_pairs(
           c, [cap](double raw, double additive, double alibi) { return cap * std::tanh(raw) + additive + alibi; });
     }},
    {"softcap_on_other_side", "the softcap on the other side of the scale",
     [](MistakenCall& c) {
       c.call.unscaled_cap = !c.call.unscaled_cap;
       return c.call.softcap && c.call.has_scores();
     }},
    {"rope_ignored", "rope left out",
     [](MistakenCall& c) {
       c.call.norm_after_rope = false;
       return std::exchange(c.call.rope, Rope::none) != Rope::none;
     }},
    {"rope_of_other_pairs", "rope of pairs side by side for pairs half a row apart, or the reverse",
     [](MistakenCall& c) {
       if (c.call.rope == Rope::none) return false;
       c.call.rope = c.call.rope == Rope::halves ? Rope::interleaved : Rope::halves;
       return true;
     }},
    {"norm_ignored", "the norm left out",
     [](MistakenCall& c) {
       const bool had = c.call.norm.has_value();
       c.call.norm.reset();
       return had;
     }},
    {"norm_on_other_side", "the norm on the other side of rope",
     [](MistakenCall& c) {
       c.call.norm_after_rope = !c.call.norm_after_rope;
       return c.call.norm && c.call.rope != Rope::none;
     }},
    {"mask_ignored", "the mask ignored",
     [](MistakenCall& c) {
       c.call.mask.reset();
       return remove_input(c, TensorId::mask);
     }},
    {"mask_inverted", "the boolean mask turned round: true hides",
     [](MistakenCall& c) {
       if (!c.inputs.mask() || is_additive(*c.inputs.mask()) || !read_mask_at(c, [](const Index4& x) { return x; })) {
         if (c.visible.empty()) return false;
       }
       for (std::uint8_t& byte : c.visible) byte = byte == 0;
       return true;
     }},
    {"mask_before_scale", "the additive mask added before the scale, and scaled with the score",
     [](MistakenCall& c) {
       const double scale = c.call.scale_value();
       return score_masked_pairs(c, [scale](double raw, double additive, double alibi) {
         return raw + (additive == -kInfinity ? additive : scale * additive) + alibi;
       });
     }},
    {"mask_added_twice", "the additive mask added twice",
     [](MistakenCall& c) {
       return score_masked_pairs(c,
                                 [](double raw, double additive, double alibi) { return raw + 2 * additive + alibi; });
     }},
    {"mask_negated", "the additive mask subtracted",
     [](MistakenCall& c) {
       return score_masked_pairs(c, [](double raw, double additive, double alibi) {
         return additive == -kInfinity ? additive : raw - additive + alibi;
       });
     }},
    {"mask_of_first_head", "the mask of the first head for every head",
     [](MistakenCall& c) { return read_first_mask(c, 1); }},
    {"mask_of_first_sequence", "the mask of the first sequence for the whole batch",
     [](MistakenCall& c) { return read_first_mask(c, 0); }},
    {"mask_of_first_row", "the mask of the first query for every query",
     [](MistakenCall& c) { return read_first_mask(c, 2); }},
    {"mask_by_key_head", "the mask read by key heads",
     [](MistakenCall& c) {
       const std::int64_t group = c.call.heads_per_group();
       return read_mask_at(c, [group](const Index4& x) { return Index4{x[0], x[1] / group, x[2], x[3]}; });
     }},
    {"mask_transposed", "the mask transposed: queries and keys exchanged",
     [](MistakenCall& c) {
       return c.call.query_length == c.call.key_length && read_mask_at(c, [](const Index4& x) {
                return Index4{x[0], x[1], x[3], x[2]};
              });
     }},
    {"alibi_ignored", "ALiBi left out",
     [](MistakenCall& c) {
       c.call.alibi = false;
       c.call.alibi_slopes.clear();
       return remove_input(c, TensorId::slopes);
     }},
    {"alibi_reversed", "ALiBi slopes in reverse order of the heads",
     [](MistakenCall& c) { return slopes_of(c, [](std::size_t h, std::size_t heads) { return heads - 1 - h; }); }},
    {"alibi_of_next_head", "the ALiBi slope of the next head",
     [](MistakenCall& c) { return slopes_of(c, [](std::size_t h, std::size_t heads) { return (h + 1) % heads; }); }},
    {"alibi_of_head_before", "the ALiBi slope of the head before",
     [](MistakenCall& c) {
       return slopes_of(c, [](std::size_t h, std::size_t heads) { return (h + heads - 1) % heads; });
     }},
    {"alibi_of_first_head", "the ALiBi slope of the first head for every head",
     [](MistakenCall& c) { return slopes_of(c, [](std::size_t, std::size_t) { return std::size_t{0}; }); }},
    {"alibi_by_key_head", "ALiBi slopes read by key heads",
     [](MistakenCall& c) {
       const auto group = static_cast<std::size_t>(c.call.heads_per_group());
       return slopes_of(c, [group](std::size_t h, std::size_t) { return h / group; });
     }},
    {"alibi_of_power_of_two", "ALiBi slopes 2^(-8h/H), whatever the number of heads", give_power_slopes},
    {"alibi_negated", "ALiBi added and not subtracted",
     [](MistakenCall& c) {
       std::vector<double> slopes = list_numbers(c.inputs.slopes());
       for (double& slope : slopes) slope = -slope;
       give_slopes(c, std::move(slopes));
       return !c.slopes.empty();
     }},
    {"alibi_without_offset", "ALiBi's distances counted from the top-left corner",
     [](MistakenCall& c) {
       const bool alone = !c.call.causal && !has_window(c.call);
       if (!c.call.alibi || !alone || c.call.segments || !c.call.past_lengths.empty()) return false;
       const bool moved = c.call.past > 0 || c.call.align == Align::bottom_right;
       c.call.align = Align::top_left;
       c.call.past = 0;
       return moved;
     }},
    {"sinks_ignored", "the sinks ignored",
     [](MistakenCall& c) {
       c.call.sinks = false;
       c.call.sink_values.clear();
       return remove_input(c, TensorId::sinks);
     }},
    {"sink_of_first_head", "the sink of the first head for every head",
     [](MistakenCall& c) { return sinks_of(c, [](const auto& given, std::size_t) { return given[0]; }); }},
    {"sinks_reversed", "sinks in reverse order of the heads",
     [](MistakenCall& c) {
       return sinks_of(c, [](const auto& given, std::size_t h) { return given[given.size() - 1 - h]; });
     }},
    {"sink_by_key_head", "sinks read by key heads",
     [](MistakenCall& c) {
       const auto group = static_cast<std::size_t>(c.call.heads_per_group());
       return sinks_of(c, [group](const auto& given, std::size_t h) { return given[h / group]; });
     }},
    {"sink_capped", "a sink that passes through the softcap",
     [](MistakenCall& c) {
       if (!c.call.softcap) return false;
       const double cap = *c.call.softcap;
       return sinks_of(c, [cap](const auto& given, std::size_t h) { return cap * std::tanh(given[h] / cap); });
     }},
    {"key_lengths_ignored", "keys past the sequence's length seen",
     [](MistakenCall& c) {
       return change_lengths(c, [](Call& p) { std::ranges::fill(p.lengths->key, p.key_length); });
     }},
    {"lengths_ignored", "the sequences' lengths ignored",
     [](MistakenCall& c) {
       // Without lengths of queries these are the keys' alone.
       return change_lengths(c, [](Call& p) {
         if (!p.lengths->query.empty()) p.lengths.reset();
       });
     }},
    {"query_lengths_ignored", "rows past the sequence's length attending like any other",
     [](MistakenCall& c) {
       Call& p = c.call;
       if (!p.lengths || p.packed_sequences() || p.lengths->query.empty()) return false;
       p.lengths->query.clear();
       return true;
     }},
    {"lengths_of_first_sequence", "the first sequence's lengths for the whole batch",
     [](MistakenCall& c) {
       return change_lengths(c, [](Call& p) {
         for (auto* list : {&p.lengths->key, &p.lengths->query})
           std::ranges::fill(*list, list->empty() ? 0 : list->front());
       });
     }},
    {"segments_ignored", "documents that see each other",
     [](MistakenCall& c) { return std::exchange(c.call.segments, std::nullopt).has_value(); }},
    {"blocks_ignored", "the block mask ignored",
     [](MistakenCall& c) {
       c.call.blocks.reset();
       return remove_input(c, TensorId::blocks);
     }},
    {"blocks_of_first_head", "the first head's block mask for every head", read_first_blocks},
    {"dropout_ignored", "dropout ignored",
     [](MistakenCall& c) {
       const bool drawn = std::exchange(c.call.dropout, 0) > 0;
       return remove_input(c, TensorId::keep) || drawn;
     }},
    {"dropout_not_scaled", "kept weights not divided by 1 - p under dropout", nullptr,
     [](const Call& p, ResultValues& v, Bounds& b, Bounds& own, Rows) {
       return p.dropout > 0 && scale_out(v, b, own, 1 - p.dropout);
     }},
    {"dropout_scaled_alone", "weights divided by 1 - p under dropout, none dropped", keep_all},
    {"dropout_of_next_seed", "dropout drawn with the seed plus one",
     [](MistakenCall& c) {
       ++c.call.dropout_seed;
       return c.call.dropout > 0 && !c.inputs.keep();
     }},
    {"pages_in_order", "the page table ignored: pages taken in their order", read_pages_in_order},
    {"last_key_unseen", "the last key never seen",
     [](MistakenCall& c) {
       const Call& p = c.call;
       return hide_pairs(
           c, [&p](std::int64_t b, std::int64_t, std::int64_t, std::int64_t j) { return j + 1 != p.key_count(b); });
     }},
    {"first_key_unseen", "the first key never seen",
     [](MistakenCall& c) {
       return hide_pairs(c, [](std::int64_t, std::int64_t, std::int64_t, std::int64_t j) { return j != 0; });
     }},
    {"keys_padded_to_16", "keys of zeros up to a multiple of 16, which count",
     [](MistakenCall& c) { return pad_keys(c, 16); }},
    {"keys_padded_to_32", "keys of zeros up to a multiple of 32, which count",
     [](MistakenCall& c) { return pad_keys(c, 32); }},
    {"keys_padded_to_64", "keys of zeros up to a multiple of 64, which count",
     [](MistakenCall& c) { return pad_keys(c, 64); }},
    {"keys_padded_to_128", "keys of zeros up to a multiple of 128, which count",
     [](MistakenCall& c) { return pad_keys(c, 128); }},
    {"keys_reversed", "keys and values in reverse order",
     [](MistakenCall& c) {
       const std::int64_t last = c.call.key_length - 1;
       return !c.call.lengths && read_keys_at(c, [last](std::int64_t j) { return last - j; });
     }},
    {"keys_and_values_swapped", "keys and values exchanged",
     [](MistakenCall& c) {
       std::swap(c.inputs.change(TensorId::k), c.inputs.change(TensorId::v));
       std::swap(c.inputs.change(TensorId::past_k), c.inputs.change(TensorId::past_v));
       return c.call.key_dim == c.call.value_dim && !c.call.wants(Output::present);
     }},
    {"queries_and_keys_swapped", "queries and keys exchanged",
     [](MistakenCall& c) {
       const Call& p = c.call;
       std::swap(c.inputs.change(TensorId::q), c.inputs.change(TensorId::k));
       return p.has_scores() && p.query_length == p.key_length && p.query_heads == p.key_heads && p.past == 0 &&
              !p.page_size && !p.wants(Output::present) && !p.lengths && !p.packed_sequences();
     }},
    {"base_2_of_scores", "exp2 of scores that were not multiplied by log2(e)",
     [](MistakenCall& c) {
       const std::optional<double> cap = c.call.softcap;
       if (c.inputs.sinks()) return false;
       return score_pairs(c, [cap](double raw, double additive, double alibi) {
         const double capped = cap ? *cap * std::tanh(raw / *cap) : raw;
         return std::numbers::ln2 * (capped + additive + alibi);
       });
     }},
    {"base_of_parts", "logsumexps of the parts in base 2 taken for natural ones, or the other way round",
     [](MistakenCall& c) {
       c.call.base2 = !c.call.base2;
       return c.call.has_parts();
     }},
    {"mean_of_values", "equal weights: the mean of the visible values",
     [](MistakenCall& c) {
       return !c.inputs.slopes() && !c.inputs.sinks() && !(c.inputs.mask() && is_additive(*c.inputs.mask())) &&
              scaled_by(c, 0);
     }},
    {"lse_in_base_2", "lse in base 2", nullptr,
     [](const Call& p, ResultValues& v, Bounds& b, Bounds& own, Rows) {
       return p.wants(Output::lse) && scale_list(v.of(TensorId::lse), std::numbers::log2e) &&
              scale_list(b.of(TensorId::lse), 2) && scale_list(own.of(TensorId::lse), 2);
     }},
    {"lse_of_empty_row_inf", "lse +inf of rows that see nothing", nullptr,
     [](const Call& p, ResultValues& v, Bounds&, Bounds&, Rows) { return lse_of_empty_rows(p, v, kInfinity); }},
    {"lse_of_empty_row_zero", "lse 0 of rows that see nothing", nullptr,
     [](const Call& p, ResultValues& v, Bounds&, Bounds&, Rows) { return lse_of_empty_rows(p, v, 0); }},
    {"rows_transposed", "rows of the output with heads and positions exchanged", nullptr, transpose_rows},
    {"zeros", "zeros: nothing was computed, or it was written elsewhere", nullptr,
     [](const Call& p, ResultValues& v, Bounds& b, Bounds& own, Rows) {
       std::ranges::fill(b.of(TensorId::out), 0.0);
       std::ranges::fill(own.of(TensorId::out), 0.0);
       return p.wants(Output::o) && scale_list(v.of(TensorId::out), 0);
     }},
    {"decay_ignored", "linear attention without its decay",
     [](MistakenCall& c) {
       c.call.decay_per_head = false;
       return drop_trait(c, &OperatorTraits::decay);
     }},
    {"delta_ignored", "linear attention that adds where it should overwrite",
     [](MistakenCall& c) {
       c.call.beta_shared = false;
       return drop_trait(c, &OperatorTraits::beta);
     }},
    {"state_ignored", "linear attention that starts from zeros",
     [](MistakenCall& c) {
       c.inputs.remove(TensorId::state);
       return std::exchange(c.call.initial_state, false);
     }},
    {"l2norm_ignored", "rows of q and k not divided by their lengths",
     [](MistakenCall& c) {
       const bool had = c.call.l2norm.has_value();
       c.call.l2norm.reset();
       return had;
     }},
    {"l2norm_without_eps", "lengths of rows of q and k without eps",
     [](MistakenCall& c) { return c.call.l2norm && std::exchange(c.call.l2norm, 1e-300) != 1e-300; }},
    {"dlse_ignored", "the derivative by lse ignored",
     [](MistakenCall& c) {
       c.inputs.remove(TensorId::dlse);
       return std::exchange(c.call.dlse, false);
     },
     nullptr, true},
    {"dpresent_ignored", "the derivative by the last state ignored",
     [](MistakenCall& c) {
       c.inputs.remove(TensorId::dpresent);
       return std::exchange(c.call.dpresent, false);
     },
     nullptr, true},
    {"delta_forgotten", "D, the sum of do * o, not subtracted from dP", forget_delta, nullptr, true},
    {"dk_scaled_twice", "dk multiplied by the scale twice", nullptr, scale_again<TensorId::dk, 1>, true},
    {"dk_not_scaled", "dk not multiplied by the scale", nullptr, scale_again<TensorId::dk, -1>, true},
    {"dq_scaled_twice", "dq multiplied by the scale twice", nullptr, scale_again<TensorId::dq, 1>, true},
    {"dq_not_scaled", "dq not multiplied by the scale", nullptr, scale_again<TensorId::dq, -1>, true},
    {"gradients_averaged_over_group", "means of dk and dv over the query heads of a group, not sums", nullptr,
     [](const Call& p, ResultValues& v, Bounds& b, Bounds& own, Rows) {
       const double share = 1 / static_cast<double>(p.heads_per_group());
       return scale_gradients(p, v, b, own, {TensorId::dk, TensorId::dv}, share);
     },
     true},
    {"dmask_averaged", "means of dmask over the batches that share a mask, not sums", nullptr,
     [](const Call& p, ResultValues& v, Bounds& b, Bounds& own, Rows) {
       const bool is_shared = p.mask && !p.mask->kept[0];
       return is_shared && scale_gradients(p, v, b, own, {TensorId::dmask}, 1 / static_cast<double>(p.batch));
     },
     true},
    {"dk_and_dv_swapped", "dk and dv exchanged", nullptr,
     [](const Call& p, ResultValues& v, Bounds& b, Bounds& own, Rows) {
       for (ResultValues* list : {&v, &b, &own}) std::swap(list->of(TensorId::dk), list->of(TensorId::dv));
       return p.key_dim == p.value_dim && p.wants(Output::dk) && p.wants(Output::dv);
     },
     true},
};

}  // namespace

std::span<const KnownMistake> known_mistakes() { return kMistakes; }

}  // namespace attest
