"""oneDNN's graph of scaled dot-product attention: MatMul, Multiply, Add, Select, SoftMax and MatMul as one partition.

doc/graph/complex_fusion/sdpa.md and gqa.md; src/graph/backend/dnnl/kernels/sdp.cpp.
"""

from __future__ import annotations

from ctypes import byref, c_size_t, c_void_p
from importlib.metadata import version
from typing import Any, Mapping, Optional

import numpy as np

from attest_peers import onednn_library as dnn
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request


class Backend(Peer):
    """What is hidden is selected to be -inf, after what is added. Heads in groups have an axis of their own."""

    name = "onednn_graph"
    library = f"oneDNN {version('onednn')}, graph, CPU by SYCL"
    takes = (SHAPES | HIDING | ADDING | CACHE | {"dtype=f32", "dtype=bf16"}) - {"a size 0"}
    cannot = {
        "a size 0": "dnnl_graph_partition_compile() refuses it",
        "softcap": "Tanh makes three partitions of the graph",
        "sinks": "the pattern has no place for it",
        "dropout": "the operator Dropout draws which weights it keeps by itself",
        "out=lse": "the partition has one output",
        "dtype=f64": "the pattern is of f32, bf16 and f16",
        "dtype=f16": "without AVX512-FP16 the graph is no partition",
    }
    conventions = {"align": "top-left", "hidden_nan": "leaks"}

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
        self._started()
        k, v = request.with_cached(k, v)
        batch, heads = q.shape[:2]
        groups = k.shape[1]
        grouped = groups != heads
        visible, added = request.visible(), request.bias_with(None, np.float32)

        def split(array: Any) -> np.ndarray:
            """Heads of queries as groups and heads in each; those of keys as groups and one."""
            if grouped:
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
        arrays["v"] = split(v)
        output = np.empty((*arrays["q"].shape[:-1], v.shape[-1]), q.dtype)
        self._graph(arrays, output).run(self._stream, list(arrays.values()), output)
        return output.reshape(batch, heads, request.queries, v.shape[-1])

    def _graph(self, arrays: Mapping[str, np.ndarray], output: np.ndarray) -> dnn.Graph:
        key = tuple((name, array.shape, array.dtype.name) for name, array in arrays.items())
        if key not in self._graphs:
            graph = dnn.Graph(self._dnnl, self._engine)
            given = {name: graph.given(array.shape, array.dtype.name) for name, array in arrays.items()}
            pairs = (*output.shape[:-1], arrays["k"].shape[-2])
            storage = output.dtype.name

            def score(kind: int, *inputs: Any, **attributes: Any) -> Any:
                return graph.operator(kind, inputs, pairs, "float32", attributes.get("said", {}))

            x = score(dnn.MATMUL, given["q"], given["k"], said={dnn.TRANSPOSE_B: True})
            x = score(dnn.MULTIPLY, x, given["scale"])
            if "added" in given:
                x = score(dnn.ADD, x, given["added"])
            if "visible" in given:
                x = score(dnn.SELECT, given["visible"], x, given["hidden"])
            weights = graph.operator(dnn.SOFTMAX, [x], pairs, storage, {dnn.AXIS: -1, dnn.MODE: "inf_as_zero"})
            graph.compile(graph.operator(dnn.MATMUL, [weights, given["v"]], output.shape, storage, {}))
            if len(self._graphs) > 30:
                self._graphs.clear()
            self._graphs[key] = graph
        return self._graphs[key]

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
        return {"normalised_before_storage": True, "stored_weights": call.dtype, "flush_to_zero": True}
