"""What the ONNX adapters share: one node, run once for each stage of the scores that is asked for."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np

from attest_peers.onnx_node import LACKS, MODES, TAKES, Node, node_of, separate, unsaid
from attest_peers.peer import Peer
from attest_peers.request import Request


class OnnxPeer(Peer):
    """The operator Attention, run by `run_node`."""

    opset = 25
    packed = False  #: whether q, k and v are given with heads side by side
    every_row = False  #: whether attn_mask must have as many rows as there are queries
    takes = TAKES
    cannot = LACKS

    def run_node(self, node: Node) -> Mapping[str, np.ndarray]:
        raise NotImplementedError

    def cannot_do(self, call: Any) -> Optional[str]:
        return unsaid(call)

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
