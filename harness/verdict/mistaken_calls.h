// How a mistake changes a call and its inputs: the pieces that the table of known mistakes is made of.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/verdict/known_mistakes.h"

namespace attest {

/// Keys and values of query head h come from key head `of(h)` of sequence `from(b)`, written anew for every query head.
bool read_key_heads(MistakenCall& c, const std::function<std::int64_t(std::int64_t)>& of,
                    const std::function<std::int64_t(std::int64_t)>& from_batch);
/// Keys alone come from the first key head.
bool read_first_keys(MistakenCall& c);
/// Key j of each head is key `of(j)`.
bool read_keys_at(MistakenCall& c, const std::function<std::int64_t(std::int64_t)>& of);
/// Keys of zeros, which count, up to a multiple of `tile`.
bool pad_keys(MistakenCall& c, std::int64_t tile);
/// Scores as `score(raw, additive, alibi)` gives them, instead of the cap and the bias of the call: `visible` pairs,
/// and those that an additive mask hides.
bool score_pairs(MistakenCall& c, const std::function<double(double, double, double)>& score);
/// A pair is visible only where `shown(b, h, i, j)` is true as well.
bool hide_pairs(MistakenCall& c,
                const std::function<bool(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& shown);
/// The same of calls with an added mask and no cap.
bool score_masked_pairs(MistakenCall& c, const std::function<double(double, double, double)>& score);
/// The mask of (b, h, i, j) is read at other places.
bool read_mask_at(MistakenCall& c, const std::function<Index4(const Index4&)>& at);
/// The mask is read at the first place of an axis.
bool read_first_mask(MistakenCall& c, std::size_t axis);
/// The block mask of the first head holds for every head.
bool read_first_blocks(MistakenCall& c);
/// Pages are taken in their order, whatever the table says.
bool read_pages_in_order(MistakenCall& c);
/// Dropout drops nothing.
bool keep_all(MistakenCall& c);

/// Whether a band hides keys.
bool has_window(const Call& p);
bool scaled_by(MistakenCall& c, double scale);
/// The causal diagonal moved by so many keys.
bool causal_by(MistakenCall& c, std::int64_t keys);
/// The operator that has everything but this.
bool drop_trait(MistakenCall& c, OperatorTrait trait);
/// A side of the window with so many keys more.
bool window_by(MistakenCall& c, std::int64_t Call::*side, std::int64_t keys);
/// Slopes of every head, or of every batch and head.
void give_slopes(MistakenCall& c, std::vector<double> slopes);
/// The slopes 2^(-8h/H).
bool give_power_slopes(MistakenCall& c);
/// The slope of h is that of `of(h, number of heads)`.
bool slopes_of(MistakenCall& c, const std::function<std::size_t(std::size_t, std::size_t)>& of);
/// The sink of h is `of(given sinks, h)`.
bool sinks_of(MistakenCall& c, const std::function<double(const std::vector<double>&, std::size_t)>& of);
/// Lengths of padded sequences.
bool change_lengths(MistakenCall& c, const std::function<void(Call&)>& change);
/// A backward pass that doesn't subtract D: the same as with a derivative by lse that is larger by D.
bool forget_delta(MistakenCall& c);
/// Whether it was there.
bool remove_input(MistakenCall& c, TensorId id);

}  // namespace attest
