"""jax.nn.dot_product_attention on processors: _dot_product_attention_core() in jax/_src/nn/functions.py."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from attest_peers.gradients import GRADIENTS, OfNumpy, with_jax
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES
from attest_peers.request import Request, compact

jax.config.update("jax_enable_x64", True)


class Backend(OfNumpy):
    name = "jax"
    library = f"jax.nn.dot_product_attention, JAX {jax.__version__}, XLA on CPU"
    takes = (
        SHAPES | HIDING | ADDING | CACHE | GRADIENTS
        | {"dtype=f64", "dtype=f32", "dtype=f16", "dtype=bf16", "out=lse"}
    ) - {"dim=Dqk/Dv"}  # fmt: skip
    cannot = {
        "dlse": "no derivative passes through logsumexp: lax.stop_gradient(lse_residual)",
        "dim=Dqk/Dv": "value should have the same shape as the key",
        "softcap": "dot_product_attention has no parameter for it",
        "sinks": "dot_product_attention has no parameter for it",
        "dropout": "dot_product_attention has no parameter for it",
    }
    conventions = {
        "empty_row": "mean of v, or nan where a bias hides", "hidden_nan": "leaks", "softmax_f64": "f32"
    }  # fmt: skip

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        if request.past_k is not None:
            k, v = jnp.concatenate([request.past_k, k], 2), jnp.concatenate([request.past_v, v], 2)
        options: dict[str, Any] = {} if request.scale is None else {"scale": request.scale}
        if _own_words(request):
            mask = None if request.mask is None else compact(request.mask)
            options.update(_positions(request))
        else:
            mask = request.visible()
        wide = np.float64 if q.dtype == np.float64 else np.float32
        if request.adds:
            options["bias"] = _bias(request, wide)
        if mask is not None:
            options["mask"] = jnp.asarray(mask)
        arrays = [jnp.asarray(array).swapaxes(1, 2) for array in (q, k, v)]
        if "lse" not in request.outputs:
            return jax.nn.dot_product_attention(*arrays, **options).swapaxes(1, 2)
        o, lse = jax.nn.dot_product_attention(*arrays, return_residual=True, **options)
        return {"o": o.swapaxes(1, 2), "lse": lse.swapaxes(1, 2)[..., None].astype(wide)}

    def pull(
        self, forward: Callable[..., dict[str, Any]], inputs: Sequence[Any], derivatives: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        return with_jax(forward, inputs, derivatives)

    def cannot_do(self, call: Any) -> Optional[str]:
        if "out=lse" in call.features and call.dtype in ("f16", "bf16"):
            return "out=lse: the residual is rounded to the type of the keys"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # XLA sets the processor's flags that make subnormals 0. Logits in f32 or wider, "softmax
        # [...] always carried out in fp32", probabilities in the type of the keys.
        stated = {"normalised_before_storage": True, "stored_weights": call.dtype, "flush_to_zero": True}
        if call.pass_ != "forward":
            stated.update(kept_weights=True, delta_from_weights=True)
        if call.dtype == "f64":
            stated.update(accumulator="f32", stored_weights="f32", stored_scores="f32")
        return stated


def _bias(request: Request, dtype: Any) -> Any:
    """All that is added. JAX can differentiate it by the bias."""
    if not isinstance(request.bias, jax.Array):
        return jnp.asarray(request.bias_with(None, dtype))
    total = request.bias.astype(np.float64)
    if request.alibi_slopes is not None:
        total = total + request.alibi()
    return total.astype(dtype)


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
