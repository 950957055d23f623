"""OpenVINO's ScaledDotProductAttention-13 for timing: compiled for the sizes of the call, on tensors as they lie.

One request, f32, PERFORMANCE_HINT LATENCY. The CPU plug-in keeps its own kernel of this operator to models that hold a
cache of keys as their state, and makes products, softmax and fused loops ("snippets") of the others, as of this one.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Hashable, Optional

import numpy as np
import openvino
from openvino import opset13 as ops

from attest_peers.openvino_sdpa import Backend as Checked
from attest_peers.readied import Readied
from attest_peers.request import Request


class Backend(Readied, Checked):
    """Heads of keys are repeated for their group of queries in the model, as models that are exported say it."""

    takes = (Checked.takes | {"grouped heads"}) - {"a size 0"}
    cannot = {**Checked.cannot, "a size 0": "the model is compiled for one or more"}

    def readied(self, q: Any, k: Any, v: Any, request: Request, key: Optional[Hashable]) -> Callable[[], Any]:
        native = request.only_causal()
        arrays = [np.ascontiguousarray(array) for array in (q, k, v)]
        beside = self.keep(key, lambda: self._beside(q.dtype, request, native))
        given = arrays + beside
        inference = self._request(given, native)
        self._given = given  # the request reads them and doesn't hold them
        for place, array in enumerate(given):
            inference.set_input_tensor(place, openvino.Tensor(writeable(array), shared_memory=True))
        o = inference.get_output_tensor(0).data

        def run() -> Any:
            inference.infer(share_inputs=True, share_outputs=True)
            return o

        return run

    @staticmethod
    def _beside(dtype: Any, request: Request, native: bool) -> list[np.ndarray]:
        """The inputs behind q, k and v: a mask, and a scale."""
        mask = request.one_mask(None if native else request.visible(), dtype)
        if request.scale is None:
            return [] if mask is None else [np.ascontiguousarray(mask)]
        given = np.zeros((), dtype) if mask is None else np.ascontiguousarray(mask)
        return [given, np.asarray(request.scale, dtype)]

    def _request(self, inputs: list[np.ndarray], causal: bool) -> Any:
        key = tuple((array.shape, array.dtype.name) for array in inputs), causal
        if key not in self._compiled:
            self._compiled.clear()
            settings = {
                "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": self.threads, "PERFORMANCE_HINT": "LATENCY",
            }  # fmt: skip
            compiled = self._core.compile_model(_model(inputs, causal), "CPU", settings)
            self._compiled[key] = compiled, compiled.create_infer_request()
        return self._compiled[key][1]


def writeable(array: np.ndarray) -> np.ndarray:
    """The same memory: a Tensor takes no array that is for reading alone, and its inputs are only read."""
    if array.flags.writeable:
        return array
    memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    return np.ndarray(array.shape, array.dtype, memoryview(memory).cast("B"))


def _model(inputs: list[np.ndarray], causal: bool) -> Any:
    nodes = [ops.parameter(list(array.shape), array.dtype) for array in inputs]
    given = list(nodes)
    heads = inputs[0].shape[1]
    for place in (1, 2):
        batch, groups, length, dim = inputs[place].shape
        if groups == heads:
            continue
        apart = ops.unsqueeze(nodes[place], ops.constant(np.int64(2)))
        shape = np.array([batch, groups, heads // groups, length, dim], np.int64)
        repeated = ops.broadcast(apart, ops.constant(shape))
        whole = ops.constant(np.array([batch, heads, length, dim], np.int64))
        given[place] = ops.reshape(repeated, whole, False)
    return openvino.Model([ops.scaled_dot_product_attention(*given, causal=causal)], nodes, "attention")
