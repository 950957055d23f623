"""PyTorch on processors: the fused path gives 0 where all scores of a query are NaN; the path without fusion, NaN."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

k = torch.ones(1, 1, 4, 8)
q = torch.full((1, 1, 4, 8), torch.nan)
got = scaled_dot_product_attention(q, k, k).unique().tolist()
with sdpa_kernel(SDPBackend.MATH):
    unfused = scaled_dot_product_attention(q, k, k).unique()[:1].tolist()
print(f"PyTorch {torch.__version__}: got {got} for a query of NaN, {unfused} with SDPBackend.MATH; expected nan")
raise SystemExit(got == [0.0])
