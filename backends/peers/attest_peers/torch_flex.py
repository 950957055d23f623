"""torch.nn.attention.flex_attention.

Run eagerly: math_attention() in torch/_higher_order_ops/flex_attention.py. Compiled:
torch/_inductor/codegen/cpp_flex_attention_template.py.
"""

from __future__ import annotations

import warnings
from typing import Any, Callable, Mapping, Optional

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from attest_peers.gradients import GRADIENTS
from attest_peers.peer import ADDING, HIDING
from attest_peers.request import Request
from attest_peers.torch_sdpa import Torch, added


class Backend(Torch):
    """What is hidden is a block mask, what is added and the soft cap are a score_mod."""

    name = "torch_flex"
    library = f"flex_attention, PyTorch {torch.__version__}, CPU, eager"
    takes = (Torch.takes | {"softcap", "out=lse"}) - GRADIENTS
    cannot = {
        "sinks": "flex_attention has no parameter for it; torch/nn/attention/flex_attention.py",
        "dropout": "flex_attention has no parameter for it; torch/nn/attention/flex_attention.py",
    }
    cannot |= dict.fromkeys(("pass=backward", "pass=both"), "FlexAttention does not support backward on CPU")
    conventions = {"hidden_nan": "leaks"}  # type: ignore[assignment]

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = self.with_cached(k, v, request)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it runs eagerly
            made = self._flex(q, k, v)(
                q, k, v, score_mod=_score_mod(request, q.dtype), block_mask=block_mask_of(request), scale=request.scale,
                enable_gqa=q.shape[1] != k.shape[1], return_lse="lse" in request.outputs,
            )  # fmt: skip
        if "lse" not in request.outputs:
            return made
        wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        return {"o": made[0], "lse": made[1].to(wide)[..., None]}

    def _flex(self, q: Any, k: Any, v: Any) -> Any:
        return flex_attention

    def cannot_do(self, call: Any) -> Optional[str]:
        if 0 in (call.batch, call.query_heads, call.query_length) and (HIDING | ADDING) & set(call.features):
            return "a size 0: a score_mod or mask_mod that reads a table is mapped over no queries, and vmap can't"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # _math_attention_inner(): working precision f32, f64 for f64; softmax, then a product with weights of v's type.
        # oneDNN's product of bf16 makes subnormals 0.
        stated = {"division": "reciprocal", "normalised_before_storage": True, "stored_weights": call.dtype}
        return {**stated, "flush_to_zero": True} if call.dtype == "bf16" else stated


#: cpp_flex_attention_template.py: 128 keys a step, exp_u20(), the reciprocal of the sum; weights in the type of q.
COMPILED = {"division": "reciprocal", "key_block": 128, "exp_ulps": 20.0, "flush_to_zero": True}


class Compiled(Backend):
    """By torch.compile, for each shape anew: behind a limit of shapes it would run eagerly."""

    name = "torch_flex_compiled"
    library = f"flex_attention, PyTorch {torch.__version__}, CPU, torch.compile"
    takes = Backend.takes - {"dtype=f64", "out=lse"}
    cannot = {
        **Backend.cannot,
        "dtype=f64": "torch/_inductor/kernel/flex/flex_cpu.py takes float, float16 and bfloat16",
        "out=lse": '"torch.compile on CPU only supports inference and `return_lse` is not supported yet"',
    }

    def _flex(self, q: Any, k: Any, v: Any) -> Any:
        forget_others(q, k, v)
        return torch.compile(flex_attention)

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        return {**COMPILED, "stored_weights": call.dtype}


def forget_others(*tensors: Any, _last: list[Any] = []) -> None:  # noqa: B006
    """Leaves nothing compiled for tensors of other shapes."""
    shapes = [(tuple(tensor.shape), tensor.dtype) for tensor in tensors]
    if _last != [shapes]:
        torch._dynamo.reset()
        _last[:] = [shapes]


def block_mask_of(request: Request) -> Any:
    visible = request.visible()
    if visible is None:
        return None
    seen = torch.from_numpy(visible.copy())
    batches, heads = seen.shape[:2]
    rows, columns = seen.shape[2:]

    def mask_mod(b: Any, h: Any, i: Any, j: Any) -> Any:
        return seen[b % batches, h % heads, i.clamp(max=rows - 1) % rows, j.clamp(max=columns - 1) % columns]

    return create_block_mask(mask_mod, request.batch, request.heads, request.queries, request.keys, device="cpu")


def _score_mod(request: Request, dtype: torch.dtype) -> Optional[Callable[..., Any]]:
    # Scores are float32 or wider. While score_mod is traced they say that they are of the type of the query.
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    # A tensor: eager flex_attention fails where a captured number differs from the one captured before.
    cap = None if request.softcap is None else torch.tensor(request.softcap, dtype=wide)
    if cap is None and not request.adds:
        return None
    table = added(request, None).to(wide) if request.adds else None

    def score_mod(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        if cap is not None:
            score = cap * torch.tanh(score / cap)
        if table is not None:
            at = [index % size for index, size in zip((b, h, i, j), table.shape)]
            score = score + table[at[0], at[1], at[2], at[3]]
        return score

    return score_mod
