"""ggml_flash_attn_ext() with keys and values in q8_0 or q4_0, as llama.cpp's --cache-type-k and --cache-type-v have it.

Both hold 32 numbers as codes beside a scale in f16: attest's `k.dtype=i8 k.scale=block:32 k_scales.dtype=f16`, and the
same of `i4`. ggml reads the bits of the case, none is rounded on the way.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Mapping, Optional

import numpy as np

from attest_peers import ggml_flash
from attest_peers.ggml_library import BLOCK, Blocks, q4_0, q8_0
from attest_peers.request import Request

BLOCKS = {"i8": q8_0, "i4": q4_0}


class Backend(ggml_flash.Backend):
    name = "ggml_cache"
    library = f"ggml_flash_attn_ext with q8_0 and q4_0, ggml of llama-cpp-python {version('llama-cpp-python')}, CPU"
    takes = ggml_flash.Backend.takes | {"stored=i8", "stored=i4", "k.scale", "v.scale", "scales in f16"}
    cannot = {
        **{word: why for word, why in ggml_flash.Backend.cannot.items() if word != "stored=i8"},
        **{f"scales in {name}": "q8_0 and q4_0 have scales of f16" for name in ("bf16", "e4m3", "e8m0")},
        "stored=e2m1": "its MXFP4 has other scales",
    }

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = request.with_cached(k, v)
        return self.attended(q, _blocks(k, request.k_scales), _blocks(v, request.v_scales), request)

    def cannot_do(self, call: Any) -> Optional[str]:
        for name, columns in (("k", call.key_dim), ("v", call.value_dim)):
            stored, scale = call.option(f"{name}.dtype"), call.option(f"{name}.scale")
            if stored not in BLOCKS or call.option(f"past_{name}.dtype") not in (None, stored):
                return f"mixed types: {name} is not in blocks; attest_peers.ggml_flash takes what has no blocks"
            if scale != f"block:{BLOCK}":
                return f"{name}.scale: q8_0 and q4_0 have a scale for each {BLOCK} numbers of a row"
            if columns % BLOCK:
                return f"{name}.scale: a row of q8_0 or q4_0 is a multiple of {BLOCK} numbers"
            if call.option(f"{name}_scales.dtype") != "f16":
                return f"{name}.scale: q8_0 and q4_0 have scales of f16"
        return super().cannot_do(call)

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # ggml_vec_dot_q8_0_q8_0() and its like take q as block_q8_0: quantize_row_q8_0() finds the codes by a scale in
        # f32 and stores it in f16. From 64 queries ..._tiled() makes keys f32 and leaves q as it is.
        if call.query_length >= ggml_flash.TILE and call.option("k.dtype") == call.option("v.dtype"):
            return {"division": "reciprocal", "key_block": ggml_flash.TILE}
        own = {"step": 0, "rows": 1, "columns": BLOCK, "slack": 0.125}
        return {
            "division": "reciprocal", "key_block": 1, "query_operand": "int8", "score_roundings": 2,
            **{f"query_rounding.{member}": value for member, value in own.items()},
        }  # fmt: skip


def _blocks(codes: Any, scales: Any) -> Blocks:
    kind = BLOCKS["i4" if np.asarray(codes).dtype.name == "int4" else "i8"]
    return kind(np.asarray(codes).astype(np.int8), np.asarray(scales))
