"""PyTorch: `flex_attention` compiled with `dynamic=True` makes C++ that doesn't compile where it captures two
tables."""

import warnings

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

warnings.simplefilter("ignore")
length, keys = 4, 6
q, k = torch.ones(1, 1, length, 8), torch.ones(1, 1, keys, 8)
seen, added = torch.ones(1, 1, length, keys, dtype=torch.bool), torch.zeros(1, 1, length, keys)


def mask_mod(b, h, i, j):
    return seen[b, h, i.clamp(max=length - 1), j.clamp(max=keys - 1)]


def score_mod(score, b, h, i, j):
    return score + added[b, h, i, j]


block_mask = create_block_mask(mask_mod, 1, 1, length, keys, device="cpu")
compiled = torch.compile(flex_attention, dynamic=True)
try:
    with torch.no_grad():
        got = f"{compiled(q, k, k, score_mod=score_mod, block_mask=block_mask).max().item():.3f}"
except Exception as error:
    wrong = [line.split("error: ")[1] for line in str(error).splitlines() if "error: " in line]
    got = f"{type(error).__name__}, {wrong[0] if wrong else 'no line of the compiler'}"
print(f"PyTorch {torch.__version__}: got {got}, expected 1.000, as without torch.compile")
raise SystemExit(got != "1.000")
