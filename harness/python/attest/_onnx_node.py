"""A call as one node Attention of ONNX: https://onnx.ai/onnx/operators/onnx__Attention.html."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional

import numpy as np

from attest._attest import Call
from attest._request import ADDING, CACHE, HIDING, SHAPES, Request, compact

# What the attribute qk_matmul_output_mode calls a stage of the scores.
MODES = {"raw": 0, "capped": 1, "biased": 2, "weights": 3}
INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
#: Features of calls that the operator has.
TAKES = SHAPES | HIDING | ADDING | CACHE | {"out=" + stage for stage in MODES} | {"out=present", "softcap"}
#: Of others: why it has not.
LACKS = {
    "out=lse": "Attention has no such output",
    "sinks": "Attention has no input for it",
    "dropout": "Attention has no input for it",
    "paged": "Attention has no table of pages",
    "layout=thd": "Attention has no packed sequences",
}


def unsaid(call: Call) -> Optional[str]:
    """Why the operator can't say a call all of whose features it has."""
    if call.scale < 0:
        return "scale: the operator multiplies q and k by its square root, so that there is no negative one"
    if call.dtype == "f64" and "scale" in call.features and call.scale != float(np.float32(call.scale)):
        return "scale: the attribute is a float32, which has not this value"
    if "alibi" in call.features and call.dtype in ("f16", "bf16"):
        return "alibi: attn_mask is of q's type, and its slopes would be rounded to 16 bits"
    if "out=present" in call.features and not call.past:
        return "out=present: present_key and past_key are used together, or not at all"
    if "mask.dtype" in call.features:
        return "mask.dtype: attn_mask is of q's type"
    return None


@dataclass(frozen=True)
class Node:
    """Attributes, and the inputs by name; two calls with equal `key()` share a model."""

    opset: int
    attributes: Mapping[str, Any]
    inputs: Mapping[str, np.ndarray]
    with_present: bool
    with_scores: bool

    def key(self) -> tuple[Any, ...]:
        types = tuple((name, array.dtype.name, array.ndim) for name, array in self.inputs.items())
        return self.opset, tuple(sorted(self.attributes.items())), types, self.with_present, self.with_scores

    @property
    def outputs(self) -> list[str]:
        return ["Y"] + ["present_key", "present_value"] * self.with_present + ["scores"] * self.with_scores


def node_of(
    q: Any, k: Any, v: Any, request: Request, opset: int, stage: Optional[str], packed: bool, every_row: bool
) -> Node:
    """The node that computes the request, and `stage` of its scores beside.

    `packed`: q, k and v have three axes, with heads side by side. `every_row`: a mask has a row for each query.
    """
    attributes: dict[str, Any] = {}
    inputs = {"Q": np.ascontiguousarray(q), "K": np.ascontiguousarray(k), "V": np.ascontiguousarray(v)}
    if packed:
        attributes.update(q_num_heads=int(q.shape[1]), kv_num_heads=int(k.shape[1]))
        inputs = {name: side_by_side(array) for name, array in inputs.items()}
    if request.scale is not None:
        attributes["scale"] = float(request.scale)
    if request.softcap is not None:
        attributes["softcap"] = float(request.softcap)
    if stage is not None and MODES[stage]:
        attributes["qk_matmul_output_mode"] = MODES[stage]
    by_position = _said_by_position(request, opset)
    if by_position is None:
        mask = request.visible()
    else:
        mask = None if request.mask is None else compact(request.mask)
        attributes.update(by_position)
        if "nonpad" in attributes:
            inputs["nonpad_kv_seqlen"] = np.asarray(attributes.pop("nonpad"), np.int64)
    added = request.one_mask(mask, q.dtype)
    if added is not None:
        added = _unambiguous(added, request.keys)
        if every_row:
            added = np.ascontiguousarray(np.broadcast_to(added, (*added.shape[:-2], request.queries, request.keys)))
        inputs["attn_mask"] = added
    if request.past_k is not None:
        inputs["past_key"] = np.ascontiguousarray(request.past_k)
        inputs["past_value"] = np.ascontiguousarray(request.past_v)
    return Node(opset, attributes, inputs, request.past_k is not None, stage is not None)


def _said_by_position(request: Request, opset: int) -> Optional[dict[str, Any]]:
    """What hides keys by their places, as attributes and `nonpad`; None where the operator has no word for it."""
    r = request
    if r.prefix or r.segments or r.blocks is not None or r.query_lengths is not None:
        return None
    said: dict[str, Any] = {}
    windowed = r.window != (None, None)
    if windowed and opset < 25:
        return None
    if r.causal:
        said["is_causal"] = 1
    if windowed:
        said.update(left_window_size=_or_open(r.window[0]), right_window_size=_or_open(r.window[1]))
    # nonpad_kv_seqlen anchors the diagonal at the end of each batch's keys; it and a cache exclude each other.
    anchored = r.causal or windowed
    at_end = r.align == "bottom-right" and not r.past and anchored
    if r.key_lengths is not None and (r.past or (anchored and not at_end)):
        return None
    if (r.key_lengths is not None or (at_end and not r.diagonal_at_corner)) and opset >= 24:
        said["nonpad"] = [r.keys] * r.batch if r.key_lengths is None else list(r.key_lengths)
    elif r.key_lengths is not None or (at_end and not r.diagonal_at_corner):
        return None
    return said


def _or_open(side: Optional[int]) -> int:
    return -1 if side is None else int(side)


def _unambiguous(mask: np.ndarray, keys: int) -> np.ndarray:
    """With its last axis whole: the operator takes a shorter one for a mask of the first keys, not for a broadcast."""
    return np.ascontiguousarray(np.broadcast_to(mask, (*mask.shape[:-1], keys)))


def side_by_side(array: np.ndarray) -> np.ndarray:
    """B,H,L,D as B,L,H*D."""
    batch, heads, length, dim = array.shape
    return np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(batch, length, heads * dim)


def separate(array: np.ndarray, heads: int) -> np.ndarray:
    """B,L,H*D as B,H,L,D."""
    batch, length, width = array.shape
    return array.reshape(batch, length, heads, width // max(heads, 1)).transpose(0, 2, 1, 3)
