"""mlx.core.fast.scaled_dot_product_attention on processors: the fallback in mlx/fast.cpp."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import mlx.core as mx
import numpy as np

from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request


class Backend(Peer):
    name = "mlx"
    library = f"mlx.core.fast.scaled_dot_product_attention, MLX {mx.__version__}, CPU"
    takes = SHAPES | HIDING | ADDING | CACHE | {"dtype=f32", "dtype=f16", "sinks"}
    cannot = {
        "softcap": "the function has no parameter for it",
        "dropout": "the function has no parameter for it",
        "out=lse": "the function returns the output alone",
        "dtype=f64": "MLX has no f64 matrix product in this function: inputs of float64 are refused",
    }
    conventions = {"align": "bottom-right", "hidden_nan": "leaks"}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = request.with_cached(k, v)
        scale = q.shape[-1] ** -0.5 if request.scale is None else request.scale
        mask: Any = None
        if self._lower_right(request):
            mask = "causal"
        else:
            visible = request.visible()
            added = request.one_mask(visible, q.dtype)
            mask = None if added is None else mx.array(np.ascontiguousarray(added))
        sinks = None if request.sinks is None else mx.array(np.asarray(request.sinks).astype(q.dtype))
        arrays = [mx.array(np.ascontiguousarray(array)) for array in (q, k, v)]
        o = mx.fast.scaled_dot_product_attention(*arrays, scale=float(scale), mask=mask, sinks=sinks)
        mx.eval(o)
        return np.array(o)

    @staticmethod
    def _lower_right(request: Request) -> bool:
        """Whether its word "causal" says all: the last query stands at the last key."""
        at_end = request.align == "bottom-right" and not request.past
        at_end = at_end or request.past + request.queries == request.keys
        other = request.hides_by_position or request.mask is not None or request.adds
        return bool(request.causal and at_end and not other)

    def cannot_do(self, call: Any) -> Optional[str]:
        if "mask.dtype" in call.features:
            return "mask.dtype: an additive mask must promote to the type of the inputs"
        if call.dtype == "f16" and ("alibi" in call.features or "sinks" in call.features):
            return "alibi and sinks are of the type of the inputs, and would be rounded to 16 bits"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # q times the scale, product, mask, softmax with precise=true (f32), product; probabilities in the inputs' type.
        stated = {
            "normalised_before_storage": True,
            "division": "reciprocal",
            "stored_weights": call.dtype,
            "flush_to_zero": True,
        }
        if call.dtype == "f16":
            stated.update(stored_scores="f16", score_stores=3)
        return stated
