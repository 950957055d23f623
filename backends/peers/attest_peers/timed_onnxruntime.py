"""onnxruntime's operators for timing: inputs and outputs are bound before the clock starts, and the run is Run()."""

from __future__ import annotations

from typing import Any, Callable, Hashable, Mapping, Optional

import numpy as np
import onnxruntime

from attest_peers import onnxruntime_attention, onnxruntime_contrib
from attest_peers.onnx_node import model_of, node_of, separate, side_by_side
from attest_peers.readied import Readied
from attest_peers.request import Request


def bound(session: Any, given: Mapping[str, np.ndarray], made: Mapping[str, Any], o: Any) -> Callable[[], Any]:
    """The session's Run() on these arrays, without a copy, which gives `o`. Of `made` an item may be one of `given`: it
    is updated."""
    binding = session.io_binding()
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in given.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for name, array in made.items():
        value = values[array] if isinstance(array, str) else onnxruntime.OrtValue.ortvalue_from_numpy(array)
        binding.bind_ortvalue_output(name, value)

    def run(held: Mapping[str, Any] = values) -> Any:  # the binding holds no memory of NumPy
        session.run_with_iobinding(binding)
        return o

    return run


class Attention(Readied, onnxruntime_attention.Backend):
    """ONNX's own operator."""

    def readied(self, q: Any, k: Any, v: Any, request: Request, key: Optional[Hashable]) -> Callable[[], Any]:
        node = self.keep(key, lambda: node_of(q, k, v, request, self.opset, None, False, self.every_row))
        model = node.key()
        session = self._sessions.session(model, lambda: model_of(model), self.threads)
        given = {
            **node.inputs,
            "Q": np.ascontiguousarray(q),
            "K": np.ascontiguousarray(k),
            "V": np.ascontiguousarray(v),
        }
        o = self.buffer("o", (*q.shape[:3], v.shape[3]), q.dtype)
        return bound(session, given, {"Y": o}, o)


class MultiHeadAttention(Readied, onnxruntime_contrib.MultiHeadAttention):
    """Heads lie side by side, as the operator has them."""

    def readied(self, q: Any, k: Any, v: Any, request: Request, key: Optional[Hashable]) -> Callable[[], Any]:
        attributes, kept, asked = self.keep(key, lambda: with_arrays(*self.node(q, k, v, request)))
        given = {**kept, "query": side_by_side(q), "key": side_by_side(k), "value": side_by_side(v)}
        packed = self.buffer("o", (q.shape[0], q.shape[2], q.shape[1] * v.shape[3]), q.dtype)
        o = separate(packed, q.shape[1])
        return bound(self.session_of(attributes, given, asked), given, {"output": packed}, o)


class GroupQueryAttention(Readied, onnxruntime_contrib.GroupQueryAttention):
    """Where keys come before the queries, one buffer holds past and present keys, as a program that decodes has it."""

    def readied(self, q: Any, k: Any, v: Any, request: Request, key: Optional[Hashable]) -> Callable[[], Any]:
        attributes, kept, asked = self.keep(key, lambda: with_arrays(*self.node(q, k, v, request)))
        before = request.keys - request.queries
        new = {"query": q, "key": k[:, :, before:], "value": v[:, :, before:]}
        given = {**kept, **{name: side_by_side(array) for name, array in new.items()}}
        packed = self.buffer("o", (q.shape[0], q.shape[2], q.shape[1] * v.shape[3]), q.dtype)
        made: dict[str, Any] = {"output": packed}
        cache = {name: self.buffer(name, array.shape, q.dtype) for name, array in (("key", k), ("value", v))}
        if before:  # the last rows are written again, with what stands there
            np.copyto(cache["key"], k)
            np.copyto(cache["value"], v)
            given.update(past_key=cache["key"], past_value=cache["value"])
            made.update(present_key="past_key", present_value="past_value")
        else:
            made.update(present_key=cache["key"], present_value=cache["value"])
        o = separate(packed, q.shape[1])
        return bound(self.session_of(attributes, given, asked), given, made, o)


def with_arrays(
    attributes: dict[str, Any], given: Mapping[str, Any], asked: list[str]
) -> tuple[dict[str, Any], dict[str, np.ndarray], list[str]]:
    """The node with its inputs laid out one element after the other."""
    return attributes, {name: np.ascontiguousarray(array) for name, array in given.items()}, asked
