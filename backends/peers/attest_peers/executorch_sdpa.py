"""ExecuTorch's custom operators of attention, as models for it are exported with them: llama::custom_sdpa.

extension/llm/custom_ops/: op_sdpa.cpp, op_sdpa_impl.h, op_sdpa_aot.cpp, custom_ops.py.
"""

from __future__ import annotations

import importlib.util
import re
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Mapping, Optional

import numpy as np
import torch

from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request


@lru_cache(maxsize=1)
def operators() -> Any:
    """torch.ops.llama, by the library that custom_ops.py loads; that module imports all of executorch besides."""
    found = importlib.util.find_spec("executorch")
    if found is None or not found.submodule_search_locations:
        raise ImportError("the package executorch is not installed")
    folder = Path(next(iter(found.submodule_search_locations)), "extension/llm/custom_ops")
    torch.ops.load_library(next(folder.glob("libcustom_ops_aot_lib.*")))
    return torch.ops.llama


class Backend(Peer):
    """Keys lie in a cache, and queries in it from start_pos on. Heads are padded with zeros to one size. Sequences that
    have masks of their own are run one by one."""

    tensors = "torch"
    name = "executorch"
    library = f"torch.ops.llama.custom_sdpa, ExecuTorch {version('executorch')}, CPU"
    takes = (SHAPES | HIDING | ADDING | CACHE | {"dtype=f32", "dtype=f16", "dtype=bf16"}) - {"a size 0"}
    cannot = {
        "a size 0": "the number of queries in a block, and of heads of keys, divides: op_sdpa_impl.h",
        "dtype=f64": "Query must be Float, Half, BFloat16, or Char type, says op_sdpa.cpp",
        "softcap": "the operator has no parameter for it",
        "sinks": "the operator has no parameter for it",
        "dropout": "drpout_p is not used in the implementation, says op_sdpa_impl.h",
        "out=lse": "the operator returns the output alone",
    }
    conventions = {"hidden_nan": "leaks", "empty_row": "nan"}  # type: ignore[assignment]

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        if request.past_k is not None:
            k, v = torch.cat([request.past_k, k], 2), torch.cat([request.past_v, v], 2)
        if request.scale is None:
            request.scale = q.shape[-1] ** -0.5
        width, wanted = max(q.shape[-1], v.shape[-1]), v.shape[-1]
        q, k, v = (torch.nn.functional.pad(t, (0, width - t.shape[-1])) for t in (q, k, v))
        if request.bias is not None:
            request.bias = request.bias.float().numpy()
        start, causal, masks = words_of(request)
        mask = None if masks is None else torch.from_numpy(np.array(masks))
        if mask is None or mask.shape[0] == 1:
            o = self.attended(q, k, v, start, None if mask is None else mask[0], causal, request.scale)
        else:
            parts = (
                self.attended(q[n : n + 1], k[n : n + 1], v[n : n + 1], start, mask[n], causal, request.scale)
                for n in range(request.batch)
            )
            o = torch.cat(list(parts))
        return o[..., :wanted].contiguous()

    def attended(
        self, q: Any, k: Any, v: Any, start: int, mask: Optional[torch.Tensor], causal: bool, scale: float
    ) -> torch.Tensor:
        """By the overload with `out`, of q's type: the other one makes it float32."""
        q, k, v = (t.transpose(1, 2).contiguous() for t in (q, k, v))
        o = torch.full_like(q, torch.nan)  # which shows where nothing was written
        operators().custom_sdpa.out(q, k, v, start, mask, 0.0, causal, scale, out=o)
        return o.transpose(1, 2)

    def cannot_do(self, call: Any) -> Optional[str]:
        per_head = re.search(r"mask=(bool|add):.H|blocks=", call.line) or "alibi" in call.features
        if per_head and call.query_heads > 1:
            return "a mask of each head: Attention mask must be a 2D tensor, says op_sdpa.cpp"
        if "mask.dtype" in call.features and call.mask_dtype == "f64":
            return "mask.dtype=f64: Attention mask must be a Float tensor, says op_sdpa.cpp"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # cpu_flash_attention() of op_sdpa_impl.h: 512 keys a step, weights in the type of the values, and a product
        # with the reciprocal of the sum at the end.
        return {"division": "reciprocal", "key_block": 512, "stored_weights": call.dtype}


class SdpaWithKvCache(Backend):
    """New keys and values are written into the cache by the operator."""

    name = "executorch_kv_cache"
    library = f"torch.ops.llama.sdpa_with_kv_cache, ExecuTorch {version('executorch')}, CPU"

    def attended(
        self, q: Any, k: Any, v: Any, start: int, mask: Optional[torch.Tensor], causal: bool, scale: float
    ) -> torch.Tensor:
        q, k, v = (t.transpose(1, 2).contiguous() for t in (q, k, v))
        new = min(q.shape[1], k.shape[1] - start)
        caches = [torch.cat([t[:, :start], torch.full_like(t[:, start:], 0)], 1) for t in (k, v)]
        chunks = [t[:, start : start + new].contiguous() for t in (k, v)]
        o = operators().sdpa_with_kv_cache(q, *chunks, *caches, start, new, mask, 0.0, causal, scale)
        return o.transpose(1, 2)

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.key_length < call.query_length:
            return "seq=LqxLk: each query brings a key; op_sdpa.cpp"
        if call.causal and call.align == "top-left" and not call.past and call.key_length != call.query_length:
            return "align=top-left: keys behind the queries would not be in the cache"
        return super().cannot_do(call)


class Quantized(Backend):
    """custom_quantized_sdpa: queries, keys and values as codes of 8 bits with a scale for each token, and zero points
    of 0."""

    name = "executorch_quantized"
    library = f"torch.ops.llama.custom_quantized_sdpa, ExecuTorch {version('executorch')}, CPU"
    takes = (Backend.takes | {"q.scale", "k.scale", "v.scale", "stored=i8", "mixed types"}) - {
        "dtype=f16",
        "dtype=bf16",
    }
    cannot = {
        **Backend.cannot,
        **{
            f"stored={name}": "Tensor must be of int8_t type, says op_sdpa.cpp"
            for name in ("e4m3", "e5m2", "e2m1", "i4")
        },
        "dtype=f16": "the output is float; op_sdpa_aot.cpp",
        "dtype=bf16": "the output is float; op_sdpa_aot.cpp",
    }

    def attention(  # type: ignore[override]
        self, q: Any, k: Any, v: Any, *, scale: Any = None, causal: bool = False, align: str = "top-left",
        window: Any = (None, None), prefix: int = 0, key_lengths: Any = None, query_lengths: Any = None,
        segments: Any = None, mask: Any = None, bias: Any = None, blocks: Any = None, block_size: Any = None,
        alibi_slopes: Any = None, past_k: Any = None, past_v: Any = None, output_types: Any = None,
        q_scale: Any = None, q_scales: Any = None, k_scale: Any = None, k_scales: Any = None, v_scale: Any = None,
        v_scales: Any = None,
    ) -> Any:  # fmt: skip
        self._scales = [
            torch.ones(t.shape[0], rows, t.shape[1], 1) if given is None else given.transpose(1, 2).float().contiguous()
            for t, rows, given in (
                (q, q.shape[2], q_scales),
                (k, k.shape[2] + (0 if past_k is None else past_k.shape[2]), k_scales),
                (v, v.shape[2] + (0 if past_v is None else past_v.shape[2]), v_scales),
            )
        ]
        return super().attention(
            q, k, v, scale=scale, causal=causal, align=align, window=window, prefix=prefix, key_lengths=key_lengths,
            query_lengths=query_lengths, segments=segments, mask=mask, bias=bias, blocks=blocks, block_size=block_size,
            alibi_slopes=alibi_slopes, past_k=past_k, past_v=past_v,
        )  # fmt: skip

    def attended(
        self, q: Any, k: Any, v: Any, start: int, mask: Optional[torch.Tensor], causal: bool, scale: float
    ) -> torch.Tensor:
        codes = [t.transpose(1, 2).contiguous() for t in (q, k, v)]
        scales = [s.expand(c.shape[0], *c.shape[1:3], 1).contiguous() for s, c in zip(self._scales, codes)]
        zeros = [torch.zeros(s.shape, dtype=torch.int8) for s in scales]
        pairs = [t for pair in zip(zeros, scales) for t in pair]
        return operators().custom_quantized_sdpa(*codes, start, mask, 0.0, causal, scale, *pairs).transpose(1, 2)

    def cannot_do(self, call: Any) -> Optional[str]:
        of = {name: call.option(f"{name}.dtype") for name in ("q", "k", "v", "past_k", "past_v", "out")}
        if (of["q"], of["k"], of["v"]) != ("i8", "i8", "i8"):
            return "q.dtype: q, k and v must be quantized together, says op_sdpa.cpp"
        if call.past and (of["past_k"] or "i8", of["past_v"] or "i8") != ("i8", "i8"):
            return "past_k.dtype: the cache has one type"
        if of["out"] not in (None, "", "f32"):
            return "out.dtype: the output is float; op_sdpa_aot.cpp"
        if any((call.option(f"{name}.scale") or "token").startswith("block") for name in "qkv"):
            return "scale=block: scales have the shape of a token's head; validate_cache_quant_params_args()"
        if call.batch > 1 and separate_masks(call):
            return "a mask of each sequence: Attention mask must be a 2D tensor, says op_sdpa.cpp"
        return super().cannot_do(call)

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # Integer products with three factors behind them, and values that are multiplied by their scales first.
        return {
            "division": "reciprocal", "key_block": 512, "score_sum.format": "exact", "score_roundings": 3,
            "output_roundings": 1,
        }  # fmt: skip


def separate_masks(call: Any) -> bool:
    """Whether sequences of the batch may have masks of their own."""
    return "lengths" in call.features or bool(re.search(r"mask=(bool|add):B|blocks=", call.line))


def words_of(r: Request) -> tuple[int, bool, Optional[np.ndarray]]:
    """start_pos, is_causal and attn_mask, of the latter one or one for each sequence."""
    beyond = r.keys - r.queries
    at_end = r.past == beyond or (r.align == "bottom-right" and not r.past and not r.lengths_given)
    plain = not (r.hides_by_position or r.mask is not None or r.adds)
    if plain and r.causal and beyond >= 0 and (at_end or r.diagonal_at_corner):
        return (beyond if at_end else 0), True, None
    if plain and not r.causal and beyond >= 0:
        return beyond, False, None  # without a mask the keys behind the queries are not seen
    visible = r.visible()
    if r.adds:
        added = r.bias_with(visible, np.float32)
    else:
        added = np.zeros((1, 1, 1, 1), np.float32)
        added = added if visible is None else np.where(visible, added, np.float32(-np.inf))
    alike = bool((added == added[:1]).all())  # a mask without an axis of the batch may come with one
    whole = np.broadcast_to(
        added[:1, :1] if alike else added[:, :1], (1 if alike else len(added), 1, r.queries, r.keys)
    )
    return max(beyond, 0), False, whole[:, 0]
