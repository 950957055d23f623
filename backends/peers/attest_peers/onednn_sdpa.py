"""oneDNN's graphs of scaled dot-product attention and of its gradients, each compiled as one partition.

doc/graph/fusion_patterns/sdpa.md and gqa.md; src/graph/backend/dnnl/patterns/sdp.cpp, kernels/sdp.hpp, sdp_bwd.hpp.
"""

from __future__ import annotations

from ctypes import byref, c_size_t, c_void_p
from importlib.metadata import version
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from attest_peers import onednn_library as dnn
from attest_peers.gradients import GRADIENTS
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request

Arrays = Mapping[str, np.ndarray]
Tensors = Mapping[str, dnn.LogicalTensor]


def scores(graph: dnn.Graph, given: Tensors) -> dnn.LogicalTensor:
    """Scaled, with what is added; then what is hidden is selected to be -inf."""
    pairs = (*given["q"].shape[:-1], given["k"].shape[-2])
    x = graph.operator(dnn.MATMUL, [given["q"], given["k"]], pairs, "float32", {dnn.TRANSPOSE_B: True})
    x = graph.operator(dnn.MULTIPLY, [x, given["scale"]], pairs, "float32", {})
    if "added" in given:
        x = graph.operator(dnn.ADD, [x, given["added"]], pairs, "float32", {})
    if "visible" in given:
        x = graph.operator(dnn.SELECT, [given["visible"], x, given["hidden"]], pairs, "float32", {})
    return x


def forward(graph: dnn.Graph, given: Tensors, results: Arrays) -> Sequence[dnn.LogicalTensor]:
    """The output, and logsumexp where `results` have it."""
    x, storage = scores(graph, given), results["o"].dtype.name
    outputs = [(x.shape, storage)] + [(results["lse"].shape, "float32") for name in results if name == "lse"]
    weights, *stats = graph.operator_with(dnn.SOFTMAX, [x], outputs, {dnn.AXIS: -1, dnn.MODE: "inf_as_zero"})
    return [graph.operator(dnn.MATMUL, [weights, given["v"]], results["o"].shape, storage, {}), *stats]


def backward(graph: dnn.Graph, given: Tensors, results: Arrays) -> Sequence[dnn.LogicalTensor]:
    """dq, dk and dv from the output and logsumexp."""
    x, storage = scores(graph, given), results["dq"].dtype.name

    def of_pairs(kind: int, *inputs: dnn.LogicalTensor) -> dnn.LogicalTensor:
        return graph.operator(kind, inputs, x.shape, "float32", {})

    def stored(tensor: dnn.LogicalTensor) -> dnn.LogicalTensor:
        if storage == "float32":
            return tensor
        return graph.operator(dnn.TYPE_CAST, [tensor], tensor.shape, storage, {})

    def of_keys(pairs: dnn.LogicalTensor, queries: dnn.LogicalTensor, result: np.ndarray) -> dnn.LogicalTensor:
        """Products over queries, added up over the heads of a group."""
        shape = (*queries.shape[:-2], *result.shape[-2:])
        each = graph.operator(dnn.MATMUL, [pairs, queries], shape, storage, {dnn.TRANSPOSE_A: True})
        if shape == result.shape:
            return each
        return graph.operator(dnn.REDUCE_SUM, [each], result.shape, storage, {dnn.AXES: [2], dnn.KEEP_DIMS: True})

    weights = of_pairs(dnn.EXP, of_pairs(dnn.SUBTRACT, x, given["lse"]))
    dv = of_keys(stored(weights), given["do"], results["dv"])
    of_weights = graph.operator(dnn.MATMUL, [given["do"], given["v"]], x.shape, "float32", {dnn.TRANSPOSE_B: True})
    products = graph.operator(dnn.MULTIPLY, [given["o"], given["do"]], given["o"].shape, "float32", {})
    last = {dnn.AXES: [len(x.shape) - 1], dnn.KEEP_DIMS: True}
    delta = graph.operator(dnn.REDUCE_SUM, [products], given["lse"].shape, "float32", last)
    of_scores = of_pairs(dnn.MULTIPLY, weights, of_pairs(dnn.SUBTRACT, of_weights, delta))
    scaled = stored(of_pairs(dnn.MULTIPLY, of_scores, given["scale"]))
    dk = of_keys(scaled, given["q"], results["dk"])
    dq = graph.operator(dnn.MATMUL, [scaled, given["k"]], results["dq"].shape, storage, {})
    return [dq, dk, dv]


class Backend(Peer):
    """What is hidden is selected to be -inf, after what is added. Heads in groups have an axis of their own."""

    name = "onednn_graph"
    library = f"oneDNN {version('onednn')}, graph, CPU by SYCL"
    takes = (
        SHAPES | HIDING | ADDING | CACHE | GRADIENTS | {"pass=backward", "dtype=f32", "dtype=bf16"}
    ) - {"a size 0", "out=dmask"}
    cannot = {
        "a size 0": "dnnl_graph_partition_compile() refuses it",
        "softcap": "Tanh makes three partitions of the graph",
        "sinks": "the pattern has no place for it",
        "dropout": "the operator Dropout draws which weights it keeps by itself",
        "out=lse": "the partition has one output",
        "out=dmask": "oneDNN does not reduce it over axes that the mask repeats, says its documentation",
        "dtype=f64": "the pattern is of f32, bf16 and f16",
        "dtype=f16": "without AVX512-FP16 the graph is no partition",
    }
    conventions = {"hidden_nan": "leaks"}

    def __init__(self) -> None:
        self._graphs: dict[Any, dnn.Graph] = {}
        self._dnnl: Any = None

    def _started(self) -> Any:
        """The library, started where it is used: a process that is forked has no copy of its threads."""
        if self._dnnl is None:
            self._dnnl, self._engine, self._stream = dnn.library(), c_void_p(), c_void_p()
            made = self._dnnl.dnnl_engine_create(byref(self._engine), dnn.CPU, c_size_t(0))
            if made or self._dnnl.dnnl_stream_create(byref(self._stream), self._engine, dnn.DEFAULT_FLAGS):
                raise RuntimeError("oneDNN has no engine for the processor")
        return self._dnnl

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        arrays = self._arrays(q, k, v, request)
        results = self._computed(forward, arrays, {"o": (*arrays["q"].shape[:-1], v.shape[-1])}, q.dtype)
        return results["o"].reshape(*q.shape[:3], v.shape[-1])

    def compute_gradients(self, q: Any, k: Any, v: Any, request: Request, do: Any, dlse: Any) -> Any:
        arrays = self._arrays(q, k, v, request)
        rows = arrays["q"].shape[:-1]
        if request.saved_lse is None:
            found = self._computed(forward, arrays, {"o": (*rows, v.shape[-1]), "lse": (*rows, 1)}, q.dtype)
        else:
            lse = np.where(np.isneginf(request.saved_lse), np.float32(0), request.saved_lse)
            saved = {"o": request.saved_o, "lse": lse}  # of a row that sees nothing SoftMax's stats are 0
            found = {name: np.ascontiguousarray(array).reshape(*rows, -1) for name, array in saved.items()}
        arrays = {**arrays, **found, "do": np.ascontiguousarray(do).reshape(*rows, -1)}
        shapes = {"d" + name: arrays[name].shape for name in ("q", "k", "v")}
        found.update(self._computed(backward, arrays, shapes, q.dtype))
        heads = {"o": q.shape[1], "dq": q.shape[1], "dk": k.shape[1], "dv": k.shape[1]}
        return {
            name: found[name].reshape(q.shape[0], heads[name], *found[name].shape[-2:]) for name in request.outputs
        }

    def _arrays(self, q: Any, k: Any, v: Any, request: Request) -> dict[str, np.ndarray]:
        """What both graphs are given, in the order of the operators that take it."""
        k, v = request.with_cached(k, v)
        heads, groups = q.shape[1], k.shape[1]
        visible, added = request.visible(), request.bias_with(None, np.float32)

        def split(array: Any) -> np.ndarray:
            """Heads of queries as groups and heads in each; those of keys as groups and one."""
            if groups != heads:
                of_head = array.shape[1] == heads
                shape = (groups, heads // groups) if of_head else (array.shape[1], 1)
                array = np.reshape(array, (array.shape[0], *shape, *array.shape[2:]))
            return np.ascontiguousarray(array)

        scale = q.shape[-1] ** -0.5 if request.scale is None else request.scale
        arrays = {"q": split(q), "k": split(k), "scale": np.array([scale], np.float32)}
        if added is not None:
            arrays["added"] = split(added)
        if visible is not None:
            arrays.update(visible=split(visible), hidden=np.array([-np.inf], np.float32))
        return {**arrays, "v": split(v)}

    def _computed(
        self, build: Callable[..., Any], arrays: Arrays, shapes: Mapping[str, Sequence[int]], dtype: Any
    ) -> dict[str, np.ndarray]:
        """Results of the graph, by name, of the storage's type but logsumexp."""
        self._started()
        results = {name: np.empty(shape, np.float32 if name == "lse" else dtype) for name, shape in shapes.items()}
        key = (build, *((name, array.shape, array.dtype.name) for name, array in {**arrays, **results}.items()))
        if key not in self._graphs:
            graph = dnn.Graph(self._dnnl, self._engine)
            given = {name: graph.given(array.shape, array.dtype.name) for name, array in arrays.items()}
            graph.compile(build(graph, given, results))
            if len(self._graphs) > 30:
                self._graphs.clear()
            self._graphs[key] = graph
        self._graphs[key].run(self._stream, list(arrays.values()), list(results.values()))
        return results

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.dtype == "bf16" and not dnn.processor_has_bf16():
            return "dtype=bf16: oneDNN computes in it on processors with AVX-512, or with AVX2 and conversions from bf16"
        if call.dtype == "bf16" and "mask.dtype=f64" in call.line:
            return "mask.dtype=f64: the sum of scores and mask is of f32"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # sdp_decomp_kernel_t: products of f32 scores by gemm, softmax in f32 whose output is of the storage's type. The
        # exp of src/cpu/x64/injectors/ gives 0 below exp(-86.6), 1.4 times the smallest normal number: the probe sees
        # what is lost of normal ones as an error of exp, which no statement covers.
        # Gradients, larger_partition_kernel_t: TypeCast before products, ReduceSum of what heads of a group stored.
        return {
            "normalised_before_storage": True, "stored_weights": call.dtype, "flush_to_zero": True,
            "stored_score_gradients": call.dtype, "stored_head_gradients": call.dtype,
        }  # fmt: skip
