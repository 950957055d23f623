"""ggml_flash_attn_ext() on the processor: src/ggml-cpu/ops.cpp, vec.cpp and arch/x86/quants.c of ggml."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Mapping, Optional

import numpy as np

from attest_peers.ggml_library import Library
from attest_peers.peer import CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request

TILE = 64  #: GGML_FA_TILE_Q and GGML_FA_TILE_KV of src/ggml-cpu/common.h
SPLIT = 512  #: keys from which one query's are divided among threads


class Backend(Peer):
    """Queries and results in f32, keys and values in f32, f16 or bf16. All that hides is in the mask, which is of f16."""

    name = "ggml"
    library = f"ggml_flash_attn_ext, ggml of llama-cpp-python {version('llama-cpp-python')}, CPU"
    takes = SHAPES | HIDING | CACHE | {"dtype=f32", "mask=add", "mask.dtype", "mixed types", "softcap", "sinks"}
    cannot = {
        "alibi": "ggml makes its slopes by itself, from one number",
        "dropout": "the function has no parameter for it",
        "out=lse": "the function returns the output alone",
        **{f"dtype={name}": "queries and results are of f32" for name in ("f64", "f16", "bf16")},
        **{f"stored={name}": "ggml has no such type" for name in ("e4m3", "e5m2")},
        "stored=i8": "codes come in blocks with scales",
    }
    conventions = {"hidden_nan": "leaks"}

    def __init__(self) -> None:
        self._library: Optional[Library] = None

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        return self.attended(q, *request.with_cached(k, v), request)

    def attended(self, q: Any, k: Any, v: Any, request: Request) -> np.ndarray:
        """k and v are arrays, or blocks of ggml."""
        if self._library is None:
            self._library = Library()
        mask = request.one_mask(request.visible(), np.float16)
        if mask is not None:
            added = mask if request.adds else np.where(mask, np.float16(0), np.float16(-np.inf))
            mask = np.broadcast_to(added, (*added.shape[:2], request.queries, request.keys))
        sinks = None if request.sinks is None else np.asarray(request.sinks, np.float32)
        scale = q.shape[-1] ** -0.5 if request.scale is None else request.scale
        softcap = request.softcap or 0.0
        o = self._library.flash_attention(q.astype(np.float32), k, v, mask, sinks, scale, softcap, self.threads)
        return np.ascontiguousarray(o.transpose(0, 2, 1, 3))

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.mask == "add" and call.mask_dtype != "f16":
            return "mask=add: ggml_flash_attn_ext() takes a mask of f16 alone"
        if call.output_types.get("o", "f32") != "f32":
            return "mixed types: the result is of f32"
        types = [call.option(f"{name}.dtype") for name in ("k", "v", "past_k", "past_v")]
        if "f64" in types:
            return "mixed types: ggml_flash_attn_ext() takes no keys and values of f64"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # ggml_compute_forward_flash_attn_ext_f16_one_chunk(): an online softmax key by key; q is rounded to the type of
        # the keys. ..._tiled(): in f32, a tile of keys at a time. Where values are of f16 their sum is, too, for fewer
        # queries than a tile has: that isn't stated, as GGML_PREC_F32 "uses F32 accumulators".
        k, v = (self._joint(call, name) for name in ("k", "v"))
        stated = {"division": "reciprocal", "key_block": 1}
        if k == v and k != "bf16" and call.query_length >= TILE:
            return {**stated, "key_block": TILE}
        if k in ("f16", "bf16"):
            stated["query_operand"] = k
        if k == "bf16":
            stated["flush_to_zero"] = True  # VDPBF16PS
        return stated

    @staticmethod
    def _joint(call: Any, name: str) -> str:
        """The type of cached and new rows together."""
        types = {call.option(f"{name}.dtype") or call.dtype}
        if call.past:
            types.add(call.option(f"past_{name}.dtype") or call.option(f"{name}.dtype") or call.dtype)
        return types.pop() if len(types) == 1 else "f32"
