"""PyTorch's scaled_dot_product_attention on processors, each path by itself.

aten/src/ATen/native/transformers/attention.cpp, aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from attest_peers.gradients import GRADIENTS, Differentiated
from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES
from attest_peers.request import Request

TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def mask_of(request: Request, dtype: torch.dtype, causal: bool) -> Optional[torch.Tensor]:
    """attn_mask: all that is hidden but by `is_causal`, and all that is added."""
    visible = None if causal else request.visible()
    if not request.adds:
        return None if visible is None else torch.from_numpy(visible.copy())
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    bias = None if request.bias is None else as_stored(request.bias)
    if bias is not None and request.alibi_slopes is None and visible is None:
        # Of q's type or float32, which is given as it is; others are widened.
        return bias if bias.dtype in (dtype, torch.float32) else bias.to(wide)
    total = added(request, visible)
    return total.to(dtype if request.alibi_slopes is None and bias is not None and bias.dtype == dtype else wide)


def as_stored(bias: torch.Tensor) -> torch.Tensor:
    """With length 1 along axes that repeat it."""
    return bias[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in bias.stride())].clone()


def added(request: Request, visible: Any) -> torch.Tensor:
    """All that is added, float64, with -inf where `visible` is False. PyTorch can differentiate it by the bias."""
    total = torch.zeros(1, 1, 1, 1, dtype=torch.float64)
    if request.bias is not None:
        total = as_stored(request.bias).double()
    if request.alibi_slopes is not None:
        total = total + torch.from_numpy(request.alibi())
    return total if visible is None else torch.where(torch.from_numpy(visible.copy()), total, -torch.inf)


class Torch(Differentiated):
    """What the adapters to PyTorch share."""

    tensors = "torch"
    takes = SHAPES | HIDING | ADDING | CACHE | GRADIENTS | {"dtype=" + name for name in TYPES}
    cannot = {
        "softcap": "scaled_dot_product_attention has no parameter for it",
        "sinks": "scaled_dot_product_attention has no parameter for it",
        "dropout": "it draws which weights it keeps by itself",
        "out=lse": "scaled_dot_product_attention returns the output alone",
    }

    def with_cached(self, k: Any, v: Any, request: Request) -> tuple[Any, Any]:
        if request.past_k is None:
            return k, v
        return torch.cat([request.past_k, k], 2), torch.cat([request.past_v, v], 2)

    def as_stored(self, bias: Any) -> Any:
        return as_stored(bias)

    def pull(
        self, forward: Callable[..., dict[str, Any]], inputs: Sequence[Any], derivatives: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        with torch.enable_grad():
            leaves = [tensor.detach().requires_grad_() for tensor in inputs]
            found = forward(*leaves)
        roots = [found[name] for name in derivatives]
        given = [derivatives[name].reshape(root.shape) for name, root in zip(derivatives, roots)]
        pulled = torch.autograd.grad(roots, leaves, given, allow_unused=True)
        whole = [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, pulled)]
        return {name: tensor.detach() for name, tensor in found.items()}, whole

    def joined(self, parts: Sequence[Any]) -> Any:
        return torch.cat(list(parts), 2)


class Backend(Torch):
    """The path that PyTorch chooses: flash where it can."""

    name = "torch_sdpa"
    library = f"scaled_dot_product_attention, PyTorch {torch.__version__}, CPU"
    paths = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
    conventions = {"hidden_nan": "leaks"}  # type: ignore[assignment]

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = self.with_cached(k, v, request)
        causal = request.only_causal()
        mask = mask_of(request, q.dtype, causal)
        with sdpa_kernel(self.paths):
            return scaled_dot_product_attention(
                q, k, v, mask, is_causal=causal, scale=request.scale, enable_gqa=q.shape[1] != k.shape[1]
            )

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.dtype != "f64" and "mask.dtype" in call.features and "mask.dtype=f64" in call.line:
            return "mask.dtype=f64: attn_mask is float32 at most where q is not f64"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # cpu_flash_attention(): 512 keys a step, exp_u20() of 20 ulps, times the reciprocal of the sum at the end;
        # _scaled_dot_product_attention_math(): sqrt(scale) on q and k. Which one runs depends on shapes and mask.
        # cpu_flash_attention_backward(): weights and their gradients enter products in the type of the inputs,
        # and keys are repeated for each head of a group before it.
        return {
            "scale": "split_root", "division": "reciprocal", "key_block": 512, "stored_weights": call.dtype,
            "exp_ulps": 20.0, "flush_to_zero": True,  # exp_u20() gives 0 below the smallest normal number
            "stored_score_gradients": call.dtype, "stored_head_gradients": call.dtype,
        } | (KEPT if call.pass_ != "forward" and not fused(call) else {})  # fmt: skip


#: _scaled_dot_product_attention_math() differentiated: softmax's own derivative, from its weights.
KEPT = {"kept_weights": True, "delta_from_weights": True}


def fused(call: Any) -> bool:
    """Whether the fused path differentiates: use_flash_attention_cpp() in native/transformers/sdp_utils_cpp.cpp."""
    empty = 0 in (call.batch, call.query_heads, call.query_length, call.key_length)
    return not (empty or call.key_dim != call.value_dim or "out=dmask" in call.features)


class Math(Backend):
    """The path without fusion, forced."""

    name = "torch_math"
    library = f"scaled_dot_product_attention, PyTorch {torch.__version__}, CPU, SDPBackend.MATH"
    paths = [SDPBackend.MATH]

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # _scaled_dot_product_attention_math(): 16-bit inputs are widened to float and only the output is rounded.
        # A mask of 16 bits is widened, too, so that its gradient is rounded before it is summed over broadcast axes.
        stated = {"scale": "split_root", "division": "reciprocal", "normalised_before_storage": True, **KEPT}
        return {**stated, "dmask.stored_score_gradients": call.mask_dtype} if "out=dmask" in call.features else stated


class FlashBackward(Torch):
    """The fused path's backward pass alone, on results that the reference saved."""

    name = "torch_flash_backward"
    library = f"aten::_scaled_dot_product_flash_attention_for_cpu_backward, PyTorch {torch.__version__}, CPU"
    takes = (Torch.takes | {"pass=backward"}) - {"pass=both", "out=dmask", "dim=Dqk/Dv", "past", "a size 0"}
    cannot = {
        **Torch.cannot,
        "pass=both": "it is the backward pass alone",
        "out=dmask": "the operator gives gradients of query, key and value alone",
        "dim=Dqk/Dv": "use_flash_attention_cpp() wants one size of heads",
        "past": "the operator has one tensor of keys",
        "a size 0": "use_flash_attention_cpp() leaves empty tensors to the other path",
    }
    conventions = {"hidden_nan": "leaks"}  # type: ignore[assignment]

    def compute_gradients(self, q: Any, k: Any, v: Any, request: Request, do: Any, dlse: Any) -> Any:
        causal, group = request.only_causal(), q.shape[1] // k.shape[1]
        mask = mask_of(request, q.dtype, causal)
        if mask is not None and mask.dtype == torch.bool:  # convert_boolean_attn_mask() in attention.cpp
            mask = torch.where(mask, 0.0, -torch.inf).to(q.dtype)
        if group > 1:  # pre_process_group_query_attention_input() in attention.cpp
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        lse = request.saved_lse[..., 0]
        lse = torch.where(lse == -torch.inf, 0.0, lse)  # what cpu_flash_attention() saves of a row that sees nothing
        made = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            do, q, k, v, request.saved_o.contiguous(), lse, 0.0, causal, attn_mask=mask, scale=request.scale
        )
        whole = [made[0]] + [part.unflatten(1, (-1, group)).sum(2) if group > 1 else part for part in made[1:]]
        return {name: part for name, part in zip(("dq", "dk", "dv"), whole) if name in request.outputs}

    def cannot_do(self, call: Any) -> Optional[str]:
        return "pass=forward: it is the backward pass alone" if call.pass_ == "forward" else None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        return Backend.arithmetic(self, call)  # type: ignore[arg-type]


class MultiheadAttention(Torch):
    """nn.MultiheadAttention in evaluation mode with projections by the identity, without weights: by SDPA."""

    name = "torch_mha"
    library = f"nn.MultiheadAttention, PyTorch {torch.__version__}, CPU, need_weights=False"
    need_weights = False
    takes = Torch.takes - {"grouped heads", "dim=Dqk/Dv"}
    cannot = {
        **Torch.cannot,
        "grouped heads": "nn.MultiheadAttention has the same heads for all",
        "dim=Dqk/Dv": "nn.MultiheadAttention has one size of heads",
        "out=weights": "need_weights gives averages, or weights beside an output that is not by SDPA",
    }
    conventions = {"hidden_nan": "leaks"}  # type: ignore[assignment]

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = self.with_cached(k, v, request)
        batch, heads, queries, dim = q.shape
        module = torch.nn.MultiheadAttention(heads * dim, heads, bias=False, batch_first=True, dtype=q.dtype).eval()
        module.requires_grad_(False)
        eye = torch.eye(heads * dim, dtype=q.dtype)
        module.in_proj_weight.copy_(eye.repeat(3, 1))
        if request.scale is not None:  # the module divides by sqrt(dim)
            module.in_proj_weight[: heads * dim] *= request.scale * dim**0.5
        module.out_proj.weight.copy_(eye)
        side_by_side = [t.transpose(1, 2).reshape(batch, t.shape[2], heads * dim) for t in (q, k, v)]
        padding, mask = self._masks(request, q.dtype)
        o, _ = module(*side_by_side, key_padding_mask=padding, attn_mask=mask, need_weights=self.need_weights)
        return o.reshape(batch, queries, heads, dim).transpose(1, 2).contiguous()

    @staticmethod
    def _masks(request: Request, dtype: torch.dtype) -> tuple[Optional[torch.Tensor], Optional[torch.Tensor]]:
        """key_padding_mask and attn_mask: True hides, or a number is added."""
        padding = None
        lengths, request.key_lengths = request.key_lengths, None
        if lengths is not None and request.align == "top-left":
            padding = torch.arange(request.keys)[None, :] >= torch.tensor(list(lengths))[:, None]
        else:
            request.key_lengths = lengths
        mask = mask_of(request, dtype, False)
        request.key_lengths = lengths
        if mask is None:
            return padding, None
        shape = (request.batch, request.heads, request.queries, request.keys)
        if mask.shape[:2] == (1, 1):
            mask = mask[0, 0].expand(shape[2:])
        else:
            mask = mask.expand(shape).reshape(request.batch * request.heads, *shape[2:])
        if padding is not None and mask.dtype != torch.bool:  # the module wants both of one type
            padding = torch.zeros(padding.shape, dtype=dtype).masked_fill(padding, -torch.inf)
        return padding, ~mask if mask.dtype == torch.bool else mask.to(dtype)

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.query_heads == 0:
            return "heads: nn.MultiheadAttention has one or more"
        if call.dtype in ("f16", "bf16") and {"mask.dtype", "alibi"} & set(call.features):
            return "mask.dtype: the module makes attn_mask of the type of the query"
        if call.dtype in ("f16", "bf16") and "scale" in call.features:
            return "scale: a projection of q says it, and would be rounded to 16 bits"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        return Backend.arithmetic(self, call)  # type: ignore[arg-type]


class MultiheadAttentionWeights(MultiheadAttention):
    """The same with need_weights=True, its default: by bmm and softmax."""

    name = "torch_mha_weights"
    library = f"nn.MultiheadAttention, PyTorch {torch.__version__}, CPU, need_weights=True"
    need_weights = True
    conventions = {"hidden_nan": "leaks", "empty_row": "nan"}

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # multi_head_attention_forward(): q times the scale, baddbmm or bmm, softmax, bmm.
        stated = {"division": "reciprocal", "normalised_before_storage": True, "scale": "split_root"} | KEPT
        if call.dtype in ("f16", "bf16"):
            stated |= {"stored_weights": call.dtype, "stored_scores": call.dtype, "score_stores": 2}
            if call.pass_ == "forward":
                stated |= {"query_operand": call.dtype}
            else:
                stated |= {"stored_score_gradients": call.dtype, "stored_head_gradients": call.dtype}
        return stated
