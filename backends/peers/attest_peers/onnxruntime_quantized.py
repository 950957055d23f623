"""onnxruntime's GroupQueryAttention with a cache of codes, on processors.

onnxruntime/contrib_ops/cpu/bert/gqa_attention_base.h and onnxruntime/core/mlas/lib/qkv_quant.cpp; what it takes is in
docs/ContribOperators.md, and docs/contrib_ops/cpu/gqa.md says which of that processors have.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np

from attest_peers.onnx_model import TYPES
from attest_peers.onnxruntime_contrib import LEAST_CACHE, GroupQueryAttention
from attest_peers.request import Request

CODES = ("i8", "i4")


class QuantizedCache(GroupQueryAttention):
    """Cached keys and values are handed over as codes. New ones are numbers, which the operator rounds to the codes
    that they were made of."""

    name = "onnxruntime_gqa_quantized"
    library = f"{GroupQueryAttention.library}, k_quant_type and v_quant_type"
    takes = (GroupQueryAttention.takes - {"out=present"}) | {
        "k.scale", "v.scale", "stored=i8", "stored=i4", "mixed types", "scales in e4m3", "scales in e8m0"
    }  # fmt: skip
    cannot = {
        **GroupQueryAttention.cannot,
        "out=present": "the cache that the operator gives is of codes",
        "q.scale": "the query is float or float16; docs/ContribOperators.md",
        "stored=e4m3": "processors have caches of 8 and 4 bits that are integers; docs/contrib_ops/cpu/gqa.md",
        "stored=e5m2": "the operator has no caches of it; docs/ContribOperators.md",
        "stored=e2m1": "the operator has no caches of it; docs/ContribOperators.md",
    }
    conventions = {"hidden_nan": "leaks", "empty_row": "nan"}  # type: ignore[assignment]

    def node(self, q: Any, k: Any, v: Any, request: Request) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        attributes, given, asked = super().node(q, k, v, request)
        bits = 8 if k.dtype == np.int8 else 4
        scales = {"key": scale_of(request.k_scales), "value": scale_of(request.v_scales)}
        per_channel = any(scale.size > 1 for scale in scales.values())
        for name in ("k_quant_type", "v_quant_type"):
            attributes[name] = "PER_CHANNEL" if per_channel else "PER_TENSOR"
        attributes["kv_cache_bit_width"] = bits
        heads = attributes["kv_num_heads"]
        for name, scale in scales.items():
            codes = given[name].astype(np.float32)
            columns = np.repeat(np.broadcast_to(scale, heads), codes.shape[2] // heads)
            given[name] = (codes * columns).astype(q.dtype)
            given[f"{name[0]}_scale"] = columns if per_channel else scale
            shape = (request.batch, heads, 0, codes.shape[2] // heads)
            past = given.get(f"past_{name}", np.zeros(shape, np.int8))  # none would be of the query's type
            given[f"past_{name}"] = stored(past.astype(np.int8), bits)
        return attributes, given, asked

    def type_of(self, output: str, attributes: Mapping[str, Any], storage: int) -> int:
        if not output.startswith("present"):
            return storage
        return TYPES["int8"] if attributes["kv_cache_bit_width"] == 8 else TYPES["uint8"]

    def cannot_do(self, call: Any) -> Optional[str]:
        tensors = ("q", "k", "v", "past_k", "past_v", "mask", "out", "weights")
        of = {name: call.option(f"{name}.dtype") for name in tensors}
        if of["k"] not in CODES or of["v"] != of["k"]:
            return "k.dtype: this is the cache of codes, and one type is for keys and values"
        if call.past and (of["past_k"] or of["k"], of["past_v"] or of["v"]) != (of["k"], of["v"]):
            return "past_k.dtype: the cache has one type"
        if any(of[name] not in (None, "", call.dtype) for name in ("q", "mask", "out", "weights")):
            return "mixed types: query, attention_bias and output have one type; docs/ContribOperators.md"
        for name in ("k", "v"):
            if (call.option(f"{name}.scale") or "tensor") not in ("tensor", "head"):
                return (
                    f"{name}.scale: PER_TENSOR or PER_CHANNEL, which is of a head's columns; docs/ContribOperators.md"
                )
            if call.option(f"{name}_scales.dtype") == "f64":
                return f"{name}_scales.dtype: scales are float; docs/ContribOperators.md"
        return super().cannot_do(call)

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # MlasFlashAttentionQuantizedKV() takes l2_cache_size / (32 head_size) keys a step and divides at the end. With
        # a soft cap, sinks or weights as an output, and with one key, the scores of a row are there at once.
        stated = {"division": "reciprocal", "flush_to_zero": True}
        if {"softcap", "sinks", "out=weights"} & set(call.features):
            return {**stated, "normalised_before_storage": True}
        features = -(-max(call.key_dim, call.value_dim) // 8) * 8
        block = max(1, LEAST_CACHE // (32 * features))
        return {**stated, "key_block": block if call.key_length > block else 0}


def scale_of(scales: Any) -> np.ndarray:
    """One number, or one for each head: `scales` has axes B, H, rows, blocks, of which those are alike."""
    if scales is None:
        return np.ones(1, np.float32)
    of_heads = np.asarray(scales, np.float32)[0, :, 0, 0]
    return of_heads[:1] if scales.strides[1] == 0 else of_heads


def stored(codes: np.ndarray, bits: int) -> np.ndarray:
    """As the cache has them: a byte each, or two to a byte as code + 8, the first in its low half."""
    if bits == 8:
        return codes
    halves = (codes + 8).astype(np.uint8)
    return halves[..., ::2] | halves[..., 1::2] << 4
