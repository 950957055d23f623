"""PyTorch: `flex_attention` fails where a float that `score_mod` captures differs from the first call's."""

import subprocess
import sys
import warnings

import torch
from torch.nn.attention.flex_attention import flex_attention

warnings.simplefilter("ignore")
q = torch.ones(1, 1, 4, 8)


def capped(cap):
    return lambda score, b, h, i, j: cap * torch.tanh(score / cap)


def outcome(attention):
    with torch.no_grad():
        attention(q, q, q, score_mod=capped(2.0))
        try:
            attention(q, q, q, score_mod=capped(3.0))
        except Exception as error:
            inner = error
            while inner.__cause__ or inner.__context__:  # what torch hides
                inner = inner.__cause__ or inner.__context__
            return f"{type(error).__name__}, from {type(inner).__name__}: {inner}"
    return "an output"


if len(sys.argv) > 1:
    torch._dynamo.config.specialize_float = "specialize_float" in sys.argv[1]
    print(outcome(torch.compile(flex_attention) if "compiled" in sys.argv[1] else flex_attention))
    sys.exit()
got = {}
for way in ("eager", "compiled", "eager with specialize_float", "compiled with specialize_float"):
    ran = subprocess.run([sys.executable, __file__, way], capture_output=True, text=True)
    got[way] = ran.stdout.strip()
    print(f"{way}: got {got[way]}; expected an output")
sys.exit(got["eager"] != "an output")
