"""PyTorch on processors: gradients of `scaled_dot_product_attention` in bfloat16 stop growing after 256 blocks of
queries."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def gradient_of_values(path: SDPBackend) -> float:
    """Of the sum of all outputs, by the first value: 262144 queries see 16 keys, each with the weight 1/16."""
    q = torch.zeros(1, 1, 262144, 16, dtype=torch.bfloat16)
    k, v = (torch.ones(1, 1, 16, 16, dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    with sdpa_kernel(path):
        scaled_dot_product_attention(q, k, v).sum().backward()
    return v.grad.flatten()[0].item()


got, unfused = (gradient_of_values(path) for path in (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH))
print(f"PyTorch {torch.__version__}: got {got:g}, {unfused:g} with SDPBackend.MATH; expected 16384")
raise SystemExit(got != 16384)
