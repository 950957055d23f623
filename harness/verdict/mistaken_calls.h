// How a mistake changes a call and its inputs: the pieces that the table of known mistakes is made of.
#pragma once

#include <cstdint>
#include <functional>

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
/// The mask of (b, h, i, j) is read at other places.
bool read_mask_at(MistakenCall& c, const std::function<Index4(const Index4&)>& at);

}  // namespace attest
