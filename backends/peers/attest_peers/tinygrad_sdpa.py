"""tinygrad's Tensor.scaled_dot_product_attention on processors: tinygrad/mixin/rand.py."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

os.environ.setdefault("DEV", "CPU")  # without it tinygrad takes OpenCL where a driver is installed, as PoCL's

from tinygrad import Device, Tensor  # noqa: E402
from tinygrad.dtype import _to_np_dtype  # noqa: E402

from attest_peers.gradients import GRADIENTS, OfNumpy  # noqa: E402
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES  # noqa: E402
from attest_peers.request import Request  # noqa: E402


class Backend(OfNumpy):
    name = "tinygrad"
    library = f"Tensor.scaled_dot_product_attention, tinygrad {version('tinygrad')}, {Device.DEFAULT}"
    takes = (SHAPES | HIDING | ADDING | CACHE | GRADIENTS | {"dtype=f64", "dtype=f32", "dtype=f16"}) - {
        "out=dmask",
    }  # fmt: skip
    cannot = {
        "out=dmask": "the adapter gives the mask as a constant",
        "softcap": "the method has no parameter for it",
        "sinks": "the method has no parameter for it",
        "dropout": "it draws which weights it keeps by itself",
        "out=lse": "the method returns the output alone",
        "dtype=bf16": "Tensor() of a NumPy array of it is a ValueError; DTYPES_DICT of tinygrad/dtype.py",
    }
    conventions = {"hidden_nan": "leaks", "empty_row": "nan, or mean of v with one key"}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        query, key, value = (_tensor(array) for array in (q, k, v))
        if request.past_k is not None:
            key, value = _tensor(request.past_k).cat(key, dim=2), _tensor(request.past_v).cat(value, dim=2)
        causal = request.only_causal()
        visible = None if causal else request.visible()
        mask = request.one_mask(visible, _to_np_dtype(query.dtype))
        if request.scale is not None:  # the method divides by sqrt(dim)
            query = query * (request.scale * query.shape[-1] ** 0.5)
        return query.scaled_dot_product_attention(
            key, value, attn_mask=None if mask is None else Tensor(np.array(mask, order="C")), is_causal=causal,
            enable_gqa=query.shape[1] != key.shape[1],
        )  # fmt: skip

    def to_host(self, array: Any) -> Any:
        return array.numpy() if isinstance(array, Tensor) else array

    def joined(self, parts: Sequence[Any]) -> Any:
        return np.concatenate([part.numpy() for part in parts], 2)

    def pull(
        self, forward: Callable[..., dict[str, Any]], inputs: Sequence[Any], derivatives: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        leaves = [_tensor(array).realize() for array in inputs]
        found = forward(*leaves)
        return found, found["o"].gradient(*leaves, gradient=_tensor(derivatives["o"]))

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.dtype == "f16" and ("mask.dtype" in call.features or "alibi" in call.features):
            return "mask.dtype: a mask of another type would widen the scores"
        if call.dtype == "f16" and "scale" in call.features:
            return "scale: the method has no parameter for it, and q times a number would be rounded to 16 bits"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # The product in f32 or wider, divided by sqrt(d); mask; rounded to the type of the query; softmax by exp2.
        # The kernels are fused: the sum divides after the product with v.
        stated: dict[str, Any] = {"division": "reciprocal", "exp_ulps": 4.0}
        if "scale" in call.features:  # on q, and the division by sqrt(d) on the scores
            stated["scale"] = "split_root"
        if call.dtype == "f16":
            stated.update(stored_weights="f16", stored_scores="f16", score_stores=3)
        return stated


def _tensor(array: Any) -> Tensor:
    return array if isinstance(array, Tensor) else Tensor(np.array(array, order="C"))
