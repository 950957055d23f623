"""PyTorch's scaled_dot_product_attention on an NVIDIA GPU, each path by itself.

aten/src/ATen/native/transformers/cuda/sdp_utils.cpp says which calls a path takes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping, Optional

import torch
from torch.backends import cuda
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from attest_peers.peer import ADDING, HIDING
from attest_peers.request import Request
from attest_peers.torch_sdpa import TYPES, Math, Torch, mask_of


class OnGpu(Torch):
    """What the paths share: masks are made on the host."""

    device = "cuda"
    conventions = {"hidden_nan": "leaks"}  # type: ignore[assignment]
    path: SDPBackend

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = self.with_cached(k, v, request)
        host = on_host(request)
        mask = mask_of(host, q.dtype, host.only_causal())
        with sdpa_kernel(self.path):
            return scaled_dot_product_attention(
                q, k, v, None if mask is None else mask.to(q.device), is_causal=host.only_causal(),
                scale=request.scale, enable_gqa=q.shape[1] != k.shape[1],
            )  # fmt: skip

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.dtype != "f64" and "mask.dtype" in call.features and "mask.dtype=f64" in call.line:
            return "mask.dtype=f64: attn_mask is float32 at most where q is not f64"
        return None if self.takes_call(asked(call)) else "sdp_utils.cpp says that this path doesn't take the call"

    def takes_call(self, asked: Any) -> bool:
        raise NotImplementedError


def on_host(request: Request) -> Request:
    names = ("mask", "bias", "blocks", "alibi_slopes", "sinks")
    tensors = {name: getattr(request, name) for name in names}
    return replace(request, **{name: tensor.cpu() for name, tensor in tensors.items() if torch.is_tensor(tensor)})


def asked(call: Any) -> Any:
    """The call's shapes, for the functions that say whether a path takes them."""

    def empty(heads: int, length: int, dim: int) -> torch.Tensor:
        made = torch.empty(call.batch, heads, length, dim, dtype=TYPES[call.dtype], device="cuda")
        return made.requires_grad_(call.pass_ != "forward")

    features = set(call.features)
    causal = features & (HIDING | ADDING) == {"causal"}
    mask = None
    if features & (HIDING | ADDING) and not causal:
        mask = torch.empty(call.batch, call.query_heads, call.query_length, call.key_length, device="cuda").bool()
    return cuda.SDPAParams(
        empty(call.query_heads, call.query_length, call.key_dim), empty(call.key_heads, call.key_length, call.key_dim),
        empty(call.key_heads, call.key_length, call.value_dim), mask, 0.0, causal, call.query_heads != call.key_heads,
    )  # fmt: skip


#: exp2() of scores times scale times log2(e), by ex2.approx, which flushes; P in the type of the inputs; 1/sum at the end.
FUSED = {
    "base2": True, "scale": "folded_log2e", "division": "opencl_reciprocal", "key_block": 64, "exp_ulps": 4.0,
    "log_ulps": 4.0, "flush_to_zero": True,
}  # fmt: skip


def fused(call: Any) -> Mapping[str, Any]:
    stored = call.dtype
    gradients = {"stored_score_gradients": stored, "stored_head_gradients": stored, "varying_order": True}
    return {**FUSED, "stored_weights": stored, **(gradients if call.pass_ != "forward" else {})}


class Flash(OnGpu):
    """FlashAttention 2, as PyTorch ships it."""

    name = "torch_cuda_flash"
    library = f"scaled_dot_product_attention, PyTorch {torch.__version__}, CUDA, SDPBackend.FLASH_ATTENTION"
    path = SDPBackend.FLASH_ATTENTION

    def takes_call(self, asked: Any) -> bool:
        return bool(cuda.can_use_flash_attention(asked))

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        return fused(call)


class Efficient(OnGpu):
    """The memory-efficient kernel."""

    name = "torch_cuda_efficient"
    library = f"scaled_dot_product_attention, PyTorch {torch.__version__}, CUDA, SDPBackend.EFFICIENT_ATTENTION"
    path = SDPBackend.EFFICIENT_ATTENTION

    def cannot_do(self, call: Any) -> Optional[str]:
        added = "alibi" in call.features or ("mask=add" in call.features and call.mask_dtype != call.dtype)
        if added and call.dtype in ("f16", "bf16"):
            return "a mask in float32: invalid dtype for bias - should match query's dtype"
        return super().cannot_do(call)

    def takes_call(self, asked: Any) -> bool:
        return bool(cuda.can_use_efficient_attention(asked))

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        return fused(call)


class Cudnn(OnGpu):
    """cuDNN's graph."""

    name = "torch_cuda_cudnn"
    library = f"scaled_dot_product_attention, PyTorch {torch.__version__}, CUDA, SDPBackend.CUDNN_ATTENTION"
    path = SDPBackend.CUDNN_ATTENTION

    def takes_call(self, asked: Any) -> bool:
        return bool(cuda.can_use_cudnn_attention(asked))

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        return fused(call)


class OnGpuMath(OnGpu):
    """The path without fusion."""

    name = "torch_cuda_math"
    library = f"scaled_dot_product_attention, PyTorch {torch.__version__}, CUDA, SDPBackend.MATH"
    path = SDPBackend.MATH

    def takes_call(self, asked: Any) -> bool:
        return True

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        return Math.arithmetic(self, call)  # type: ignore[arg-type]
