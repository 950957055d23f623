"""What the ONNX adapters share: one node, run once for each stage of the scores that is asked for."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np

from attest_peers.onnx_node import MODES, Node, node_of, separate
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request

STAGES = frozenset(["out=weights", "out=raw", "out=capped", "out=biased", "out=present"])


class OnnxPeer(Peer):
    """The operator Attention, run by `run_node`."""

    opset = 25
    packed = False  #: whether q, k and v are given with heads side by side
    every_row = False  #: whether attn_mask must have as many rows as there are queries
    takes = SHAPES | HIDING | ADDING | CACHE | STAGES | {"softcap"}
    cannot = {
        "out=lse": "Attention has no such output",
        "sinks": "Attention has no input for it",
        "dropout": "Attention has no input for it",
        "paged": "Attention has no table of pages",
        "layout=thd": "Attention has no packed sequences",
    }

    def run_node(self, node: Node) -> Mapping[str, np.ndarray]:
        raise NotImplementedError

    def cannot_do(self, call: Any) -> Optional[str]:
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

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        asked = [name for name in request.outputs if name in MODES]
        results: dict[str, np.ndarray] = {}
        stages: list[Optional[str]] = [*asked] or [None]
        for stage in stages:
            made = self.run_node(node_of(q, k, v, request, self.opset, stage, self.packed, self.every_row))
            results["o"] = separate(made["Y"], q.shape[1]) if self.packed else made["Y"]
            if "present_key" in made:
                results.update(present_k=made["present_key"], present_v=made["present_value"])
            if stage is not None:
                results[stage] = made["scores"]
        return results if len(request.outputs) > 1 else results["o"]
