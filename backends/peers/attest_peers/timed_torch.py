"""PyTorch's scaled_dot_product_attention for timing: on tensors as they lie, in the threads that are given."""

from __future__ import annotations

from typing import Any, Callable, Hashable, Optional

import torch
from torch.nn.functional import scaled_dot_product_attention

from attest_peers.readied import Readied
from attest_peers.request import Request
from attest_peers.torch_sdpa import Backend as Checked
from attest_peers.torch_sdpa import mask_of


class Backend(Readied, Checked):
    """By the path that PyTorch chooses by itself."""

    def readied(self, q: Any, k: Any, v: Any, request: Request, key: Optional[Hashable]) -> Callable[[], Any]:
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)
        causal, scale, grouped = request.only_causal(), request.scale, q.shape[1] != k.shape[1]
        mask = self.keep(key, lambda: mask_of(request, q.dtype, causal))

        def run() -> Any:
            with torch.inference_mode():
                return scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale, enable_gqa=grouped)

        return run
