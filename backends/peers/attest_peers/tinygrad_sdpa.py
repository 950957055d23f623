"""tinygrad's Tensor.scaled_dot_product_attention on processors: tinygrad/mixin/rand.py."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Mapping, Optional

import numpy as np
from tinygrad import Tensor

from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request


class Backend(Peer):
    name = "tinygrad"
    library = f"Tensor.scaled_dot_product_attention, tinygrad {version('tinygrad')}, CPU"
    takes = (SHAPES | HIDING | ADDING | CACHE | {"dtype=f64", "dtype=f32", "dtype=f16"}) - {"scale"}
    cannot = {
        "scale": "the method has no parameter for it",
        "softcap": "the method has no parameter for it",
        "sinks": "the method has no parameter for it",
        "dropout": "it draws which weights it keeps by itself",
        "out=lse": "the method returns the output alone",
        "dtype=bf16": "NumPy has no arrays of it for tinygrad",
    }
    conventions = {"align": "top-left", "hidden_nan": "leaks", "empty_row": "nan"}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = request.with_cached(k, v)
        causal = request.only_causal()
        visible = None if causal else request.visible()
        mask = request.one_mask(visible, q.dtype)
        query, key, value = (Tensor(np.array(array, order="C")) for array in (q, k, v))
        o = query.scaled_dot_product_attention(
            key, value, attn_mask=None if mask is None else Tensor(np.array(mask, order="C")), is_causal=causal,
            enable_gqa=q.shape[1] != k.shape[1],
        )  # fmt: skip
        return o.numpy()

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.dtype == "f16" and ("mask.dtype" in call.features or "alibi" in call.features):
            return "mask.dtype: a mask of another type would widen the scores"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # The product in f32 or wider, divided by sqrt(d); mask; rounded to the type of the query; softmax by exp2.
        # The kernels are fused: the sum divides after the product with v.
        stated: dict[str, Any] = {"division": "reciprocal", "exp_ulps": 4.0}
        if call.dtype == "f16":
            stated.update(stored_weights="f16", stored_scores="f16", score_stores=3)
        return stated
