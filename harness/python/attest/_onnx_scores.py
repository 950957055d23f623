"""Attention as ONNX models spell it out: a product, a scale, a mask, a softmax and a second product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, Optional

import numpy as np

from attest._onnx_graph import Graph, Shape

_SAME_NUMBERS = {"Cast", "DequantizeLinear", "Dropout", "Identity", "QuantizeLinear"}
_MOST_STEPS = 24  #: between a softmax and a product


@dataclass
class Mask:
    """What hides keys, or is added to scores."""

    name: str  # of the tensor
    additive: bool
    true_hides: bool = False
    changed: bool = False  #: whether what is added is scaled or capped behind the sum


@dataclass
class Spelled:
    """One softmax with the two products around it."""

    softmax: Any
    query: str  # names of tensors: (..., queries, dim)
    key: str  # (..., dim, keys)
    value: str  # (..., keys, value dim)
    weights: str  # (..., queries, keys)
    scale: float
    softcap: Optional[float]
    masks: list[Mask]
    quantised: bool  # numbers are rounded to 8 bits on the way
    scale_of_scores: float  # the part of the scale that stands behind the first product


class NotRead(Exception):
    """Why a softmax between two products is no attention that a line has."""


def spelled_out(graph: Graph) -> Iterator[tuple[Any, Optional[Spelled], str]]:
    """Each softmax whose result goes into a product: as attention, or with the reason why it is none."""
    for node in graph.nodes:
        if node.op_type != "Softmax":
            continue
        product = _product_behind(graph, node)
        if product is None:
            continue
        try:
            yield node, _read(graph, node, *product), ""
        except NotRead as reason:
            yield node, None, str(reason)


def _product_behind(graph: Graph, softmax: Any) -> Optional[tuple[Any, bool]]:
    """The product whose first factor is the softmax, and whether 8 bits lie between."""
    name, quantised = softmax.output[0], False
    for _ in range(_MOST_STEPS):
        following = [one for one in graph.consumers.get(name, []) if one.op_type != "Shape"]
        product = next((one for one in following if one.op_type == "MatMul" and one.input[0] == name), None)
        if product is not None:
            return product, quantised
        passed = next((one for one in following if one.op_type in _SAME_NUMBERS | {"Where", "Mul", "Reshape"}), None)
        if passed is None:
            return None
        if passed.op_type == "Mul" and graph.scalar(passed.input[1]) is None:
            return None  # a mean with weights, spelled out
        quantised = quantised or passed.op_type == "QuantizeLinear"
        name = passed.output[0]
    return None


class _Path:
    """The way from a softmax up to the product of q and k."""

    def __init__(self, graph: Graph, weights: Shape) -> None:
        self.graph, self.weights = graph, weights
        self.scale = 1.0
        self.softcap: Optional[float] = None
        self.masks: list[Mask] = []
        self.quantised = False

    def product(self, name: str, steps: int = 0) -> Any:
        node = self.graph.producers.get(name)
        if node is None or steps > _MOST_STEPS:
            raise NotRead("its scores are no product")
        if node.op_type == "MatMul":
            if any(one in self.graph.constants for one in node.input):
                raise NotRead("its scores are a product with weights")
            return node
        return self.product(self._through(node), steps + 1)

    def _through(self, node: Any) -> str:
        """Takes what a node does to the scores. The name of its input that leads to the product."""
        graph, inputs = self.graph, node.input
        if node.op_type in _SAME_NUMBERS:
            self.quantised = self.quantised or node.op_type == "QuantizeLinear"
            return str(inputs[0])
        if node.op_type == "Reshape" and _same_ends(graph.shape(inputs[0]), graph.shape(node.output[0])):
            return str(inputs[0])
        if node.op_type in ("Mul", "Div"):
            return self._scaled(node)
        if node.op_type == "Tanh":
            self.softcap = self.scale  # times tanh of what is divided by it, which counts into the scale below
            return str(inputs[0])
        if node.op_type == "Add":
            scores = [one for one in inputs if self._leads_to_product(one)]
            if len(scores) == 2:
                raise NotRead("two products are added to its scores")
            if len(scores) == 1:
                other = inputs[1] if scores[0] == inputs[0] else inputs[0]
                self.masks.append(Mask(str(other), True, changed=self.scale != 1 or self.softcap is not None))
                return str(scores[0])
        if node.op_type == "Where":
            for scores_at, filled_at in ((1, 2), (2, 1)):
                if graph.scalar(inputs[filled_at]) is not None or inputs[filled_at] in graph.constants:
                    capped = self.softcap is not None
                    self.masks.append(Mask(str(inputs[0]), False, true_hides=scores_at == 2, changed=capped))
                    return str(inputs[scores_at])
        raise NotRead(f"{node.op_type} stands between its product and its softmax")

    def _scaled(self, node: Any) -> str:
        for scores, factor in ((node.input[0], node.input[1]), (node.input[1], node.input[0])):
            value = self.graph.scalar(factor)
            if value is not None and not (node.op_type == "Div" and scores == node.input[1]):
                self.scale *= 1 / value if node.op_type == "Div" else value
                return str(scores)
        raise NotRead(f"its scores are changed by {node.op_type} with a tensor")

    def _leads_to_product(self, name: str) -> bool:
        other = _Path(self.graph, self.weights)
        try:
            node = other.product(name)
        except NotRead:
            return False
        shape = self.graph.shape(node.output[0])
        return shape is None or shape[-2:] == self.weights[-2:]


def _read(graph: Graph, softmax: Any, product: Any, quantised: bool) -> Spelled:
    weights = graph.shape(softmax.output[0]) or graph.shape(softmax.input[0])
    if weights is None:
        raise NotRead("its shape isn't known")
    axis = graph.attribute(softmax, "axis", -1)
    if axis not in (-1, len(weights) - 1):
        raise NotRead(f"it runs over axis {axis}")
    path = _Path(graph, weights)
    scores = path.product(softmax.input[0])
    query, key = str(scores.input[0]), str(scores.input[1])
    scale_of_scores = path.scale
    for name in (query, key):
        path.scale *= _factor_before(graph, name)
    read = Spelled(
        softmax, query, key, str(product.input[1]), str(softmax.output[0]), path.scale, path.softcap, path.masks,
        path.quantised or quantised, scale_of_scores,
    )  # fmt: skip
    for name in (read.query, read.key, read.value):
        if graph.shape(name) is None:
            raise NotRead(f"the shape of {name} isn't known")
    return read


def _factor_before(graph: Graph, name: str) -> float:
    """The product of the numbers that q or k is multiplied by, on its way from its projection."""
    factor = 1.0
    for _ in range(_MOST_STEPS):
        node = graph.producers.get(name)
        if node is None:
            break
        if node.op_type in _SAME_NUMBERS | {"Transpose"}:
            name = node.input[0]
            continue
        value = graph.scalar(node.input[1]) if node.op_type in ("Mul", "Div") else None
        if value is None:
            break
        factor *= 1 / value if node.op_type == "Div" else value
        name = node.input[0]
    return factor


def _same_ends(before: Optional[Shape], after: Optional[Shape]) -> bool:
    return before is not None and after is not None and before[-2:] == after[-2:]


def is_causal(graph: Graph, mask: Mask, queries: int, keys: int) -> Optional[str]:
    """Where the diagonal of a constant mask lies, "top-left" or "bottom-right"; None of all other masks."""
    value = graph.constants.get(mask.name)
    if value is None or value.ndim < 2 or value.shape[-2:] != (queries, keys) or value.size != queries * keys:
        return None
    flat = value.reshape(queries, keys)
    visible = flat > -1e4 if mask.additive else (~flat.astype(bool) if mask.true_hides else flat.astype(bool))
    if mask.additive and not np.all(flat[visible] == 0):
        return None
    for align, offset in (("bottom-right", keys - queries), ("top-left", 0)):
        if np.array_equal(visible, np.tri(queries, keys, offset, dtype=bool)):
            return align
    return None
