"""PyTorch on processors: `scaled_dot_product_attention` gives wrong numbers for float64 inputs with a float32
mask."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

torch.manual_seed(0)
q, k, v = (torch.randn(1, 1, 32, 8, dtype=torch.float64) for _ in range(3))
mask = torch.zeros(1, 1, 32, 32)
mask[..., 1::2] = -torch.inf
expected = scaled_dot_product_attention(q, k, v, mask.double())
with sdpa_kernel(SDPBackend.MATH):
    unfused = scaled_dot_product_attention(q, k, v, mask)
got = scaled_dot_product_attention(q, k, v, mask)
off, unfused_off = ((t - expected).abs().max().item() for t in (got, unfused))
print(
    f"PyTorch {torch.__version__}: off by {off:.3g} by default, by {unfused_off:.3g} with SDPBackend.MATH; "
    "expected 0 or an error"
)
raise SystemExit(not off < 1e-12)
