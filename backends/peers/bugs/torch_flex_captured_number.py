"""PyTorch: flex_attention called eagerly fails where a number captured by score_mod differs from the first call's."""

import warnings

import torch
from torch.nn.attention.flex_attention import flex_attention

warnings.simplefilter("ignore")
q = torch.ones(1, 1, 4, 8)


def capped(cap):
    return lambda score, b, h, i, j: cap * torch.tanh(score / cap)


for cap in (2.0, 3.0):
    try:
        flex_attention(q, q, q, score_mod=capped(cap))
        got = "an output"
    except Exception as error:
        got = (
            type(error).__name__
            + ", "
            + next(line for line in str(error).splitlines() if "FX node" in line)[:60].strip()
        )
    print(f"PyTorch {torch.__version__}: cap {cap}: got {got}, expected an output")
raise SystemExit(got != "an output")
