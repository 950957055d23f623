"""A model in ONNX as its graph: shapes of what flows through it, constants, and who makes what."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, Iterator, Mapping, Optional

import numpy as np

from attest import _attest

Shape = tuple[int, ...]
_MOST_ELEMENTS = 1 << 20  #: of what is computed here: sizes and masks, no activations
_ROUNDS = 12
#: Operators of com.microsoft whose first output is shaped as their first input.
_SHAPED_AS_INPUT = {
    "BiasGelu", "FastGelu", "Gelu", "QuickGelu", "RotaryEmbedding", "SimplifiedLayerNormalization",
    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "GroupQueryAttention", "MultiHeadAttention",
}  # fmt: skip


class Graph:
    """The main graph of a model, with those inside its nodes put beside it. `sizes` are for dimensions that the file
    leaves open, by the dimension's name or as "input.axis". Raises UserError where one is missing, or for no model."""

    def __init__(self, path: str, sizes: Mapping[str, int]) -> None:
        self.path = path
        self.onnx = onnx_package(path)
        model = self._load()
        self._fix_sizes(model, sizes)
        self.constants: dict[str, Any] = {}
        self.shapes: dict[str, Shape] = {}
        self.types: dict[str, str] = {}
        self._compute_shapes(model)
        self.nodes = list(_nodes_of(model.graph))
        self.producers = {name: node for node in self.nodes for name in node.output if name}
        self.consumers: dict[str, list[Any]] = defaultdict(list)
        for node in self.nodes:
            for name in node.input:
                self.consumers[name].append(node)

    def attribute(self, node: Any, name: str, default: Any = None) -> Any:
        """The value of a node's attribute."""
        for one in node.attribute:
            if one.name == name:
                return self.onnx.helper.get_attribute_value(one)
        return default

    def given(self, node: Any, index: int) -> str:
        """The name of an input, "" where it is left out."""
        return str(node.input[index]) if index < len(node.input) else ""

    def shape(self, name: str) -> Optional[Shape]:
        """None where it isn't known."""
        return self.shapes.get(name) if name else None

    def scalar(self, name: str) -> Optional[float]:
        """The number that a constant of one element holds."""
        value = self.constants.get(name)
        if value is None or value.size != 1 or value.dtype.kind not in "fiu":
            return None
        return float(value.reshape(()))

    def _load(self) -> Any:
        try:
            return self.onnx.load(self.path, load_external_data=False)
        except OSError as error:
            raise _attest.UserError(f"{self.path}: {error.strerror}; name a model in ONNX") from None
        except Exception as error:  # of protobuf, whose types differ between its versions
            raise _attest.UserError(f"{self.path}: is no model in ONNX: {type(error).__name__}") from None

    def _fix_sizes(self, model: Any, sizes: Mapping[str, int]) -> None:
        stored = {one.name for one in model.graph.initializer}
        used, missing = set[str](), dict[str, str]()
        for one in model.graph.input:
            if one.name in stored or not one.type.HasField("tensor_type"):
                continue
            for axis, dim in enumerate(one.type.tensor_type.shape.dim):
                place = f"{one.name}.{axis}"
                keys = [key for key in (place, dim.dim_param) if key in sizes]
                used.update(keys)
                if keys:
                    dim.dim_value = sizes[keys[0]]
                elif dim.dim_value < 1:
                    name = dim.dim_param if dim.dim_param.strip("?") else place
                    missing.setdefault(name, place)
        if unknown := sorted(set(sizes) - used):
            raise _attest.UserError(f"--size {unknown[0]}: no input of {self.path} has a dimension of this name")
        if missing:
            words = " ".join(f"--size {name}=N" for name in missing)
            raise _attest.UserError(f"{self.path}: leaves sizes of its inputs open; say {words}")

    def _compute_shapes(self, model: Any) -> None:
        """Infers shapes, computes what they determine (such as the target of a reshape), and infers again."""
        del model.graph.value_info[:]
        values = {one.name: one for one in model.graph.initializer}
        self.constants = {name: self._array(one) for name, one in values.items() if _elements(one.dims) <= _MOST_ELEMENTS}
        known = -1
        for _ in range(_ROUNDS):
            try:
                model_now = self.onnx.shape_inference.infer_shapes(model, data_prop=True)
            except Exception as error:  # the library's own, of several types
                raise _attest.UserError(f"{self.path}: shapes can't be inferred: {str(error).splitlines()[0]}") from None
            self._take_shapes(model_now.graph)
            added = self._fold(model) + self._add_shapes(model)
            if not added and len(self.shapes) == known:
                return
            known = len(self.shapes)

    def _array(self, tensor: Any) -> Any:
        if tensor.data_location == tensor.EXTERNAL:
            return None
        return self.onnx.numpy_helper.to_array(tensor)

    def _take_shapes(self, graph: Any) -> None:
        for one in graph.initializer:
            self.shapes[one.name] = tuple(one.dims)
            self.types[one.name] = self.onnx.TensorProto.DataType.Name(one.data_type)
        for one in (*graph.input, *graph.value_info, *graph.output):
            if not one.type.HasField("tensor_type"):
                continue
            tensor = one.type.tensor_type
            self.types[one.name] = self.onnx.TensorProto.DataType.Name(tensor.elem_type)
            if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
                self.shapes[one.name] = tuple(dim.dim_value for dim in tensor.shape.dim)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    self._take_shapes(attribute.g)

    def _fold(self, model: Any) -> int:
        """Replaces nodes whose results are determined by constants. The number of them."""
        self.constants = {name: value for name, value in self.constants.items() if value is not None}
        left, folded = [], 0
        for node in model.graph.node:
            results = self._results_of(node)
            if results is None:
                left.append(node)
                continue
            folded += 1
            for name, value in zip(node.output, results):
                if name:
                    self.constants[name] = value
                    model.graph.initializer.append(self.onnx.numpy_helper.from_array(value, name))
        del model.graph.node[:]
        model.graph.node.extend(left)
        return folded

    def _results_of(self, node: Any) -> Optional[list[Any]]:
        inputs = [name for name in node.input if name]
        if node.op_type == "Shape" and node.domain in ("", "ai.onnx"):
            shape = self.shapes.get(node.input[0])
            if shape is None:
                return None
            cut = slice(self.attribute(node, "start", 0), self.attribute(node, "end"))
            return [np.array(shape[cut], np.int64)]
        if any(name not in self.constants for name in inputs) or node.domain not in ("", "ai.onnx"):
            return None
        if node.op_type.startswith("Random") or any(one.HasField("g") for one in node.attribute):
            return None
        if sum(self.constants[name].size for name in inputs) > _MOST_ELEMENTS:
            return None
        if any(_elements(self.shapes.get(name, (1,))) > _MOST_ELEMENTS for name in node.output):
            return None
        try:
            from onnx.reference import ReferenceEvaluator

            values = ReferenceEvaluator(node).run(None, {name: self.constants[name] for name in inputs})
        except Exception:  # an operator that the evaluator lacks: its shape stays unknown
            return None
        return [np.asarray(value) for value in values]

    def _add_shapes(self, model: Any) -> int:
        """Shapes of operators that ONNX itself doesn't define. The number of them."""
        added = 0
        for node in model.graph.node:
            first = self.shape(self.given(node, 0))
            if node.domain != "com.microsoft" or not node.output or node.output[0] in self.shapes or first is None:
                continue
            if node.op_type == "Attention":
                weights = self.shape(self.given(node, 1))
                sizes = self.attribute(node, "qkv_hidden_sizes")
                width = sizes[2] if sizes else (weights[1] // 3 if weights else 0)
                first = (*first[:-1], width) if width else ()
            elif node.op_type == "MatMulNBits":
                first = (*first[:-1], self.attribute(node, "N", 0))
            elif node.op_type == "GroupQueryAttention" and not self.given(node, 1):
                heads, key_heads = self.attribute(node, "num_heads", 1), self.attribute(node, "kv_num_heads", 1)
                first = (*first[:-1], first[-1] // (heads + 2 * key_heads) * heads)
            elif node.op_type == "MultiHeadAttention" and len(first) == 5:
                first = (*first[:2], first[2] * first[4])
            elif node.op_type not in _SHAPED_AS_INPUT:
                continue
            if first:
                kind = self.onnx.TensorProto.DataType.Value(self.types.get(node.input[0], "FLOAT"))
                model.graph.value_info.append(self.onnx.helper.make_tensor_value_info(node.output[0], kind, first))
                self.shapes[node.output[0]] = first
                added += 1
        return added


def onnx_package(path: str) -> Any:
    """The package onnx. Raises UserError, about what is wanted with it, where it isn't installed."""
    try:
        import onnx
        import onnx.shape_inference
    except ImportError:
        raise _attest.UserError(f"{path}: models in ONNX need the package onnx; pip install onnx") from None
    return onnx


def _nodes_of(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes_of(attribute.g)


def _elements(shape: Any) -> int:
    return math.prod(shape)
