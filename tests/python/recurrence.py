"""Linear attention in NumPy: a state for each key head takes the place of the scores."""

import numpy as np


def attention(q, k, v, *, op, scale, decay, beta, state):
    """o and present_state, in float64: token after token, over all sequences and heads at once."""
    group = q.shape[1] // max(k.shape[1], 1)
    q, k, v = (t.astype(np.float64) for t in (q, k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    memory = np.zeros((*k.shape[:2], k.shape[3], v.shape[3])) if state is None else state.astype(np.float64)
    o = np.empty((*q.shape[:3], v.shape[3]))
    for t in range(q.shape[2]):
        key, value = k[:, :, t, :, None], v[:, :, t, None, :]
        if op.startswith("gated"):
            memory = memory * np.exp(decay[:, :, t, :, None].astype(np.float64))
        if op.endswith("delta"):
            known = (memory * key).sum(2, keepdims=True)
            value = beta[:, :, t, :, None].astype(np.float64) * (value - known)
        memory = memory + key * value
        o[:, :, t] = scale * (q[:, :, t, :, None] * memory.repeat(group, 1)).sum(2)
    return {"o": o, "present_state": memory}
