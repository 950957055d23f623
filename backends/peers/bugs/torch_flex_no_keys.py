"""PyTorch: flex_attention called eagerly raises where there are no keys; scaled_dot_product_attention gives zeros."""

import warnings

import torch
from torch.nn.attention.flex_attention import flex_attention

warnings.simplefilter("ignore")
q, k = torch.ones(1, 1, 2, 8), torch.ones(1, 1, 0, 8)
try:
    got = flex_attention(q, k, k).abs().max().item()
except Exception as error:
    got = f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"
zeros = torch.nn.functional.scaled_dot_product_attention(q, k, k).abs().max().item()
print(f"PyTorch {torch.__version__}: got {got}, expected 0 (scaled_dot_product_attention: {zeros})")
raise SystemExit(got != 0)
