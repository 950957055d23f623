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


def of_sequences(q, k, v, places, *, decay, beta, state, **options):
    """The same of sequences that end early or lie one after another, each with a state of its own: `places` has the
    batch and the slice of tokens of each. Rows of no sequence are 0."""
    o = np.zeros((*q.shape[:3], v.shape[3]))
    states = np.zeros((len(places), k.shape[1], k.shape[3], v.shape[3]))
    for n, (batch, tokens) in enumerate(places):
        inputs = [None if t is None else t[batch : batch + 1, :, tokens] for t in (q, k, v, decay, beta)]
        before = None if state is None else state[n : n + 1]
        found = attention(*inputs[:3], decay=inputs[3], beta=inputs[4], state=before, **options)
        o[batch, :, tokens], states[n] = found["o"][0], found["present_state"][0]
    return {"o": o, "present_state": states}


def gradients(q, k, v, *, op, scale, decay, beta, state, do, dpresent):
    """Of the sum of do * o and dpresent * present_state, in float64: from the last token to the first."""
    group = q.shape[1] // max(k.shape[1], 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    q, k, v, do = (t.astype(np.float64) for t in (q, k, v, do))
    memory = np.zeros((*k.shape[:2], k.shape[3], v.shape[3])) if state is None else state.astype(np.float64)
    found = {"dq": np.empty_like(q), "dk": np.empty_like(k), "dv": np.empty_like(v)}
    if decay is not None:
        found["ddecay"] = np.empty(k.shape[:3] + (1 if decay.strides[3] == 0 else k.shape[3],))
    if beta is not None:
        found["dbeta"] = np.empty((*k.shape[:3], 1))
    tokens = []
    for t in range(q.shape[2]):
        key, written = k[:, :, t, :, None], v[:, :, t, None, :]
        if decay is not None:
            memory = memory * np.exp(decay[:, :, t, :, None].astype(np.float64))
        decayed = memory
        if beta is not None:
            written = written - (memory * key).sum(2, keepdims=True)
        rate = 1.0 if beta is None else beta[:, :, t, :, None].astype(np.float64)
        memory = memory + key * rate * written
        tokens.append((key, rate, written, decayed))
        found["dq"][:, :, t] = scale * (memory.repeat(group, 1) * do[:, :, t, None, :]).sum(3)
    g = np.zeros_like(memory) if dpresent is None else dpresent.astype(np.float64)
    for t, (key, rate, written, decayed) in reversed(list(enumerate(tokens))):
        loss = q[:, :, t, :, None] * do[:, :, t, None, :]
        g = g + scale * loss.reshape(*k.shape[:2], group, *loss.shape[2:]).sum(2)
        by_written = (g * key).sum(2, keepdims=True)
        found["dk"][:, :, t] = (g * rate * written).sum(3)
        found["dv"][:, :, t] = (rate * by_written)[:, :, 0]
        if beta is not None:
            found["dbeta"][:, :, t] = (by_written * written).sum(3)
            found["dk"][:, :, t] -= (decayed * rate * by_written).sum(3)
            g = g - key * rate * by_written
        if decay is not None:
            by_decay = (g * decayed).sum(3)
            whole = found["ddecay"].shape[3] == by_decay.shape[2]
            found["ddecay"][:, :, t] = by_decay if whole else by_decay.sum(2, keepdims=True)
            g = g * np.exp(decay[:, :, t, :, None].astype(np.float64))
    if beta is not None and beta.strides[1] == 0:
        found["dbeta"] = found["dbeta"].sum(1, keepdims=True)
    return {**found, "dstate": g}
