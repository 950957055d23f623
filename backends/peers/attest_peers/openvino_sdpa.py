"""OpenVINO's ScaledDotProductAttention-13 on processors: src/plugins/intel_cpu/src/nodes/scaled_attn.cpp."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np
import openvino
from openvino import opset13 as ops
from openvino.utils.node_factory import NodeFactory

from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request


class Backend(Peer):
    """f32 and f16 with the hint f32. bf16 as users get it: by default a model of f32 is computed in bf16 where the
    processor has it."""

    name = "openvino"
    library = f"OpenVINO {openvino.__version__}, ScaledDotProductAttention-13, CPU"
    takes = (SHAPES | HIDING | ADDING | CACHE | {"dtype=f32", "dtype=f16", "dtype=bf16", "sinks"}) - {"grouped heads"}
    cannot = {
        "grouped heads": "scaled_dot_product_attention_shape_inference.hpp wants the same heads of query and key",
        "softcap": "ScaledDotProductAttention-13 has no input for it",
        "dropout": "ScaledDotProductAttention-13 has no input for it",
        "out=lse": "ScaledDotProductAttention-13 has one output",
        "dtype=f64": "scaled_attn.cpp has no kernel of f64: the CPU plug-in converts it to f32",
    }
    conventions = {"empty_row": "nan", "hidden_nan": "leaks"}

    def __init__(self) -> None:
        self._core = openvino.Core()
        self._compiled: dict[Any, Any] = {}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        storage = q.dtype
        k, v = request.with_cached(k, v)
        # The operator's text: with causal=true the mask is ignored. So causal is said by the mask where there is one.
        native = request.only_causal()
        visible = None if native else request.visible()
        kind = np.dtype(np.float32) if storage.name == "bfloat16" else storage
        mask = request.one_mask(visible, kind)
        inputs = [np.ascontiguousarray(array).astype(kind) for array in (q, k, v)]
        sinks = request.sinks
        if mask is not None or request.scale is not None or sinks is not None:
            inputs.append(np.zeros((), kind) if mask is None else np.ascontiguousarray(mask))
        if request.scale is not None or sinks is not None:
            inputs.append(np.asarray(q.shape[-1] ** -0.5 if request.scale is None else request.scale, kind))
        if sinks is not None:
            inputs.append(np.asarray(sinks).astype(kind).reshape(1, -1, 1, 1))
        made = self._model(inputs, native, storage.name == "bfloat16")(inputs)[0]
        return np.array(made).astype(storage)

    def _model(self, inputs: list[np.ndarray], causal: bool, by_default: bool) -> Any:
        """Compiled for these types, heads and features, and for all lengths."""
        dims = [[-1, a.shape[1], -1, a.shape[3]] if n < 3 else [-1] * a.ndim for n, a in enumerate(inputs)]
        dims[5:] = [list(a.shape) for a in inputs[5:]]  # the plug-in wants to know that sinks have one number a head
        key = (tuple(map(tuple, dims)), tuple(a.dtype.name for a in inputs), causal, by_default)
        if key not in self._compiled:
            nodes = [ops.parameter(shape, array.dtype) for shape, array in zip(dims, inputs)]
            # opset13.scaled_dot_product_attention() has no parameter for the operator's sixth input.
            make = NodeFactory("opset13").create
            node = make("ScaledDotProductAttention", [each.output(0) for each in nodes], {"causal": causal})
            settings: dict[str, Any] = {"INFERENCE_NUM_THREADS": self.threads}
            if not by_default:
                settings["INFERENCE_PRECISION_HINT"] = "f32"
            if len(self._compiled) > 30:
                self._compiled.clear()
            model = openvino.Model([node], nodes, "attention")
            self._compiled[key] = self._core.compile_model(model, "CPU", settings)
        return self._compiled[key]

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.dtype == "bf16" and "BF16" not in self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            return "dtype=bf16: OPTIMIZATION_CAPABILITIES of this processor have no BF16"
        if "mask.dtype" in call.features:
            return "mask.dtype: element types of query and mask are merged in scaled_dot_product_attention.cpp"
        if call.dtype != "f32" and {"alibi", "sinks"} & set(call.features):
            return "alibi and sinks are of query's type, and would be rounded to 16 bits"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # attn_softmax(): scale, mask, exp, then each weight times the reciprocal of the sum; then the product with V.
        # With INFERENCE_PRECISION_HINT=f32 a model of f16 is computed in f32; the plug-in sets the processor's flags
        # that make subnormals 0.
        stated = {"flush_to_zero": True, "normalised_before_storage": True, "division": "reciprocal"}
        return {**stated, "stored_weights": "bf16"} if call.dtype == "bf16" else stated
