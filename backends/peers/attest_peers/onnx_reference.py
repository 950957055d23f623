"""The ONNX reference evaluator: onnx/reference/ops/op_attention.py, plain NumPy."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from attest_peers.onnx_node import Node, model_of
from attest_peers.onnx_peer import OnnxPeer


class Backend(OnnxPeer):
    name = "onnx_reference"
    library = f"onnx {onnx.__version__} ReferenceEvaluator, NumPy {np.__version__}"
    takes = OnnxPeer.takes | {"dtype=f64", "dtype=f32", "dtype=f16", "dtype=bf16"}
    conventions = {"hidden_nan": "leaks"}  # type: ignore[assignment]

    def run_node(self, node: Node) -> Mapping[str, np.ndarray]:
        evaluator = ReferenceEvaluator(model_of(node.key()))
        return dict(zip(node.outputs, evaluator.run(None, dict(node.inputs))))

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # _compute_attention(): Q*scale and K*scale with scale = sqrt(scale); _softmax() divides; then matmul with V.
        # Ulps are those of NumPy's vector loops in f32; in 16 bits all steps are rounded, which no statement covers.
        stated = {"scale": "split_root", "normalised_before_storage": True, "stored_weights": call.dtype}
        if call.dtype == "f32":
            stated.update(exp_ulps=3.0, tanh_ulps=4.0)
        if call.dtype in ("f16", "bf16"):
            stated.update(stored_scores=call.dtype, score_stores=3)
        return stated
