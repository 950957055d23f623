"""PaddlePaddle's scaled_dot_product_attention on processors.

_math_attention() in paddle/nn/functional/flash_attention.py.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np
import paddle
from paddle.nn.functional import scaled_dot_product_attention

from attest_peers.gradients import GRADIENTS, OfNumpy
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES
from attest_peers.request import Request


class Backend(OfNumpy):
    name = "paddle"
    library = f"paddle.nn.functional.scaled_dot_product_attention, PaddlePaddle {paddle.__version__}, CPU"
    takes = (SHAPES | HIDING | ADDING | CACHE | GRADIENTS | {"dtype=f64", "dtype=f32"}) - {"out=dmask"}
    cannot = {
        "out=dmask": "the adapter gives the mask as a constant",
        "softcap": "the function has no parameter for it",
        "sinks": "the function has no parameter for it",
        "dropout": "it draws which weights it keeps by itself",
        "out=lse": "the function returns the output alone",
        "dtype=f16": "the processor has no matrix product of float16",
        "dtype=bf16": "NumPy has no arrays of it for PaddlePaddle",
    }
    conventions = {"hidden_nan": "leaks"}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        dtype = np.float64 if q.dtype in (np.float64, paddle.float64) else np.float32
        if request.past_k is not None:
            k = paddle.concat([_tensor(request.past_k), _tensor(k)], 2)
            v = paddle.concat([_tensor(request.past_v), _tensor(v)], 2)
        causal = request.only_causal()
        visible = None if causal else request.visible()
        mask = request.one_mask(visible, dtype)
        o = scaled_dot_product_attention(
            *(_tensor(array).transpose([0, 2, 1, 3]) for array in (q, k, v)),
            attn_mask=None if mask is None else paddle.to_tensor(np.ascontiguousarray(mask)),
            is_causal=causal,
            training=False,
            scale=request.scale,
        )
        return o.transpose([0, 2, 1, 3])

    def to_host(self, array: Any) -> Any:
        return array if isinstance(array, np.ndarray) else array.numpy()

    def pull(
        self, forward: Callable[..., dict[str, Any]], inputs: Sequence[Any], derivatives: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        leaves = [_tensor(array) for array in inputs]
        for leaf in leaves:
            leaf.stop_gradient = False
        found = forward(*leaves)
        pulled = paddle.grad([found["o"]], leaves, [_tensor(derivatives["o"])], allow_unused=True)
        whole = [paddle.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, pulled)]
        return {name: array.detach() for name, array in found.items()}, whole

    def cannot_do(self, call: Any) -> Optional[str]:
        if "mask.dtype" in call.features and call.dtype == "f32":
            return "mask.dtype: the mask is of the type of the query"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # _math_attention(): the query times the scale, product, mask, softmax, product.
        kept = {"kept_weights": True, "delta_from_weights": True} if call.pass_ != "forward" else {}
        return {"normalised_before_storage": True, **kept}


def _tensor(array: Any) -> Any:
    return paddle.to_tensor(np.ascontiguousarray(array)) if isinstance(array, np.ndarray) else array
