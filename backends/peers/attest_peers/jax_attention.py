"""jax.nn.dot_product_attention on processors: _dot_product_attention_core() in jax/_src/nn/functions.py."""

from __future__ import annotations

import contextlib
from typing import Any, Mapping, Optional

import jax
import jax.numpy as jnp
import numpy as np

from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request, compact


class Backend(Peer):
    name = "jax"
    library = f"jax.nn.dot_product_attention, JAX {jax.__version__}, XLA on CPU"
    takes = (SHAPES | HIDING | ADDING | CACHE | {"dtype=f64", "dtype=f32", "dtype=f16", "dtype=bf16", "out=lse"}) - {
        "dim=Dqk/Dv"
    }
    cannot = {
        "dim=Dqk/Dv": "value should have the same shape as the key",
        "softcap": "dot_product_attention has no parameter for it",
        "sinks": "dot_product_attention has no parameter for it",
        "dropout": "dot_product_attention has no parameter for it",
    }
    conventions = {"align": "top-left", "empty_row": "mean of v", "hidden_nan": "leaks", "softmax_f64": "f32"}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = request.with_cached(k, v)
        options: dict[str, Any] = {} if request.scale is None else {"scale": request.scale}
        if _own_words(request):
            mask = None if request.mask is None else compact(request.mask)
            options.update(_positions(request))
        else:
            mask = request.visible()
        wide = np.float64 if q.dtype == np.float64 else np.float32
        with jax.enable_x64(True) if wide == np.float64 else contextlib.nullcontext():
            if request.adds:
                options["bias"] = jnp.asarray(request.bias_with(None, wide))
            if mask is not None:
                options["mask"] = jnp.asarray(mask)
            arrays = [jnp.asarray(np.ascontiguousarray(array.swapaxes(1, 2))) for array in (q, k, v)]
            if "lse" not in request.outputs:
                return np.asarray(jax.nn.dot_product_attention(*arrays, **options)).swapaxes(1, 2)
            o, lse = jax.nn.dot_product_attention(*arrays, return_residual=True, **options)
            lse = np.asarray(lse).swapaxes(1, 2)[..., None]
            return {"o": np.asarray(o).swapaxes(1, 2), "lse": lse.astype(wide)}

    def cannot_do(self, call: Any) -> Optional[str]:
        if "out=lse" in call.features and call.dtype in ("f16", "bf16"):
            return "out=lse: the residual is rounded to the type of the keys"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # XLA sets the processor's flags that make subnormals 0. Logits in f32 or wider, "softmax
        # [...] always carried out in fp32", probabilities in the type of the keys.
        stated = {"normalised_before_storage": True, "stored_weights": call.dtype, "flush_to_zero": True}
        if call.dtype == "f64":
            stated.update(accumulator="f32", stored_weights="f32", stored_scores="f32")
        return stated


def _own_words(request: Request) -> bool:
    """Whether its own parameters say all that is hidden by place."""
    r = request
    if r.prefix or r.segments or r.blocks is not None:
        return False
    anchored = r.causal or r.window != (None, None)
    return not anchored or r.diagonal_at_corner


def _positions(request: Request) -> dict[str, Any]:
    said: dict[str, Any] = {"is_causal": request.causal}
    if request.window != (None, None):
        everything = request.queries + request.keys
        said["local_window_size"] = tuple(everything if side is None else side for side in request.window)
    if request.query_lengths is not None:
        said["query_seq_lengths"] = jnp.asarray(request.query_lengths, jnp.int32)
    if request.key_lengths is not None:
        said["key_value_seq_lengths"] = jnp.asarray(request.key_lengths, jnp.int32)
    return said
