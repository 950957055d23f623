"""example_py: attention in NumPy, as a backend of attest. Replace attention() by your kernel, then state how it rounds.

Its keywords say what it takes: a call with any other option is refused.
"""

import numpy as np

import attest


class Kernel(attest.Backend):
    name = "example_py"
    refuses = ["grouped heads"]

    def attention(self, q, k, v, *, causal=False, scale=None):
        wide = np.float64 if q.dtype == np.float64 else np.float32
        scores = q.astype(wide) @ k.astype(wide).swapaxes(-1, -2)
        scores *= wide(q.shape[-1] ** -0.5 if scale is None else scale)
        if causal:
            queries, keys = scores.shape[-2:]
            scores[..., np.arange(keys) > np.arange(queries)[:, None]] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True, initial=np.finfo(wide).min))
        seen = np.isfinite(scores).any(-1, keepdims=True)
        total = np.where(seen, weights.sum(-1, keepdims=True), 1)
        finite = np.isfinite(v)  # 0 times a NaN that no query sees would be NaN
        out = weights @ np.where(finite, v, 0).astype(wide) / total
        return np.where((weights != 0).astype(wide) @ ~finite > 0, wide(np.nan), out).astype(q.dtype)

    def refuse(self, call):
        return None

    def arithmetic(self, call):
        return {}
