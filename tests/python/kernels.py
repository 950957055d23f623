"""Attention in NumPy that takes every option of a call: attest's definition in float64, as arrays say it."""

import functools

import numpy as np
import recurrence

import attest


def places(shape, *, align, past, key_lengths, query_lengths, segments):
    """Where the diagonal crosses the row of each query, B, L, 1, and where each key stands, S; then which query and
    key belong to one document, L, S, or None where there are no documents."""
    batch, _, queries, keys = shape
    if segments is None:
        of_queries = np.full(batch, queries) if query_lengths is None else np.array(query_lengths)
        of_keys = np.full(batch, keys) if key_lengths is None else np.array(key_lengths)
        offset = of_keys - of_queries if align == "bottom-right" else np.broadcast_to(past, (batch,))
        return np.arange(queries)[None, :, None] + offset[:, None, None], np.arange(keys), None
    rows, columns = (np.array(lengths, int) for lengths in segments)
    offset = columns - rows if align == "bottom-right" else np.zeros_like(rows)
    of_query = np.repeat(np.arange(len(rows)), rows)[:queries]
    of_key = np.repeat(np.arange(len(columns)), columns)[:keys]
    diagonal = np.arange(queries) - (rows.cumsum() - rows)[of_query] + offset[of_query]
    position = np.arange(keys) - (columns.cumsum() - columns)[of_key]
    return diagonal[None, :, None], position, of_query[:, None] == of_key


def visible(
    shape, diagonal, position, *, causal, window, prefix, prefix_causal, key_lengths, query_lengths, mask, blocks,
    block_size,
):  # fmt: skip
    """Which keys each query sees: B, H, L, S."""
    queries, keys = shape[2:]
    seen = np.ones((1, queries, keys), bool)
    left, right = window
    if causal:
        seen = seen & (position <= diagonal)
    if left is not None:
        seen = seen & (position >= diagonal - left)
    if right is not None:
        seen = seen & (position <= diagonal + right)
    if prefix:
        first = position < prefix
        seen = seen | (first & (position <= diagonal) if prefix_causal else first)
    if key_lengths is not None:
        seen = seen & (np.arange(keys) < np.array(key_lengths)[:, None, None])
    if query_lengths is not None:
        seen = seen & (np.arange(queries)[:, None] < np.array(query_lengths)[:, None, None])
    seen = seen[:, None]
    if blocks is not None:
        rows, columns = block_size
        seen = seen & blocks[:, :, np.arange(queries) // rows][..., np.arange(keys) // columns]
    return np.broadcast_to(seen if mask is None else seen & mask[..., :keys], shape)


def weighted_sum(weights, v, seen):
    """Values by weight, in which those of hidden keys have no part, NaN or infinite or not."""
    finite = np.isfinite(v)
    o = weights @ np.where(finite, v, 0)
    if finite.all():
        return o
    # Weights are products with hidden values, too: those that are no numbers are counted apart, by visible keys.
    weighed, weightless = ((seen & some).astype(np.float64) for some in (weights > 0, ~(weights > 0)))
    for infinity in (np.inf, -np.inf):  # both of them make NaN
        o = o + np.where(weighed @ (v == infinity) > 0, infinity, 0)
    nan = (weighed + weightless) @ np.isnan(v) + weightless @ np.isinf(v) > 0  # 0 times infinity, too
    return np.where(nan, np.nan, o)


def dense_attention(
    q, k, v, *, scale, causal, align, window, prefix, prefix_causal, key_lengths, query_lengths, segments, mask, bias,
    blocks, block_size, softcap, alibi_slopes, sinks, dropout, keep, past,
):  # fmt: skip
    """All results by name, in float64. Keys and values stand in one row, cached ones first."""
    group = q.shape[1] // max(k.shape[1], 1)
    q, k, v = q.astype(np.float64), *(t.astype(np.float64).repeat(group, 1) for t in (k, v))
    shape = (*q.shape[:3], k.shape[2])
    diagonal, position, together = places(
        shape, align=align, past=past, key_lengths=key_lengths, query_lengths=query_lengths, segments=segments
    )
    seen = visible(
        shape, diagonal, position, causal=causal, window=window, prefix=prefix, prefix_causal=prefix_causal,
        key_lengths=key_lengths, query_lengths=query_lengths, mask=mask, blocks=blocks, block_size=block_size,
    )  # fmt: skip
    if together is not None:
        seen = seen & together
    raw = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    capped = raw if softcap is None else softcap * np.tanh(raw / softcap)
    biased = capped
    if bias is not None:
        biased = biased + bias[..., : shape[3]].astype(np.float64)
        seen = seen & (bias[..., : shape[3]] != -np.inf)
    if alibi_slopes is not None:
        biased = biased - np.atleast_2d(alibi_slopes)[..., None, None] * np.abs(diagonal - position)[:, None]
    biased = np.where(seen, biased, -np.inf)
    sink = np.full(shape[1], -np.inf) if sinks is None else sinks
    sink = sink[None, :, None, None]
    largest = np.maximum(biased.max(-1, keepdims=True, initial=-np.inf), sink)
    top = np.where(np.isinf(largest), 0, largest)
    weights = np.exp(biased - top)
    total = weights.sum(-1, keepdims=True) + np.exp(sink - top)
    part = weights if keep is None else weights * keep[..., : shape[3]] / (1 - dropout)
    o = np.divide(weighted_sum(part, v, seen), total, out=np.zeros((*shape[:3], v.shape[3])), where=total != 0)
    weights = np.divide(weights, total, out=np.zeros(shape), where=seen)
    return {
        "o": o, "lse": top + np.log(total), "max": largest, "sum": total, "weights": weights, "raw": raw,
        "capped": capped, "biased": biased,
    }  # fmt: skip


def one_sequence(options, b, queries, keys):
    """Options of sequence b of several that lie one after another, `queries` and `keys` long."""
    one = dict(options, key_lengths=None, query_lengths=None, past=np.resize(options["past"], b + 1)[b])
    for name in ("mask", "bias", "keep"):
        if one[name] is not None:
            one[name] = one[name][b : b + 1, :, :queries, :keys]
    if one["blocks"] is not None:
        one["blocks"] = one["blocks"][b : b + 1]
    if one["alibi_slopes"] is not None and one["alibi_slopes"].ndim == 2:
        one["alibi_slopes"] = one["alibi_slopes"][b : b + 1]
    return one


def rows_of(starts, lengths, b):
    """Those of sequence b, up to the next one where no lengths come. Rows between two sequences belong to none."""
    return slice(starts[b], starts[b + 1] if lengths is None else starts[b] + lengths[b])


def packed_attention(q, k, v, query_starts, key_starts, options):
    widths = {"o": v.shape[3], "lse": 1, "max": 1, "sum": 1}
    found = {name: np.full((*q.shape[:3], width), np.nan) for name, width in widths.items()}
    for b in range(len(query_starts) - 1):
        rows = rows_of(query_starts, options["query_lengths"], b)
        mine = q[:, :, rows]
        if key_starts is None:  # of pages
            keys, values = (t[b : b + 1, :, : options["key_lengths"][b]] for t in (k, v))
        else:
            columns = rows_of(key_starts, options["key_lengths"], b)
            keys, values = k[:, :, columns], v[:, :, columns]
        piece = dense_attention(mine, keys, values, **one_sequence(options, b, mine.shape[2], keys.shape[2]))
        for name, whole in found.items():
            whole[:, :, rows] = piece[name]
    return found


def from_pages(pages, table, page_size, keys):
    """B, Hkv, keys, D from pages, Hkv, page_size, D: key j lies in row j % page_size of page table[b, j // page_size]."""
    j = np.arange(keys)
    rows = pages[table[:, j // page_size], :, j % page_size]  # B, keys, Hkv, D; an entry of -1 is behind the lengths
    return rows.swapaxes(1, 2)


def write_new(cache, new, options, table, page_size, query_starts):
    """What a call appends: row i of `new` becomes key K - n + i of a sequence of n queries and K keys."""
    queries, keys = options["query_lengths"], options["key_lengths"]
    count = len(table) if table is not None else len(cache)
    for b in range(count):
        start = 0 if query_starts is None else query_starts[b]
        if queries is not None:
            n = queries[b]
        else:
            n = new.shape[2] if query_starts is None else query_starts[b + 1] - start
        first = (cache.shape[2] if keys is None else keys[b]) - n
        for i in range(n):
            row = new[b, :, i] if query_starts is None else new[0, :, start + i]
            if table is None:
                cache[b, :, first + i] = row
            else:
                cache[table[b, (first + i) // page_size], :, (first + i) % page_size] = row


def behind_each(past, new, counts):
    """B, Hkv, P + new, D: the first counts[b] cached rows of each batch, its new ones, and zeros."""
    rows = np.zeros((*new.shape[:2], past.shape[2] + new.shape[2], new.shape[3]))
    for b, count in enumerate(counts):
        rows[b, :, :count] = past[b, :, :count]
        rows[b, :, count : count + new.shape[2]] = new[b]
    return rows


def as_numpy(word):
    """The type that a case line calls so."""
    if word == "bf16":
        import ml_dtypes  # NumPy has none

        return ml_dtypes.bfloat16
    return np.dtype(word.replace("f", "float"))


def attention(
    q, k, v, *, scale=None, causal=False, align="top-left", window=(None, None), prefix=0, prefix_causal=False,
    key_lengths=None, query_lengths=None, segments=None, mask=None, bias=None, blocks=None, block_size=None, softcap=None,
    alibi_slopes=None, sinks=None, dropout=0.0, keep=None, past=0, past_k=None, past_v=None, page_table=None,
    past_lengths=None, page_size=None, dynamic=False, new_k=None, new_v=None, query_starts=None, key_starts=None, op=None, decay=None, beta=None, state=None, outputs=("o",),
    output_types=None,
):  # fmt: skip
    """As attest defines it."""
    options = dict(
        scale=scale, causal=causal, align=align, window=window, prefix=prefix, prefix_causal=prefix_causal,
        key_lengths=key_lengths, query_lengths=query_lengths, segments=segments, mask=mask, bias=bias, blocks=blocks, block_size=block_size,
        softcap=softcap, alibi_slopes=alibi_slopes, sinks=sinks, dropout=dropout, keep=keep, past=past,
    )  # fmt: skip
    wide = np.float64 if q.dtype == np.float64 else np.float32
    if new_k is not None:
        for cache, new in (k, new_k), (v, new_v):
            write_new(cache, new, options, page_table, page_size, query_starts)
    if page_table is not None:
        k, v = (from_pages(t, page_table, page_size, max(key_lengths, default=0)) for t in (k, v))
    if past and past_k is None and page_table is None:  # without elements nothing is handed over
        past_k, past_v = np.zeros((*k.shape[:2], past, k.shape[3])), np.zeros((*v.shape[:2], past, v.shape[3]))
    if past_lengths is not None:
        options["past"] = past_lengths
    if past_lengths is not None and page_table is None:
        ends = past_lengths + k.shape[2]
        options["key_lengths"] = ends if key_lengths is None else np.minimum(ends, key_lengths)
        k, v = (behind_each(*pair, past_lengths) for pair in ((past_k, k), (past_v, v)))
    elif past_k is not None:
        k, v = (np.concatenate([past.astype(np.float64), new], 2) for past, new in ((past_k, k), (past_v, v)))
    with np.errstate(all="ignore"):
        recurrent = {"op": op, "scale": scale, "decay": decay, "beta": beta, "state": state}
        if op is not None and query_starts is not None:
            rows = [(0, rows_of(query_starts, key_lengths, b)) for b in range(len(query_starts) - 1)]
            found = recurrence.of_sequences(q, k, v, rows, **recurrent)
        elif op is not None and key_lengths is not None:
            found = recurrence.of_sequences(q, k, v, [(b, slice(n)) for b, n in enumerate(key_lengths)], **recurrent)
        elif op is not None:
            found = recurrence.attention(q, k, v, **recurrent)
        elif query_starts is not None:
            found = packed_attention(q, k, v, query_starts, key_starts, options)
        else:
            found = dense_attention(q, k, v, **options)
        found.update(present_k=k, present_v=v)
        types = {name: wide if name in ("lse", "max", "sum") else q.dtype for name in outputs}
        types.update({name: as_numpy(word) for name, word in (output_types or {}).items()})
        results = {name: found[name].astype(types[name]) for name in outputs}
    return results if len(outputs) > 1 else results["o"]


class Exact(attest.Backend):
    """attention() with what it states: sums and weights in float64."""

    name = "exact"

    def arithmetic(self, call):
        return {"accumulator": "f64", "stored_weights": "f64", "stored_scores": "f64"}

    def function(self):
        return attention


def around(before=None, after=None, where=None):
    """The right attention. before(q, k, v, options) gives the arrays and options that it is called with, and
    after(k, v, options) follows it; where `where` is named, only in calls that give this option."""

    class Around(Exact):
        name = "around"

        def function(self):
            @functools.wraps(attention)
            def call(q, k, v, **options):
                is_meant = where is None or (options.get(where) is not None and options[where] is not False)
                given = before(q, k, v, options) if before and is_meant else (q, k, v, options)
                found = attention(*given[:3], **given[3])
                if after and is_meant:
                    after(k, v, options)
                return found

            return call

    return Around()


def from_dlpack(tensors):
    """Attention that is given what speaks DLPack; tensors(array) makes such of its result."""

    def call(
        q, k, v, *, new_k=None, new_v=None, dynamic=False, key_lengths=None, query_lengths=None, causal=False, align="top-left"
    ):  # fmt: skip
        q, k, v, new_k, new_v = (None if t is None else np.from_dlpack(t) for t in (q, k, v, new_k, new_v))
        if dynamic:
            query_lengths, key_lengths = np.from_dlpack(query_lengths), np.from_dlpack(key_lengths)
        return tensors(attention(
            q, k, v, new_k=new_k, new_v=new_v, key_lengths=key_lengths, query_lengths=query_lengths, causal=causal,
            align=align,
        ))  # fmt: skip

    return call
