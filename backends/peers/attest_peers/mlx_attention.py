"""mlx.core.fast.scaled_dot_product_attention on processors: the fallback in mlx/fast.cpp."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence

import ml_dtypes
import mlx.core as mx
import numpy as np

from attest_peers.gradients import GRADIENTS, OfNumpy
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES
from attest_peers.request import Request


class Backend(OfNumpy):
    name = "mlx"
    library = f"mlx.core.fast.scaled_dot_product_attention, MLX {mx.__version__}, CPU"
    takes = (SHAPES | HIDING | ADDING | CACHE | GRADIENTS | {"dtype=f32", "dtype=f16", "dtype=bf16", "sinks"}) - {
        "out=dmask"
    }  # fmt: skip
    cannot = {
        "out=dmask": "the adapter gives the mask as a constant",
        "softcap": "the function has no parameter for it",
        "dropout": "the function has no parameter for it",
        "out=lse": "the function returns the output alone",
        "dtype=f64": "MLX has no f64 matrix product in this function: inputs of float64 are refused",
    }
    conventions = {"hidden_nan": "leaks", "empty_row": "mean of v, or nan where a bias hides"}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        q, k, v = (_array(t) for t in (q, k, v))
        if request.past_k is not None:
            k = mx.concatenate([_array(request.past_k), k], 2)
            v = mx.concatenate([_array(request.past_v), v], 2)
        dtype = {mx.float16: np.float16, mx.bfloat16: ml_dtypes.bfloat16}.get(q.dtype, np.float32)
        scale = q.shape[-1] ** -0.5 if request.scale is None else request.scale
        mask: Any = None
        if self._lower_right(request):
            mask = "causal"
        else:
            visible = request.visible()
            added = request.one_mask(visible, dtype)
            mask = None if added is None else _array(added)
        sinks = None if request.sinks is None else mx.array(np.asarray(request.sinks).astype(dtype))
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=float(scale), mask=mask, sinks=sinks)

    def to_host(self, array: Any) -> Any:
        if isinstance(array, mx.array) and array.dtype == mx.bfloat16:  # which has no buffer of NumPy
            return np.asarray(array.astype(mx.float32)).astype(ml_dtypes.bfloat16)
        return super().to_host(array)

    def joined(self, parts: Sequence[Any]) -> Any:
        return mx.concatenate(list(parts), 2)

    def pull(
        self, forward: Callable[..., dict[str, Any]], inputs: Sequence[Any], derivatives: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        o, pulled = mx.vjp(lambda *t: [forward(*t)["o"]], [_array(t) for t in inputs], [_array(derivatives["o"])])
        return {"o": o[0]}, pulled

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
        if call.dtype != "f32" and ("alibi" in call.features or "sinks" in call.features):
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
        if call.dtype != "f32":
            stated.update(stored_scores=call.dtype, score_stores=3, stored_score_gradients=call.dtype)
        if call.pass_ != "forward":
            stated.update(kept_weights=True, delta_from_weights=True)
        return stated


def _array(array: Any) -> Any:
    return array if isinstance(array, mx.array) else mx.array(np.ascontiguousarray(array))
