"""PyTorch: `scaled_dot_product_attention` on CPU with `is_causal` and a scale of 0 or below gives NaN to all queries but the last."""

import torch
from torch.nn.functional import scaled_dot_product_attention

q = torch.ones(1, 1, 2, 8)
v = torch.tensor([1.0, 3.0]).reshape(1, 1, 2, 1).expand(1, 1, 2, 8).contiguous()
hidden = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
got = {}
for scale in (-1.0, 0.0):
    by_flag = scaled_dot_product_attention(q, q, v, is_causal=True, scale=scale)
    by_mask = scaled_dot_product_attention(q, q, v, hidden, scale=scale)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        by_math = scaled_dot_product_attention(q, q, v, is_causal=True, scale=scale)
    got[scale] = [o[0, 0, :, 0].tolist() for o in (by_flag, by_mask, by_math)]
print(f"by scale, with is_causal, with the same mask, and by SDPBackend.MATH: got {got}, expected [1, 2] for each")
raise SystemExit(any(o != [1, 2] for outputs in got.values() for o in outputs))
