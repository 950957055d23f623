"""keras.ops.dot_product_attention: keras/src/backend/*/nn.py.

Each of its backends is a peer: KERAS_BACKEND says which.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Optional, Sequence

os.environ.setdefault("KERAS_BACKEND", "numpy")

import keras  # noqa: E402
import numpy as np  # noqa: E402

from attest_peers.gradients import GRADIENTS, OfNumpy  # noqa: E402
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES  # noqa: E402
from attest_peers.request import Request  # noqa: E402

UNDER = keras.backend.backend()


class Backend(OfNumpy):
    """`bias` and `mask` where Keras takes both; its backend torch takes one, and is given both as a bias."""

    name = f"keras_{UNDER}"
    library = f"keras.ops.dot_product_attention, Keras {keras.__version__} on {UNDER}"
    takes = SHAPES | HIDING | ADDING | CACHE | {"dtype=f32", "dtype=f16", "dtype=bf16"}
    takes |= GRADIENTS - {"out=dmask"} if UNDER != "numpy" else set()
    cannot = {
        "dtype=f64": "convert_to_tensor() and result_type() make float32 of it",
        "out=dmask": "the adapter gives the mask as a constant",
        "softcap": '"attn_logits_soft_cap is only supported for JAX on TPU"',
        "sinks": "dot_product_attention has no parameter for it",
        "dropout": "dot_product_attention has no parameter for it",
        "out=lse": "dot_product_attention returns the output alone",
    }
    conventions = {
        "empty_row": "mean of v" if UNDER == "torch" else "mean of v, or nan where a bias hides", "hidden_nan": "leaks"
    }  # fmt: skip

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        dtype = np.dtype(keras.backend.standardize_dtype(q.dtype))
        if request.past_k is not None:
            k = keras.ops.concatenate([_tensor(request.past_k), _tensor(k)], 2)
            v = keras.ops.concatenate([_tensor(request.past_v), _tensor(v)], 2)
        native = request.causal_alone()
        visible = request.visible() if not native else request.mask
        one = UNDER == "torch" and request.adds
        bias = request.bias_with(request.visible() if one else None, dtype)
        o = keras.ops.dot_product_attention(
            *(keras.ops.swapaxes(_tensor(array), 1, 2) for array in (q, k, v)),
            bias=bias,
            mask=None if one or visible is None else np.array(visible),
            scale=request.scale,
            is_causal=native and not one,
        )
        return keras.ops.swapaxes(o, 1, 2)

    def to_host(self, array: Any) -> Any:
        return keras.ops.convert_to_numpy(array)

    def pull(
        self, forward: Callable[..., dict[str, Any]], inputs: Sequence[Any], derivatives: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        leaves, given = [_tensor(array) for array in inputs], _tensor(derivatives["o"])
        if UNDER == "tensorflow":
            import tensorflow

            with tensorflow.GradientTape() as tape:
                for leaf in leaves:
                    tape.watch(leaf)
                found = forward(*leaves)
            zero = tensorflow.UnconnectedGradients.ZERO
            return found, tape.gradient(found["o"], leaves, given, unconnected_gradients=zero)
        import torch

        with torch.enable_grad():
            leaves = [leaf.detach().requires_grad_() for leaf in leaves]
            found = forward(*leaves)
        return found, torch.autograd.grad([found["o"]], leaves, [given], allow_unused=True, materialize_grads=True)

    def cannot_do(self, call: Any) -> Optional[str]:
        if "mask.dtype" in call.features and call.dtype != "f32":
            return "mask.dtype: the bias is cast to the type of the query"
        if "alibi" in call.features and call.dtype != "f32":
            return "alibi: the bias is cast to the type of the query, and its slopes would be rounded to 16 bits"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # Two products by einsum, in the type of the inputs. "Softmax and it is always carried out
        # in fp32", then probabilities in the type of the keys.
        grads = {"stored_score_gradients": call.dtype, "stored_head_gradients": call.dtype}
        if UNDER == "torch":  # scaled_dot_product_attention: torch_sdpa.py
            return {
                "scale": "split_root", "division": "reciprocal", "key_block": 512, "stored_weights": call.dtype,
                "exp_ulps": 20.0, "flush_to_zero": True, **grads,
            }  # fmt: skip
        stated = {"normalised_before_storage": True, "stored_weights": call.dtype, "exp_ulps": 3.0}
        if call.pass_ != "forward":
            stated.update(kept_weights=True, delta_from_weights=True)
        if call.dtype != "f32":
            stated.update(stored_scores=call.dtype, score_stores=1)
        if UNDER == "tensorflow":  # its threads set the processor's flags that make subnormals 0
            stated["flush_to_zero"] = True
        return stated


def _tensor(array: Any) -> Any:
    return keras.ops.convert_to_tensor(np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array)
