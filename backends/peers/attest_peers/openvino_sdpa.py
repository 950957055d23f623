"""OpenVINO's ScaledDotProductAttention-13 on processors: src/plugins/intel_cpu/src/nodes/scaled_attn.cpp."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np
import openvino
from openvino import opset13 as ops

from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request


class Backend(Peer):
    name = "openvino"
    library = f"OpenVINO {openvino.__version__}, ScaledDotProductAttention-13, CPU"
    takes = (SHAPES | HIDING | ADDING | CACHE | {"dtype=f32", "dtype=f16"}) - {"grouped heads"}
    cannot = {
        "grouped heads": "query and key have the same heads in ScaledDotProductAttention-13",
        "softcap": "ScaledDotProductAttention-13 has no input for it",
        "sinks": "ScaledDotProductAttention-13 has no input for it",
        "out=lse": "ScaledDotProductAttention-13 has one output",
        "dtype=f64": "the CPU plug-in computes f64 in f32",
        "dtype=bf16": "NumPy has no arrays of it for OpenVINO",
    }
    conventions = {"align": "top-left", "empty_row": "nan", "hidden_nan": "leaks"}

    def __init__(self) -> None:
        self._core = openvino.Core()
        self._compiled: dict[Any, Any] = {}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = request.with_cached(k, v)
        # The operator's text: with causal=true the mask is ignored. So causal is said by the mask where there is one.
        native = request.only_causal()
        visible = None if native else request.visible()
        mask = request.one_mask(visible, q.dtype)
        inputs = [np.ascontiguousarray(array) for array in (q, k, v)]
        if mask is not None or request.scale is not None:
            inputs.append(np.zeros((), q.dtype) if mask is None else np.ascontiguousarray(mask))
        if request.scale is not None:
            inputs.append(np.asarray(request.scale, q.dtype))
        made = self._model(inputs, native)(inputs)[0]
        return np.array(made)

    def _model(self, inputs: list[np.ndarray], causal: bool) -> Any:
        """Compiled for these types, heads and features, and for all lengths."""
        dims = [[-1, a.shape[1], -1, a.shape[3]] if n < 3 else [-1] * a.ndim for n, a in enumerate(inputs)]
        key = (tuple(map(tuple, dims)), tuple(a.dtype.name for a in inputs), causal)
        if key not in self._compiled:
            nodes = [ops.parameter(shape, array.dtype) for shape, array in zip(dims, inputs)]
            model = openvino.Model([ops.scaled_dot_product_attention(*nodes, causal=causal)], nodes, "attention")
            settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": self.threads}
            if len(self._compiled) > 30:
                self._compiled.clear()
            self._compiled[key] = self._core.compile_model(model, "CPU", settings)
        return self._compiled[key]

    def cannot_do(self, call: Any) -> Optional[str]:
        if "mask.dtype" in call.features:
            return "mask.dtype: the mask is of query's type"
        if "alibi" in call.features and call.dtype == "f16":
            return "alibi: the mask is of query's type, and its slopes would be rounded to 16 bits"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # attn_softmax(): scale, mask, exp, then each weight times the reciprocal of the sum; then the product with V.
        # With INFERENCE_PRECISION_HINT=f32 a model of f16 is computed in f32; the plug-in sets the processor's flags
        # that make subnormals 0.
        return {"flush_to_zero": True, "normalised_before_storage": True, "division": "reciprocal"}
