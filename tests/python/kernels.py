"""Attention in NumPy that takes most of what a call may ask for, and wrong ones made of it."""

import numpy as np

import attest


def visible(shape, *, causal, align, window, prefix, key_lengths, query_lengths, mask):
    """Which keys each query sees: B, H, L, S."""
    batch, heads, queries, keys = shape
    i = np.arange(queries)[:, None]
    j = np.arange(keys)[None, :]
    offset = np.full(batch, keys - queries if align == "bottom-right" else 0)
    if align == "bottom-right":
        counts_k = np.array(key_lengths) if key_lengths is not None else np.full(batch, keys)
        counts_q = np.array(query_lengths) if query_lengths is not None else np.full(batch, queries)
        offset = counts_k - counts_q
    seen = np.ones((batch, 1, queries, keys), bool)
    diagonal = i[None] + offset[:, None, None]
    left, right = window
    if causal:
        seen &= (j <= diagonal)[:, None]
    if left is not None:
        seen &= (j >= diagonal - left)[:, None]
    if right is not None:
        seen &= (j <= diagonal + right)[:, None]
    if prefix:
        seen |= (j < prefix)[None, None]
    if key_lengths is not None:
        seen = seen & (j < np.array(key_lengths)[:, None, None])[:, None]
    if query_lengths is not None:
        seen = seen & (i < np.array(query_lengths)[:, None, None])[:, None]
    seen = np.broadcast_to(seen, shape)
    return seen if mask is None else seen & mask


def attention(
    q, k, v, *, scale=None, causal=False, align="top-left", window=(None, None), prefix=0, key_lengths=None,
    query_lengths=None, mask=None, bias=None, softcap=None, sinks=None, outputs=("o",),
):  # fmt: skip
    """As attest defines it, in float64."""
    group = q.shape[1] // max(k.shape[1], 1)
    k, v = (np.repeat(t.astype(np.float64), group, axis=1) for t in (k, v))
    shape = (*q.shape[:3], k.shape[2])
    seen = visible(
        shape, causal=causal, align=align, window=window, prefix=prefix, key_lengths=key_lengths,
        query_lengths=query_lengths, mask=mask,
    )  # fmt: skip
    k_clean, v_clean = (np.where(np.isfinite(t), t, 0) for t in (k, v))
    s = q.astype(np.float64) @ k_clean.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        s = softcap * np.tanh(s / softcap)
    if bias is not None:
        s = s + bias.astype(np.float64)
        seen = seen & (bias != -np.inf)
    s = np.where(np.isfinite(k).all(-1)[:, :, None, :], s, np.nan)
    s = np.where(seen, s, -np.inf)
    top = s.max(-1, keepdims=True, initial=-np.inf)
    if sinks is not None:
        top = np.maximum(top, sinks[None, :, None, None])
    top = np.where(np.isinf(top), 0, top)
    w = np.exp(s - top)
    total = w.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks[None, :, None, None] - top)
    o = np.divide(w @ v_clean, total, out=np.zeros((*shape[:3], v.shape[3])), where=total != 0)
    o = np.where(seen.astype(np.float64) @ ~np.isfinite(v) > 0, np.nan, o)
    if "lse" not in outputs:
        return o.astype(q.dtype)
    with np.errstate(divide="ignore"):
        lse = top + np.log(total)
    return {"o": o.astype(q.dtype), "lse": lse.astype(np.float64 if q.dtype == np.float64 else np.float32)}


class Exact(attest.Backend):
    """attention() with what it states: sums and weights in float64."""

    name = "exact"
    refuses = ("out=weights", "out=raw", "out=capped", "out=biased", "out=present")

    def arithmetic(self, call):
        return {"accumulator": "f64", "stored_weights": "f64", "stored_scores": "f64"}

    def function(self):
        return attention
