"""onnxruntime's own operators MultiHeadAttention and GroupQueryAttention, domain com.microsoft, on processors.

onnxruntime/contrib_ops/cpu/bert/: multihead_attention.cc, attention_cpu_base.h, group_query_attention.cc,
gqa_attention_base.h; what they take is in docs/ContribOperators.md.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np
import onnxruntime

from attest_peers.onnx_model import TYPES, Sessions, one_node
from attest_peers.onnx_node import separate, side_by_side
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request

DOMAIN = "com.microsoft"
LEAST_CACHE = 256 * 1024  #: bytes of a processor's second level that are taken for granted


class Contrib(Peer):
    """One node. Hidden keys are -inf in attention_bias where the operator has no word for them."""

    operator = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    ranks: Mapping[str, int] = {"output": 3}  #: of outputs; 4 where it says nothing

    def __init__(self) -> None:
        self._sessions = Sessions()

    def node(self, q: Any, k: Any, v: Any, request: Request) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        """Attributes, inputs by name, and the outputs that are wanted."""
        raise NotImplementedError

    def run_node(self, attributes: Mapping[str, Any], given: Mapping[str, Any], asked: list[str]) -> Any:
        arrays = {name: np.ascontiguousarray(array) for name, array in given.items()}
        session = self.session_of(attributes, arrays, asked)
        return dict(zip(asked, session.run(asked, arrays)))

    def session_of(self, attributes: Mapping[str, Any], arrays: Mapping[str, np.ndarray], asked: list[str]) -> Any:
        types = {name: (name, TYPES[array.dtype.name], array.ndim) for name, array in arrays.items()}
        storage = types[self.inputs[0]][1]
        made = [(name, self.type_of(name, attributes, storage), self.ranks.get(name, 4)) for name in self.outputs]
        made = [one if one[0] in asked else None for one in made]
        said = tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in sorted(attributes.items()))
        key = (said, tuple(types.values()), tuple(asked))
        inputs = [types.get(name) for name in self.inputs]
        return self._sessions.session(
            key, lambda: one_node(self.operator, DOMAIN, 1, attributes, inputs, made), self.threads
        )

    def type_of(self, output: str, attributes: Mapping[str, Any], storage: int) -> int:
        """The type of an output, where inputs have the type `storage`."""
        return storage

    @staticmethod
    def bias_of(request: Request, visible: Optional[np.ndarray], dtype: Any) -> Optional[np.ndarray]:
        """attention_bias: "(batch_size or 1, num_heads or 1, sequence_length, total_sequence_length)"."""
        if not request.adds:
            added = None if visible is None else np.where(visible, 0.0, -np.inf).astype(dtype)
        else:
            added = request.bias_with(visible, dtype)
        return None if added is None else np.broadcast_to(added, (*added.shape[:2], request.queries, request.keys))

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.query_heads == 0:
            return "heads: num_heads > 0, says the kernel"
        if "mask.dtype" in call.features:
            return "mask.dtype: attention_bias is of the query's type"
        if call.dtype == "f16" and ("alibi" in call.features or "sinks" in call.features):
            return "alibi and sinks are of the query's type, and would be rounded to 16 bits"
        return None


class MultiHeadAttention(Contrib):
    """Where nothing is hidden, added or cached the kernel is MlasFlashAttention(), otherwise products and a softmax."""

    name = "onnxruntime_mha"
    library = f"onnxruntime {onnxruntime.__version__}, com.microsoft.MultiHeadAttention, CPUExecutionProvider"
    operator = "MultiHeadAttention"
    inputs = (
        "query", "key", "value", "bias", "key_padding_mask", "attention_bias", "past_key", "past_value",
    )  # fmt: skip
    outputs = ("output", "present_key", "present_value", "qk")
    takes = (SHAPES | HIDING | ADDING | CACHE | {"dtype=f32", "out=present", "out=biased"}) - {"grouped heads"}
    cannot = {
        "grouped heads": "query, key and value have num_heads heads each",
        "dtype=f64": "the kernel is registered for float alone",
        "dtype=f16": "the kernel is registered for float alone",
        "dtype=bf16": "the kernel is registered for float alone",
        "softcap": "the operator has no attribute for it",
        "sinks": "the operator has no input for it",
        "dropout": "the operator has no input for it",
        "out=lse": "the operator has no such output",
        "out=weights": "its fourth output has scores with all that is added, before the softmax",
        "out=raw": "its fourth output has scores with all that is added",
        "out=capped": "the operator has no soft cap",
    }
    conventions = {  # type: ignore[assignment]
        "hidden_nan": "leaks", "empty_row": "mean of v, or nan where a bias hides"
    }  # fmt: skip

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        made = self.run_node(*self.node(q, k, v, request))
        names = {"output": "o", "present_key": "present_k", "present_value": "present_v", "qk": "biased"}
        results = {names[name]: array for name, array in made.items()}
        results["o"] = separate(results["o"], q.shape[1])
        return results if len(request.outputs) > 1 else results["o"]

    def node(self, q: Any, k: Any, v: Any, request: Request) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        attributes: dict[str, Any] = {"num_heads": int(q.shape[1])}
        given = {name: side_by_side(array) for name, array in (("query", q), ("key", k), ("value", v))}
        if request.scale is not None:
            attributes["scale"] = float(request.scale)
        visible = None
        if request.causal_alone() and request.mask is None:
            attributes["unidirectional"] = 1
        else:
            visible = request.visible()
        padded = visible is not None and visible.shape[1] == 1 and not request.adds
        if padded and "biased" not in request.outputs:  # the filter's value would show in the scores
            # Its default of -10000 hides nothing from scores of that size.
            attributes["mask_filter_value"] = float(np.finfo(np.float32).min)
            shape = (request.batch, request.queries, request.keys)
            given["key_padding_mask"] = np.broadcast_to(visible[:, 0], shape).astype(np.int32)
        else:
            bias = self.bias_of(request, visible, q.dtype)
            if bias is not None:
                given["attention_bias"] = bias
        asked = ["output"]
        if request.past_k is not None:
            given.update(past_key=request.past_k, past_value=request.past_v)
        if request.past_k is not None or "present_k" in request.outputs:
            asked += ["present_key", "present_value"]
        if "biased" in request.outputs:
            asked.append("qk")
        return attributes, given, asked

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.past and call.key_dim != call.value_dim:
            return "past: past_value dimension 3 should be same as head_size, says the kernel"
        return super().cannot_do(call)

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # MlasComputeSoftmax() multiplies by 1/sum, then comes the product with V. MlasFlashAttentionThreaded() takes
        # l2_cache_size / (16 (qk_head_size + v_head_size)) keys a step and divides at the end. Both take
        # MlasComputeSumExpVector() of core/mlas/lib/compute.cpp, which has no subnormal numbers.
        if (HIDING | ADDING | CACHE | self.takes & {"out=present", "out=biased"}) & set(call.features):
            return {"division": "reciprocal", "normalised_before_storage": True, "flush_to_zero": True}
        block = max(1, LEAST_CACHE // (16 * max(1, call.key_dim + call.value_dim)))
        return {"key_block": block if call.key_length > block else 0, "flush_to_zero": True}


class GroupQueryAttention(Contrib):
    """Queries are the last of the keys: keys before them are handed over as cached ones, as many as each sequence has.
    Heads are padded with zeros to one size, a multiple of 8."""

    name = "onnxruntime_gqa"
    library = f"onnxruntime {onnxruntime.__version__}, com.microsoft.GroupQueryAttention, CPUExecutionProvider"
    operator = "GroupQueryAttention"
    inputs = (
        "query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length", "cos_cache",
        "sin_cache", "position_ids", "attention_bias", "head_sink", "k_scale", "v_scale", "q_norm_weight",
        "k_norm_weight", "query_seqlens",
    )  # fmt: skip
    outputs = ("output", "present_key", "present_value", "output_qk")
    takes = (
        SHAPES | HIDING | ADDING | CACHE
        | {"dtype=f32", "dtype=f16", "softcap", "sinks", "out=present", "out=weights"}
    )  # fmt: skip
    cannot = {
        "dtype=f64": "the kernel is registered for float and float16; group_query_attention.cc",
        "dtype=bf16": "the kernel is registered for float and float16; group_query_attention.cc",
        "dropout": "the operator has no input for it; docs/ContribOperators.md",
        "out=lse": "the operator has no such output; docs/ContribOperators.md",
        "out=biased": "output_qk has 0, not -inf, where keys are hidden",
        "out=raw": "output_qk has scores with all that is added",
        "out=capped": "output_qk has scores with all that is added",
    }
    conventions = {"hidden_nan": "leaks", "empty_row": "nan"}  # type: ignore[assignment]

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        made = self.run_node(*self.node(q, k, v, request))
        results = {"o": separate(made["output"], q.shape[1])[..., : v.shape[-1]]}
        if said_by_place(request) and request.query_lengths is not None:
            for sequence, length in zip(results["o"], request.query_lengths):
                sequence[:, length:] = 0  # "Output rows [Q, S) are unspecified"
        if len(request.outputs) == 1:
            return results["o"]
        present = {"present_k": ("present_key", k.shape[-1]), "present_v": ("present_value", v.shape[-1])}
        results.update({name: made[output][..., :features] for name, (output, features) in present.items()})
        return {**results, "weights": made["output_qk"]} if "output_qk" in made else results

    def node(self, q: Any, k: Any, v: Any, request: Request) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        k, v = request.with_cached(k, v)
        attributes: dict[str, Any] = {"num_heads": int(q.shape[1]), "kv_num_heads": int(k.shape[1])}
        features = -(-max(q.shape[-1], v.shape[-1]) // 8) * 8
        if request.scale is not None or features != q.shape[-1]:
            attributes["scale"] = float(q.shape[-1] ** -0.5 if request.scale is None else request.scale)
        q, k, v = (np.pad(t, [(0, 0)] * 3 + [(0, features - t.shape[-1])]) for t in (q, k, v))
        if request.softcap is not None:
            attributes["softcap"] = float(request.softcap)
        attributes["causal"] = int(said_by_place(request))
        visible = None
        if not attributes["causal"]:
            visible = request.visible()
        elif request.window[0] is not None:
            attributes["local_window_size"] = request.window[0] + 1  # a query's own place counts
        given = self._tokens(q, k, v, request)
        bias = self.bias_of(request, visible, q.dtype)
        if bias is not None:
            given["attention_bias"] = bias
        if request.sinks is not None:
            given["head_sink"] = np.asarray(request.sinks).astype(q.dtype)
        asked = ["output", "present_key", "present_value"]
        if "weights" in request.outputs:
            attributes["qk_output"] = 2
            asked.append("output_qk")
        return attributes, given, asked

    def _tokens(self, q: Any, k: Any, v: Any, request: Request) -> dict[str, Any]:
        """Query, key, value and cache: of each sequence the last tokens are new, those before them cached."""
        before = request.keys - request.queries
        totals = np.full(request.batch, request.keys, np.int32)
        chunks = np.full(request.batch, request.queries, np.int32)
        new, cached = (k[:, :, before:], v[:, :, before:]), (k[:, :, :before], v[:, :, :before])
        each = said_by_place(request) and request.lengths_given
        if each:
            totals = totals if request.key_lengths is None else np.asarray(request.key_lengths, np.int32)
            chunks = chunks if request.query_lengths is None else np.asarray(request.query_lengths, np.int32)
            before = int((totals - chunks).max())
            starts = totals - chunks
            new = tuple(ragged(t, starts, totals, request.queries) for t in (k, v))
            cached = tuple(ragged(t, 0 * totals, starts, before) for t in (k, v))
        given = {name: side_by_side(array) for name, array in zip(("query", "key", "value"), (q, *new))}
        if before:
            given.update(past_key=cached[0], past_value=cached[1])
        given["seqlens_k"] = totals - 1
        given["total_sequence_length"] = np.asarray(before + request.queries, np.int32)
        if before and (each or (request.batch > 1 and request.queries > 1)):
            given["query_seqlens"] = chunks
        return given

    def cannot_do(self, call: Any) -> Optional[str]:
        if 0 in (call.key_length, call.query_length, call.batch):
            return "a size 0: total_sequence_length must be positive; group_query_attention_helper.h"
        if call.key_length < call.query_length:
            return "seq=LqxLk: query and key must have the same sequence length, or keys be cached; the kernel's text"
        if call.key_length > call.query_length > 1 and call.batch > 1 and not causal_at_end(call):
            return "batch: query_seqlens, which batches with cached keys want, requires causal=1, says the kernel"
        if causal_at_end(call) and "out=present" in call.features and "lengths" in call.features:
            return "out=present: cache rows beyond a sequence's tokens are unspecified; docs/ContribOperators.md"
        return super().cannot_do(call)

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # ComputeAttentionProbs(): float16 is widened, and scores and weights are float32; the softmax multiplies by
        # 1/sum. Its exp is the one that MultiHeadAttention has.
        return {"division": "reciprocal", "normalised_before_storage": True, "flush_to_zero": True}


class GroupQueryAttentionWindow(GroupQueryAttention):
    """With sliding_window_cache=1: the cache holds what the window shows, and the operator evicts the rest."""

    name = "onnxruntime_gqa_window"
    library = f"{GroupQueryAttention.library}, sliding_window_cache=1"
    takes = GroupQueryAttention.takes - {"out=present", "out=weights"}
    cannot = {
        **GroupQueryAttention.cannot,
        "out=present": "the cache that the operator gives is the window's",
        "out=weights": "qk_output is not implemented with sliding_window_cache=1, says the kernel",
    }

    def node(self, q: Any, k: Any, v: Any, request: Request) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        attributes, given, asked = super().node(q, k, v, request)
        return {**attributes, "sliding_window_cache": 1}, given, asked

    def _tokens(self, q: Any, k: Any, v: Any, request: Request) -> dict[str, Any]:
        given = super()._tokens(q, k, v, request)
        # A cache of as many rows as the window holds the last tokens before the new ones, from row 0 on.
        rows = request.window[0] + 1  # type: ignore[operator]
        totals = given["seqlens_k"] + 1
        if "past_key" not in given:  # all tokens of each sequence are new
            given["query_seqlens"] = totals
        ends = totals - given.get("query_seqlens", np.full(request.batch, request.queries, np.int32))
        for name, array in (("past_key", k), ("past_value", v)):
            given[name] = ragged(array, np.maximum(ends - rows, 0), ends, rows)
        given["total_sequence_length"] = np.asarray(totals.max(), np.int32)
        return given

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.window[0] is None or not causal_at_end(call) or call.key_length <= call.query_length:
            return "window: sliding_window_cache=1 is of a window of cached keys"
        return super().cannot_do(call)


def ragged(array: Any, starts: Any, ends: Any, rows: int) -> np.ndarray:
    """Of each sequence the rows from `starts` to `ends`, from row 0 on; the rest is 0."""
    made = np.zeros((array.shape[0], array.shape[1], rows, array.shape[3]), array.dtype)
    for to, source, start, end in zip(made, array, starts, ends):
        to[:, : end - start] = source[:, start:end]
    return made


def chunks_fit(key_lengths: Any, query_lengths: Any, keys: int, queries: int) -> bool:
    """Whether each sequence has a token, and no more queries than keys."""
    lengths = key_lengths if key_lengths is not None else query_lengths
    totals = [keys] * len(lengths) if key_lengths is None else key_lengths
    chunks = [queries] * len(lengths) if query_lengths is None else query_lengths
    return all(total >= max(chunk, 1) for total, chunk in zip(totals, chunks))


def said_by_place(r: Request) -> bool:
    """Whether `causal`, which puts the last query at the last key, and a window to the left say all that hides."""
    if r.prefix or r.segments or r.blocks is not None or r.mask is not None or not r.causal:
        return False
    if r.window[1] not in (None, 0):
        return False
    if r.lengths_given:
        fit = chunks_fit(r.key_lengths, r.query_lengths, r.keys, r.queries)
        return r.align == "bottom-right" and not r.past and fit and not r.adds
    return r.past + r.queries == r.keys or (r.align == "bottom-right" and not r.past)


def causal_at_end(call: Any) -> bool:
    """The same of a call."""
    if {"prefix", "segments", "blocks", "mask=bool"} & set(call.features) or not call.causal:
        return False
    if call.window[1] not in (None, 0):
        return False
    if call.key_lengths is not None or call.query_lengths is not None:
        fit = chunks_fit(call.key_lengths, call.query_lengths, call.key_length, call.query_length)
        return call.align == "bottom-right" and not call.past and fit and not {"mask=add", "alibi"} & set(call.features)
    return call.past + call.query_length == call.key_length or (call.align == "bottom-right" and not call.past)
