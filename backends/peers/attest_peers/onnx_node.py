"""A call as one node Attention of ONNX, as attest has it, and a model of the node for all sizes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import onnx
from attest._onnx_node import INPUTS, LACKS, MODES, TAKES, Node, node_of, separate, side_by_side, unsaid

from attest_peers.onnx_model import TYPES, one_node

__all__ = ["LACKS", "MODES", "TAKES", "Node", "model_of", "node_of", "separate", "side_by_side", "unsaid"]


@lru_cache(maxsize=64)
def model_of(key: tuple[Any, ...]) -> onnx.ModelProto:
    """A model of one node, for all sizes."""
    opset, attributes, types, with_present, with_scores = key
    given = {name: (name, TYPES[kind], rank) for name, kind, rank in types}
    _, storage, rank = given["Q"]
    present = [("present_key", storage, 4), ("present_value", storage, 4)] if with_present else [None, None]
    scores = [("scores", storage, 4)] if with_scores else []
    inputs = [given.get(name) for name in INPUTS]
    return one_node("Attention", "", opset, dict(attributes), inputs, [("Y", storage, rank), *present, *scores])
