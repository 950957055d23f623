"""Attention of Hugging Face Transformers with its masks and caches: eager functions, and those of AttentionInterface.

transformers/models/*/modeling_*.py, transformers/integrations/, masking_utils.py and cache_utils.py in transformers/.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Mapping, Optional

import numpy as np
import torch
import transformers
from transformers import PreTrainedConfig
from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer
from transformers.integrations.flex_attention import flex_attention_forward
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import (
    create_bidirectional_mask,
    create_bidirectional_sliding_window_mask,
    create_causal_mask,
    create_chunked_causal_mask,
    create_sliding_window_causal_mask,
)
from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward as capped_eager
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward as eager_with_sinks
from transformers.models.llama.modeling_llama import eager_attention_forward

from attest_peers.gradients import GRADIENTS
from attest_peers.request import Request
from attest_peers.torch_flex import COMPILED, block_mask_of, forget_others
from attest_peers.torch_sdpa import Backend as Sdpa
from attest_peers.torch_sdpa import Torch, added, as_stored
from attest_peers.transformers_masking import Masking, masking_of

VERSION = f"Transformers {transformers.__version__} on PyTorch {torch.__version__}, CPU"


class Interface(Torch):
    """What the functions share: they are given what a model of this library would give them."""

    implementation: str
    takes = Torch.takes
    cannot = {
        **Torch.cannot,
        "dropout": "it draws which weights it keeps by itself",
        "out=lse": "attention functions return the output and weights; transformers/integrations/",
    }

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        group = q.shape[1] // k.shape[1] if k.shape[1] else 1
        masking = masking_of(request)
        k, v, mask = self._masked(q, k, v, request, masking)
        module = SimpleNamespace(
            num_key_value_groups=group, training=False, head_dim=q.shape[3],
            is_causal=masking is not None and masking.causal,
        )  # fmt: skip
        scale = q.shape[3] ** -0.5 if request.scale is None else request.scale
        bias = self._bias(request, q.dtype)
        if bias is not None and bias.shape[3] > k.shape[2]:  # the cache has dropped what is behind the window
            bias = bias[..., -k.shape[2] :]
        found, weights = self.call(module, q, k, v, mask, bias, scale, request)
        found = found.transpose(1, 2)
        return {"o": found, "weights": weights} if "weights" in request.outputs else found

    def call(self, module: Any, q: Any, k: Any, v: Any, mask: Any, bias: Any, scale: float, request: Request) -> Any:
        """Output, with heads behind queries, and weights."""
        raise NotImplementedError

    def prepared(self, request: Request, dtype: torch.dtype) -> Any:
        """A mask that a user makes: 4D, "returned as-is"."""
        return torch.from_numpy(np.array(request.visible()))

    def _masked(self, q: Any, k: Any, v: Any, request: Request, masking: Optional[Masking]) -> tuple[Any, Any, Any]:
        """Keys and values out of the cache, and the mask."""
        if masking is None:
            k, v = self.with_cached(k, v, request)
            return k, v, None if request.visible() is None else self.prepared(request, q.dtype)
        config = PreTrainedConfig(attn_implementation=self.implementation, is_causal=masking.causal)
        config.sliding_window, config.attention_chunk_size = masking.window, masking.chunk
        sees_all = masking.window is None or request.prefix or not masking.causal
        cache = Cache(layers=[DynamicLayer() if sees_all else DynamicSlidingWindowLayer(masking.window)])
        if masking.cached:
            if request.past_k is None:
                cache.update(k[:, :, : masking.cached], v[:, :, : masking.cached], 0)
                k, v = k[:, :, masking.cached :], v[:, :, masking.cached :]
            else:
                cache.update(request.past_k, request.past_v, 0)
        mask = self._mask(config, q, request, masking, cache if masking.cached else None)
        if masking.cached:
            k, v = cache.update(k, v, 0)
        return k, v, mask

    @staticmethod
    def _mask(config: Any, q: Any, request: Request, masking: Masking, cache: Any) -> Any:
        queries = torch.empty(request.batch, request.queries, 1, dtype=q.dtype)
        padding = None if masking.padding is None else torch.from_numpy(masking.padding).long()
        positions = None if masking.positions is None else torch.from_numpy(masking.positions)[None]
        prefix = request.prefix
        options: dict[str, Any] = {"or_mask_function": lambda b, h, i, j: j < prefix} if prefix else {}
        if not masking.causal:
            keys = torch.empty(request.batch, request.keys, 1, dtype=q.dtype)
            make = create_bidirectional_mask if masking.window is None else create_bidirectional_sliding_window_mask
            return make(config, queries, padding, keys, cache=cache, **options)
        if padding is None and cache is None and request.queries != request.keys:
            # As with a StaticCache that is not full yet: what lies behind the new keys is padding.
            padding = (torch.arange(request.keys) < request.queries + prefix).long().expand(request.batch, -1)
        make = create_causal_mask
        if masking.window is not None:
            make = create_sliding_window_causal_mask
        elif masking.chunk is not None:
            make = create_chunked_causal_mask
        return make(config, queries, padding, cache, position_ids=positions, **options)

    def _bias(self, request: Request, dtype: torch.dtype) -> Optional[torch.Tensor]:
        """All that is added, in q's type where it is stored so and float32 otherwise."""
        if not request.adds:
            return None
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        if request.alibi_slopes is not None:
            return added(request, None).to(wide)
        bias = as_stored(request.bias)
        return bias if bias.dtype == dtype else bias.to(wide)


class Eager(Interface):
    """Eager functions of models: Llama's; Gemma 2's, which has a softcap, and GPT-OSS's, which has sinks."""

    name = "transformers_eager"
    library = f"eager_attention_forward of Llama, Gemma 2 and GPT-OSS, {VERSION}"
    implementation = "eager"
    takes = Torch.takes | {"softcap", "sinks", "out=weights"}
    conventions = {"hidden_nan": "leaks", "empty_row": "mean of v, or nan where a bias hides"}

    def prepared(self, request: Request, dtype: torch.dtype) -> Any:
        # As eager_mask() makes it.
        return torch.where(super().prepared(request, dtype), torch.zeros((), dtype=dtype), torch.finfo(dtype).min)

    def call(self, module: Any, q: Any, k: Any, v: Any, mask: Any, bias: Any, scale: float, request: Request) -> Any:
        if bias is not None:
            # One 4D mask says both.
            mask = bias if mask is None else torch.where(mask == 0, bias, torch.finfo(bias.dtype).min)
        if request.sinks is not None:
            wide = torch.float64 if q.dtype == torch.float64 else torch.float32
            module.sinks = torch.as_tensor(np.asarray(request.sinks)).to(wide)
            return eager_with_sinks(module, q, k, v, mask, scaling=scale)
        if request.softcap is not None:
            return capped_eager(module, q, k, v, mask, scaling=scale, softcap=request.softcap)
        return eager_attention_forward(module, q, k, v, mask, scaling=scale)

    def cannot_do(self, call: Any) -> Optional[str]:
        if {"softcap", "sinks"} <= set(call.features):
            return "softcap and sinks: eager_attention_forward() has one of them, Gemma 2's or GPT-OSS's"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # matmul, times the scale and plus the mask, in the type of q; softmax in float32; weights in the type of q.
        stated: dict[str, Any] = {"division": "reciprocal", "normalised_before_storage": True, "kept_weights": True}
        stated |= {"delta_from_weights": True, "stored_weights": call.dtype}
        if call.dtype == "f64" and "sinks" not in call.features:
            stated |= {"accumulator": "f32", "stored_weights": "f32"}
        if call.dtype in ("f16", "bf16"):
            stated |= {"stored_scores": call.dtype, "score_stores": 6 if "softcap" in call.features else 3}
            stated |= {"stored_score_gradients": call.dtype, "stored_head_gradients": call.dtype}
        return {**stated, "flush_to_zero": True} if call.dtype == "bf16" else stated  # oneDNN's product of bf16


class TransformersSdpa(Interface):
    """sdpa_attention_forward(): the default. What is added is its position_bias."""

    name = "transformers_sdpa"
    library = f"sdpa_attention_forward, {VERSION}"
    implementation = "sdpa"
    # create_position_bias_mask(): what hides beside a bias is the smallest number; otherwise such a row is 0.
    conventions = {"hidden_nan": "leaks", "empty_row": "mean of v"}

    def call(self, module: Any, q: Any, k: Any, v: Any, mask: Any, bias: Any, scale: float, request: Request) -> Any:
        return sdpa_attention_forward(module, q, k, v, mask, scaling=scale, position_bias=bias)

    def cannot_do(self, call: Any) -> Optional[str]:
        return Sdpa.cannot_do(self, call)  # type: ignore[arg-type]

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        return Sdpa.arithmetic(self, call)  # type: ignore[arg-type]


class Flex(Interface):
    """flex_attention_forward(), compiled as the library does it. What is added is its position_bias."""

    name = "transformers_flex"
    library = f"flex_attention_forward, {VERSION}"
    implementation = "flex_attention"
    takes = (Torch.takes | {"softcap"}) - GRADIENTS - {"dtype=f64"}
    cannot = {
        **Interface.cannot,
        "sinks": '"Attention sinks cannot be run on CPU with flex attention"; integrations/flex_attention.py',
        "dtype=f64": "PyTorch: compiled flex_attention on CPU takes float32 and 16 bits",
    }
    cannot |= dict.fromkeys(("pass=backward", "pass=both"), "PyTorch: FlexAttention does not support backward on CPU")
    conventions = {"hidden_nan": "leaks"}  # type: ignore[assignment]

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        return {**COMPILED, "stored_weights": call.dtype}

    def prepared(self, request: Request, dtype: torch.dtype) -> Any:
        return block_mask_of(request)

    def call(self, module: Any, q: Any, k: Any, v: Any, mask: Any, bias: Any, scale: float, request: Request) -> Any:
        forget_others(q, k, v)
        if bias is not None:
            bias = bias.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        return flex_attention_forward(
            module, q, k, v, mask, scaling=scale, softcap=request.softcap, position_bias=bias
        )
