"""A model of one node for any sizes, and onnxruntime's sessions of such models."""

from __future__ import annotations

from typing import Any, Hashable, Mapping, Optional

import numpy as np
from onnx import ModelProto, TensorProto, helper

TYPES = {
    "float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16, "bool": TensorProto.BOOL, "int64": TensorProto.INT64, "int32": TensorProto.INT32,
    "int8": TensorProto.INT8, "uint8": TensorProto.UINT8,
}  # fmt: skip

#: Of an input or output: its name, type and rank.
Tensor = tuple[str, int, int]


def one_node(
    operator: str, domain: str, version: int, attributes: Mapping[str, Any], inputs: list[Optional[Tensor]],
    outputs: list[Optional[Tensor]],
) -> ModelProto:  # fmt: skip
    """None is an input or output that is left out."""
    names = [[each[0] if each else "" for each in side] for side in (inputs, outputs)]
    for side in names:
        while not side[-1]:
            side.pop()
    given, made = (
        [helper.make_tensor_value_info(name, kind, [None] * rank) for name, kind, rank in filter(None, side)]
        for side in (inputs, outputs)
    )
    node = helper.make_node(operator, *names, domain=domain, **attributes)
    versions = [helper.make_opsetid(domain, version)] + ([helper.make_opsetid("", 24)] if domain else [])
    return helper.make_model(helper.make_graph([node], "attention", given, made), opset_imports=versions, ir_version=10)


class Sessions:
    """onnxruntime's, on processors; the last few are kept."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def session(self, key: Hashable, model: Any, threads: int) -> Any:
        """Of the model that `model()` makes, which is one for each `key`."""
        import onnxruntime

        if key not in self._kept:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            options.log_severity_level = 4
            if len(self._kept) > 30:
                self._kept.clear()
            self._kept[key] = onnxruntime.InferenceSession(
                model().SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        return self._kept[key]

    def run(self, key: Hashable, model: Any, outputs: list[str], given: Mapping[str, np.ndarray], threads: int) -> Any:
        """`outputs` of that session."""
        return dict(zip(outputs, self.session(key, model, threads).run(outputs, dict(given))))
