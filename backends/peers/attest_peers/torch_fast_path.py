"""The fast path of nn.MultiheadAttention and nn.TransformerEncoderLayer: native_multi_head_attention_cpu() in
aten/src/ATen/native/transformers/attention.cpp."""

from __future__ import annotations

from typing import Any, Mapping

import torch

from attest_peers.gradients import GRADIENTS
from attest_peers.request import ADDING, Request
from attest_peers.torch_sdpa import MultiheadAttention


class FastPath(MultiheadAttention):
    """Projections by the identity. The module takes this path where it is given one tensor thrice; the operator takes
    three."""

    name = "torch_mha_fast"
    library = f"aten::_native_multi_head_attention, PyTorch {torch.__version__}, CPU"
    takes = (MultiheadAttention.takes | {"out=weights"}) - GRADIENTS - ADDING - {"seq=LqxLk", "past"}
    cannot = {
        **{name: said for name, said in MultiheadAttention.cannot.items() if name != "out=weights"},
        **dict.fromkeys(sorted(ADDING), "floating-point masks are not supported for fast path"),
        **dict.fromkeys(("pass=backward", "pass=both"), "it is taken where nothing requires a gradient"),
        "seq=LqxLk": "expected `query`/`key`/`value` shapes to match",
        "past": "expected `query`/`key`/`value` shapes to match",
    }
    conventions = {"hidden_nan": "leaks", "empty_row": "nan"}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        batch, heads, length, dim = q.shape
        wide = heads * dim
        module = torch.nn.MultiheadAttention(wide, heads, batch_first=True, dtype=q.dtype).eval()
        eye = torch.eye(wide, dtype=q.dtype)
        projections = eye.repeat(3, 1)
        if request.scale is not None:  # the operator divides by sqrt(dim)
            projections[:wide] *= request.scale * dim**0.5
        side_by_side = [t.transpose(1, 2).reshape(batch, length, wide) for t in (q, k, v)]
        padding, mask = self._masks(request, q.dtype)
        merged, kind = module.merge_masks(mask, padding, side_by_side[0])
        o, weights = torch._native_multi_head_attention(
            *side_by_side, wide, heads, projections, torch.zeros(3 * wide, dtype=q.dtype), eye,
            torch.zeros(wide, dtype=q.dtype), merged, "weights" in request.outputs, False, kind,
        )  # fmt: skip
        o = o.reshape(batch, length, heads, dim).transpose(1, 2).contiguous()
        return {"o": o, "weights": weights} if "weights" in request.outputs else o

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # (q + bias) times 1/sqrt(dim), both in the type of q; bmm, softmax and bmm, each rounded to it.
        stated: dict[str, Any] = {"division": "reciprocal", "normalised_before_storage": True, "scale": "split_root"}
        if call.dtype in ("f16", "bf16"):
            stated |= {"stored_weights": call.dtype, "stored_scores": call.dtype, "score_stores": 2}
            stated |= {"query_operand": call.dtype}
        return stated
