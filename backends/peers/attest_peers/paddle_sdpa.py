"""PaddlePaddle's scaled_dot_product_attention on processors.

_math_attention() in paddle/nn/functional/flash_attention.py.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np
import paddle
from paddle.nn.functional import scaled_dot_product_attention

from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request


class Backend(Peer):
    name = "paddle"
    library = f"paddle.nn.functional.scaled_dot_product_attention, PaddlePaddle {paddle.__version__}, CPU"
    takes = SHAPES | HIDING | ADDING | CACHE | {"dtype=f64", "dtype=f32"}
    cannot = {
        "softcap": "the function has no parameter for it",
        "sinks": "the function has no parameter for it",
        "dropout": "it draws which weights it keeps by itself",
        "out=lse": "the function returns the output alone",
        "dtype=f16": "the processor has no matrix product of float16",
        "dtype=bf16": "NumPy has no arrays of it for PaddlePaddle",
    }
    conventions = {"align": "top-left", "hidden_nan": "leaks", "empty_row": "nan"}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = request.with_cached(k, v)
        causal = request.only_causal()
        visible = None if causal else request.visible()
        mask = request.one_mask(visible, q.dtype)
        o = scaled_dot_product_attention(
            *(paddle.to_tensor(np.ascontiguousarray(array.swapaxes(1, 2))) for array in (q, k, v)),
            attn_mask=None if mask is None else paddle.to_tensor(np.ascontiguousarray(mask)),
            is_causal=causal,
            training=False,
            scale=request.scale,
        )
        return o.numpy().swapaxes(1, 2)

    def cannot_do(self, call: Any) -> Optional[str]:
        if "mask.dtype" in call.features and call.dtype == "f32":
            return "mask.dtype: the mask is of the type of the query"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # _math_attention(): the query times the scale, product, mask, softmax, product.
        return {"normalised_before_storage": True}
