"""ONNX's operator LinearAttention, https://onnx.ai/onnx/operators/onnx__LinearAttention.html: by the reference evaluator
(onnx/reference/ops/op_linear_attention.py), and by onnxruntime: as the operator's function body, which is a Scan over
tokens, and as its own operator of that name in com.microsoft, contrib_ops/cpu/bert/linear_attention.cc.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from attest_peers.onnx_model import TYPES, Sessions, one_node
from attest_peers.onnx_node import separate, side_by_side
from attest_peers.peer import SHAPES, Refusing

INPUTS = ("query", "key", "value", "past_state", "decay", "beta")
OUTPUTS = ("output", "present_state")
RULES = frozenset(["op=linear", "op=gated", "op=delta", "op=gated_delta", "decay=head", "beta=one", "state", "out=present"])


class LinearAttention(Refusing):
    """One node. Tensors are packed: heads lie side by side."""

    domain = ""
    version = 27
    takes = (SHAPES | RULES | {"dtype=f32"}) - {"op=attention", "seq=LqxLk"}
    cannot = {"op=attention": "LinearAttention has no softmax", "dtype=f64": "LinearAttention has no type double"}

    def attention(
        self, q: Any, k: Any, v: Any, *, op: str = "linear", scale: Any = None, decay: Any = None, beta: Any = None,
        state: Any = None, outputs: Any = ("o",),
    ) -> Any:  # fmt: skip
        attributes: dict[str, Any] = {
            "q_num_heads": int(q.shape[1]), "kv_num_heads": int(k.shape[1]), "update_rule": op
        }  # fmt: skip
        if scale is not None:
            attributes["scale"] = float(scale)
        given = {"query": q, "key": k, "value": v, "decay": decay, "beta": beta}
        inputs = {name: side_by_side(array) for name, array in given.items() if array is not None}
        if state is not None:
            inputs["past_state"] = np.ascontiguousarray(state)
        made = self.run_node(attributes, inputs)
        o = separate(made["output"], q.shape[1])
        return {"o": o, "present_state": made["present_state"]} if len(outputs) > 1 else o

    def run_node(self, attributes: Mapping[str, Any], inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The operator's outputs by name."""
        raise NotImplementedError

    def model_of(self, attributes: Mapping[str, Any], inputs: Mapping[str, np.ndarray]) -> onnx.ModelProto:
        given = {name: (name, TYPES[array.dtype.name], array.ndim) for name, array in inputs.items()}
        storage = given["query"][1]
        state = given.get("past_state", given["query"])[1]
        made = [("output", storage, 3), ("present_state", state, 4)]
        wanted = [given.get(name) for name in INPUTS]
        return one_node("LinearAttention", self.domain, self.version, attributes, wanted, made)

    def refuse(self, call: Any) -> Optional[str]:
        if call.query_heads == 0:
            return "heads: q_num_heads must be a positive multiple of kv_num_heads, says the operator"
        if "scale" in call.features and call.scale == 0:
            return "scale: 0.0 stands for the default, says the operator"
        return None


class Reference(LinearAttention):
    name = "onnx_reference_linear"
    library = f"onnx {onnx.__version__} ReferenceEvaluator, LinearAttention-27, NumPy {np.__version__}"
    takes = LinearAttention.takes | {"dtype=f16", "dtype=bf16"}

    def run_node(self, attributes: Mapping[str, Any], inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        evaluator = ReferenceEvaluator(self.model_of(attributes, inputs))
        return dict(zip(OUTPUTS, evaluator.run(None, dict(inputs))))

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # LinearAttention._run(): all is widened to float32, token after token; exp of NumPy's vector loops.
        return {"exp_ulps": 3.0}


class Onnxruntime(LinearAttention):
    name = "onnxruntime_linear"
    library = f"onnxruntime {onnxruntime.__version__}, LinearAttention-27, CPUExecutionProvider"
    takes = LinearAttention.takes | {"dtype=f16"}
    cannot = {**LinearAttention.cannot, "dtype=bf16": "NumPy's arrays of it are not taken by a session, nor given back"}

    def __init__(self) -> None:
        self._sessions = Sessions()

    def run_node(self, attributes: Mapping[str, Any], inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        types = tuple((name, array.dtype.name) for name, array in inputs.items())
        key = (tuple(sorted(attributes.items())), types)
        model = lambda: self.model_of(attributes, inputs)  # noqa: E731
        return dict(self._sessions.run(key, model, list(OUTPUTS), inputs, self.threads))


class Contrib(Onnxruntime):
    name = "onnxruntime_linear_contrib"
    library = f"onnxruntime {onnxruntime.__version__}, com.microsoft.LinearAttention, CPUExecutionProvider"
    domain = "com.microsoft"
    version = 1
    cannot = {**Onnxruntime.cannot, "dtype=bf16": "the kernel is registered for float and float16"}


class DeltaNet(Refusing):
    """onnxruntime's GatedDeltaNet: tokens of all sequences in a row, the state transposed and always of float32."""

    name = "onnxruntime_delta_net"
    library = f"onnxruntime {onnxruntime.__version__}, com.microsoft.GatedDeltaNet, CPUExecutionProvider"
    inputs = ("query", "key", "value", "cu_seqlens", "decay", "beta", "initial_state")
    takes = (SHAPES | RULES | {"dtype=f32", "dtype=f16"}) - {"op=attention", "seq=LqxLk", "grouped heads"}
    cannot = {
        "op=attention": "GatedDeltaNet has no softmax",
        "grouped heads": "num_heads_q must equal num_heads_k",
        "dtype=f64": "the kernel is registered for float and float16",
        "dtype=bf16": "the kernel is registered for float and float16",
    }

    def __init__(self) -> None:
        self._sessions = Sessions()

    def attention(
        self, q: Any, k: Any, v: Any, *, op: str = "linear", scale: Any = None, decay: Any = None, beta: Any = None,
        state: Any = None, outputs: Any = ("o",),
    ) -> Any:  # fmt: skip
        batch, heads, tokens, _ = q.shape
        attributes: dict[str, Any] = {"update_rule": op}
        if scale is not None:
            attributes["scale"] = float(scale)
        inputs = {name: _in_a_row(array) for name, array in (("query", q), ("key", k), ("value", v))}
        if decay is not None:
            inputs["decay"] = _in_a_row(decay) if decay.shape[3] == q.shape[3] else _in_a_row(decay)[..., 0]
        if beta is not None:
            inputs["beta"] = _in_a_row(np.broadcast_to(beta, (batch, heads, tokens, 1)))[..., 0]
        first = np.zeros((batch, heads, q.shape[3], v.shape[3])) if state is None else state
        inputs["initial_state"] = np.ascontiguousarray(np.swapaxes(first, 2, 3), np.float32)
        made = self._sessions.run(
            (op, scale, *((name, array.dtype.name, array.ndim) for name, array in inputs.items())),
            lambda: self._model(attributes, inputs), ["output", "final_state"], inputs, self.threads,
        )  # fmt: skip
        o = made["output"].reshape(batch, tokens, heads, v.shape[3]).swapaxes(1, 2)
        if len(outputs) == 1:
            return o
        return {"o": o, "present_state": np.swapaxes(made["final_state"], 2, 3).astype(q.dtype)}

    def _model(self, attributes: Mapping[str, Any], inputs: Mapping[str, np.ndarray]) -> onnx.ModelProto:
        given = {name: (name, TYPES[array.dtype.name], array.ndim) for name, array in inputs.items()}
        made = [("output", given["query"][1], 3), ("final_state", TYPES["float32"], 4)]
        wanted = [given.get(name) for name in self.inputs]
        return one_node("GatedDeltaNet", "com.microsoft", 1, attributes, wanted, made)

    def refuse(self, call: Any) -> Optional[str]:
        if 0 in (call.batch, call.query_heads, call.query_length):
            return "a size 0: total_tokens must be positive, says the kernel, and so do heads"
        if "scale" in call.features and call.scale == 0:
            return "scale: 0.0 stands for the default, says the operator"
        return None


def _in_a_row(array: np.ndarray) -> np.ndarray:
    """B,H,T,D as B*T,H,D."""
    batch, heads, tokens, dim = array.shape
    return np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(batch * tokens, heads, dim)
