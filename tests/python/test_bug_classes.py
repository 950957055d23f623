"""Bugs that shipped elsewhere, as callables of Python: each is caught by a line, and the right callable passes it.

The numbers are those of tests/BUG_CLASSES.md.
"""

import kernels
import numpy as np
import pytest

import attest


def wrong(**changed):
    """attention() with what a call says changed on the way."""

    def attention(q, k, v, **options):
        for name, change in changed.items():
            if name in options:
                options[name] = change(options[name])
        return kernels.attention(q, k, v, **options)

    return attention


def with_signature(function):
    """What it takes is what attention() takes."""

    class Wrong(kernels.Exact):
        name = "wrong"

        def function(self):
            import functools

            return functools.wraps(kernels.attention)(function)

    return Wrong()


def without_maximum(q, k, v, **options):
    s = (q @ k.swapaxes(-1, -2)) * np.float32(options.get("scale", q.shape[-1] ** -0.5))
    with np.errstate(over="ignore", invalid="ignore"):
        w = np.exp(s)
        return (w @ v / w.sum(-1, keepdims=True)).astype(q.dtype)


def empty_rows_are_means(q, k, v, *, mask=None, **options):
    o = np.array(kernels.attention(q, k, v, mask=mask, **options))
    rows = np.broadcast_to(mask, (*q.shape[:3], k.shape[2])).any(-1)
    group = q.shape[1] // k.shape[1]
    return np.where(rows[..., None], o, np.repeat(v, group, 1).mean(2, keepdims=True)).astype(q.dtype)


def heads_in_turn(q, k, v, **options):
    group = q.shape[1] // k.shape[1]
    return kernels.attention(q, np.tile(k, (1, group, 1, 1)), np.tile(v, (1, group, 1, 1)), **options)


def hidden_times_zero(q, k, v, **options):
    o = kernels.attention(q, k, v, **options)
    return o + (0 * v).sum(2, keepdims=True).repeat(q.shape[1] // v.shape[1], 1).astype(q.dtype)


def cap_after_bias(q, k, v, *, bias=None, softcap=None, **options):
    s = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) * q.shape[-1] ** -0.5
    s = softcap * np.tanh((s + bias) / softcap)
    w = np.exp(s - s.max(-1, keepdims=True))
    return (w @ v / w.sum(-1, keepdims=True)).astype(q.dtype)


def last_key_is_lost(q, k, v, **options):
    keep = max(1, k.shape[2] // 16 * 16)
    return kernels.attention(q, k[:, :, :keep], v[:, :, :keep], **options)


def log_of_two(q, k, v, **options):
    result = kernels.attention(q, k, v, **options)
    return {"o": result["o"], "lse": (result["lse"] / np.log(2)).astype(result["lse"].dtype)}


def first_call_is_kept():
    kept = {}

    def attention(q, k, v, **options):
        key = (q.shape, k.shape, tuple(sorted(options)))
        if key not in kept:
            kept[key] = kernels.attention(q, k, v, **options)
        return kept[key]

    return attention


def one_buffer():
    buffers = {}

    def attention(q, k, v, **options):
        out = buffers.setdefault((q.dtype.str, *q.shape[:3], v.shape[3]), np.empty((*q.shape[:3], v.shape[3]), q.dtype))
        out[...] = kernels.attention(q, k, v, **options)
        return out

    return attention


def sums_in_storage(q, k, v, **options):
    s = (q @ k.swapaxes(-1, -2) * q.dtype.type(q.shape[-1] ** -0.5)).astype(q.dtype)
    w = np.exp(s - s.max(-1, keepdims=True))
    return (w / w.sum(-1, keepdims=True)) @ v


def strides_are_dense(q, k, v, **options):
    flat = np.lib.stride_tricks.as_strided(k, k.shape, [np.prod(k.shape[n + 1 :], dtype=int) * 4 for n in range(4)])
    return kernels.attention(q, np.array(flat), v, **options)


CLASSES = [
    ("causal is dropped", wrong(causal=lambda c: False), "seq=5 dim=4 causal"),
    ("causal is aligned top-left", wrong(align=lambda a: "top-left"), "seq=3x6 dim=4 causal align=bottom-right"),
    ("the diagonal is off by one", wrong(window=lambda w: (w[0] and w[0] - 1, w[1])), "seq=9 dim=4 window=3:0"),
    ("a mask the other way round", wrong(mask=lambda m: ~m), "seq=5 dim=4 mask=bool:BHQK:random(0.5)"),
    ("a bias is dropped", wrong(bias=np.zeros_like), "seq=5 dim=4 mask=add:BHQK:normal"),
    ("the scale is of another dimension", wrong(scale=lambda s: s * s), "seq=5 dim=4 scale=0.3"),
    ("lengths are those of the first sequence", wrong(key_lengths=lambda n: [n[0]] * len(n)),
     "batch=2 seq=6 dim=4 lengths=6,3"),
    ("softcap is applied after the bias", cap_after_bias, "seq=5 dim=4 softcap=1 mask=add:BHQK:normal"),
    ("exp without the maximum", without_maximum, "seq=6 dim=4 fill=spread(200)"),
    ("a row that sees nothing is a mean", empty_rows_are_means, "seq=5 dim=4 mask=bool:11QK:rows(0.5)"),
    ("grouped heads in another order", heads_in_turn, "heads=4/2 seq=5 dim=4"),
    ("0 times a hidden NaN", hidden_times_zero, "seq=5x9 dim=4 causal align=top-left poison=hidden:v"),
    ("keys beyond the last tile", last_key_is_lost, "seq=5x35 dim=4"),
    ("lse in units of log 2", log_of_two, "seq=5 dim=4 out=o,lse"),
    ("an answer kept by shape", first_call_is_kept(), "seq=5 dim=4"),
    ("one output buffer for all calls", one_buffer(), "seq=5 dim=4"),
    ("sums in the type of storage", sums_in_storage, "dtype=f16 seq=64 dim=64"),
    ("strides are taken for dense", strides_are_dense, "heads=2 seq=5 dim=4 layout=blhd"),
    ("a sink is dropped", wrong(sinks=lambda s: np.full_like(s, -np.inf)), "heads=2 seq=5 dim=4 sinks"),
]  # fmt: skip


@pytest.mark.parametrize("function, line", [row[1:] for row in CLASSES], ids=[row[0] for row in CLASSES])
def test_a_bug_is_caught(function, line):
    right = attest.check(kernels.Exact(), line)
    assert right.ok, str(right)
    (found,) = attest.check(with_signature(function), line, shrink=False)
    assert found.failed, str(found)
