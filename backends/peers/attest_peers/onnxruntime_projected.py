"""onnxruntime's operator Attention of com.microsoft, which projects one input to queries, keys and values.

onnxruntime/contrib_ops/cpu/bert/: attention.cc, attention_base.cc, attention_cpu_base.h, attention_helper.h; what it
takes is in docs/ContribOperators.md.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Mapping, Optional

import numpy as np
import onnxruntime

from attest_peers.onnx_node import separate, side_by_side
from attest_peers.onnxruntime_contrib import Contrib
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES
from attest_peers.request import Request

MOST_COLUMNS = 4096  #: of the identity that projects: 64 MiB


class Attention(Contrib):
    """Weights are an identity, and the input is q, k and v side by side. Keys before the queries are cached ones."""

    name = "onnxruntime_attention"
    library = f"onnxruntime {onnxruntime.__version__}, com.microsoft.Attention, CPUExecutionProvider"
    operator = "Attention"
    inputs = ("input", "weights", "bias", "mask_index", "past", "attention_bias", "past_sequence_length")
    outputs = ("output", "present")
    ranks = {"output": 3, "present": 5}
    takes = (SHAPES | HIDING | ADDING | CACHE | {"dtype=f32", "out=present"}) - {"grouped heads"}
    cannot = {
        "grouped heads": "query, key and value have num_heads heads each; docs/ContribOperators.md",
        "dtype=f64": "the kernel is registered for float alone; attention.cc",
        "dtype=f16": "the kernel is registered for float alone; attention.cc",
        "dtype=bf16": "the kernel is registered for float alone; attention.cc",
        "softcap": "the operator has no attribute for it",
        "sinks": "the operator has no input for it",
        "dropout": "the operator has no input for it",
        "out=lse": "the operator has no such output",
        "out=weights": "the operator has no such output",
        "out=biased": "the operator has no such output",
        "out=raw": "the operator has no such output",
        "out=capped": "the operator has no such output",
    }
    conventions = {  # type: ignore[assignment]
        "hidden_nan": "leaks", "empty_row": "mean of v, or nan where a bias hides"
    }  # fmt: skip

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        made = self.run_node(*self.node(q, k, v, request))
        o = separate(made["output"], q.shape[1])
        if len(request.outputs) == 1:
            return o
        return {"o": o, "present_k": made["present"][0], "present_v": made["present"][1]}

    def node(self, q: Any, k: Any, v: Any, request: Request) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        k, v = request.with_cached(k, v)
        before = request.keys - request.queries
        parts = [side_by_side(array) for array in (q, k[:, :, before:], v[:, :, before:])]
        columns = sum(part.shape[2] for part in parts)
        attributes: dict[str, Any] = {"num_heads": int(q.shape[1])}
        if q.shape[3] != v.shape[3]:
            attributes["qkv_hidden_sizes"] = [part.shape[2] for part in parts]
        if request.scale is not None:
            attributes["scale"] = float(request.scale)
        given: dict[str, Any] = {
            "input": np.concatenate(parts, 2), "weights": np.eye(columns, dtype=q.dtype),
            "bias": np.zeros(columns, q.dtype),
        }  # fmt: skip
        asked = ["output"]
        if before:
            given["past"] = np.stack([k[:, :, :before], v[:, :, :before]])
            asked.append("present")
        if at_end(request):
            attributes["unidirectional"] = 1
            request = replace(request, causal=False)
        visible = of_all_heads(request.visible())
        if request.adds or (visible is not None and visible.shape[1] > 1):
            given["attention_bias"] = self.bias_of(request, visible, q.dtype)
        elif visible is not None:
            # Its default of -10000 hides nothing from scores of that size.
            attributes["mask_filter_value"] = float(np.finfo(np.float32).min)
            shape = (request.batch, visible.shape[2], request.keys)
            given["mask_index"] = mask_index(np.broadcast_to(visible[:, 0], shape))
        return attributes, given, asked

    def cannot_do(self, call: Any) -> Optional[str]:
        if 0 in (call.batch, call.query_length, call.query_heads):
            return "a size 0: num_heads > 0, says the kernel, and an input without elements projects to none"
        if call.key_length < call.query_length:
            return "seq=LqxLk: queries, keys and values are projected from the same tokens"
        before = call.key_length > call.query_length
        if before and call.key_dim != call.value_dim:
            return "past: 'past' expect k_hidden_size == v_hidden_size, says the kernel"
        per_head = "alibi" in call.features or re.search("(mask=(bool|add):.H|blocks=)", call.line)
        if before and ("mask=add" in call.features or per_head):
            return "past: Attention cannot have both past and attention_bias, says the kernel"
        if "out=present" in call.features and not (call.past and before):
            return 'out=present: past and present "shall be used together"; docs/ContribOperators.md'
        if call.query_heads * (2 * call.key_dim + call.value_dim) > MOST_COLUMNS:
            return f"heads and dim: an identity of more than {MOST_COLUMNS} columns would project"
        return super().cannot_do(call)

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # ComputeAttentionProbs() and MlasComputeSoftmax(), as MultiHeadAttention has them.
        return {"division": "reciprocal", "normalised_before_storage": True, "flush_to_zero": True}


def at_end(r: Request) -> bool:
    """Whether `causal` puts the last query at the last key."""
    if r.window != (None, None) or r.prefix or r.segments or not r.causal:
        return False
    if r.align == "bottom-right" and not r.past:
        return not r.lengths_given
    return r.past + r.queries == r.keys


def of_all_heads(visible: Optional[np.ndarray]) -> Optional[np.ndarray]:
    """With one axis for all heads, where they see the same."""
    alike = visible is not None and bool((visible == visible[:, :1]).all())
    return visible[:, :1] if visible is not None and alike else visible


def mask_index(visible: np.ndarray) -> np.ndarray:
    """Of B,L or 1,S the shortest form that the operator takes: ends, ends and starts, keys, or keys of each query."""
    if visible.shape[1] > 1:
        return visible.astype(np.int32)
    keys = visible[:, 0]
    ends = np.where(keys.any(1), keys.shape[1] - keys[:, ::-1].argmax(1), 0)
    starts = keys.argmax(1)
    if not np.array_equal(keys.sum(1), ends - starts):
        return keys.astype(np.int32)
    return np.concatenate([ends, starts] if starts.any() else [ends]).astype(np.int32)
