"""onnxruntime's kernel for the operator Attention: onnxruntime/core/providers/cpu/llm/attention.cc."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np
import onnxruntime

from attest_peers.onnx_model import Sessions
from attest_peers.onnx_node import Node, model_of
from attest_peers.onnx_peer import OnnxPeer


class Backend(OnnxPeer):
    """Opset 24, the last that its processor kernel is registered for; windows are a mask."""

    name = "onnxruntime"
    library = f"onnxruntime {onnxruntime.__version__}, Attention-24, CPUExecutionProvider"
    opset = 24
    every_row = True  # ComputeOutputShapeForAttention(): "inconsistent q_sequence_length (between attn_mask and Q)"
    takes = (OnnxPeer.takes | {"dtype=f32", "dtype=f16"}) - {"a size 0"}
    cannot = {
        **OnnxPeer.cannot,
        "dtype=f64": "the kernel is registered for float and float16",
        "a size 0": "batch size and sequence lengths must be greater than 0, says the kernel",
        "dtype=bf16": "the kernel is registered for float and float16",
    }
    conventions = {"hidden_nan": "leaks"}  # type: ignore[assignment]

    def __init__(self) -> None:
        self._sessions = Sessions()

    def run_node(self, node: Node) -> Mapping[str, np.ndarray]:
        key = node.key()
        return self._sessions.run(key, lambda: model_of(key), node.outputs, node.inputs, self.threads)

    def cannot_do(self, call: Any) -> Any:
        if call.scale == 0:
            return "scale: must be greater than 0, says the kernel"
        if call.past and call.past == call.key_length:
            return "past: the kernel wants a new key besides the cached ones"
        return super().cannot_do(call)

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # ComputeAttentionProbs(): one GEMM per head into T, soft cap, mask, softmax in place; then a GEMM with V. The
        # softmax's exp, MlasComputeSumExpVector() of core/mlas/lib/compute.cpp, has no subnormal numbers.
        stated: dict[str, Any] = {
            "normalised_before_storage": True, "stored_weights": call.dtype, "flush_to_zero": True
        }  # fmt: skip
        if call.dtype == "f16":
            stated.update(stored_scores="f16", score_stores=3)
        return stated


class Packed(Backend):
    """The same with heads side by side, which the kernel reads by other strides."""

    name = "onnxruntime_3d"
    packed = True
