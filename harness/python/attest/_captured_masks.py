"""Words for a mask that a program passes: where its data show what it is for, they say so."""

from __future__ import annotations

from typing import Any

import numpy as np

from attest import _attest
from attest._suite_text import number

_MOST_ELEMENTS = 1 << 22  #: a larger mask is described by its shape alone


def mask_words(mask: Any, scores: tuple[int, ...]) -> str:
    """"causal align=...", or "mask=..." with a fill that hides as many keys. True is visible."""
    shape = tuple(int(size) for size in mask.shape)
    shape = (1,) * (4 - len(shape)) + shape
    if len(shape) != 4 or any(size not in (1, whole) for size, whole in zip(shape, scores)):
        raise _attest.UserError(f"its mask has shape {shape} for scores {scores}")
    axes = "".join(letter if size > 1 else "1" for letter, size in zip("BHQK", shape))
    is_bool = str(mask.dtype).rpartition(".")[2] == "bool"
    if int(np.prod(shape)) > _MOST_ELEMENTS:
        return f"mask=bool:{axes}:random(0.5)" if is_bool else f"mask=add:{axes}:normal"
    values = mask.detach().cpu() if hasattr(mask, "detach") else mask
    values = np.asarray(values if is_bool else (values.double() if hasattr(values, "double") else values))
    values = values.reshape(shape)
    visible = values if is_bool else np.asarray(values, np.float64) > -1e4
    if is_bool or np.all(np.asarray(values, np.float64)[visible] == 0):
        for align, offset in (("bottom-right", scores[3] - scores[2]), ("top-left", 0)):
            if shape[2:] == scores[2:] and np.all(visible == np.tri(scores[2], scores[3], offset, dtype=bool)):
                return f"causal align={align}"
    share = float(visible.mean()) if visible.size else 1.0
    if is_bool:
        return f"mask=bool:{axes}:" + ("all" if share == 1 else f"random({number(round(share, 2))})")
    if share == 1:
        return f"mask=add:{axes}:normal"
    hidden = np.asarray(values, np.float64)[~visible]
    fill = "neginf" if np.all(np.isneginf(hidden)) else ("finitemin" if hidden.min() < -1e30 else "padding")
    return f"mask=add:{axes}:{fill}({number(round(1 - share, 2))})"
