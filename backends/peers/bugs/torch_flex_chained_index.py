"""PyTorch: `flex_attention` compiled for processors reads a table wrongly that `score_mod` indexes as `table[i][j]`, and
writes behind its buffers; eager, and as `table[i, j]`, it is right."""

import subprocess
import sys
import warnings

import torch
from torch.nn.attention.flex_attention import flex_attention

warnings.simplefilter("ignore")  # that it runs eagerly
q = k = torch.zeros(1, 1, 3, 16)
v = torch.arange(3.0).reshape(1, 1, 3, 1).expand(1, 1, 3, 16).contiguous()
table = torch.zeros(3, 3)
table[1, 0] = -torch.inf  # hides key 0 from query 1


def chained(score, b, h, i, j):
    return score + table[i][j]


def at_once(score, b, h, i, j):
    return score + table[i, j]


def found(function, score_mod):
    return [round(x, 3) for x in function(q, k, v, score_mod=score_mod)[0, 0, :, 0].tolist()]


if len(sys.argv) > 1:
    print(found(torch.compile(flex_attention), chained), flush=True)
    sys.exit()
expected = [1.0, 1.5, 1.0]
print(f"eager, table[i][j]: got {found(flex_attention, chained)}, expected {expected}")
print(f"compiled, table[i, j]: got {found(torch.compile(flex_attention), at_once)}, expected {expected}")
ran = subprocess.run([sys.executable, __file__, "alone"], capture_output=True, text=True, check=False)
said = [line.split(": ", 1)[-1][-60:] for line in ran.stderr.splitlines() if "out of bounds" in line or "free" in line]
got = ran.stdout.strip() or f"no answer, exit code {ran.returncode}"
print("; ".join([f"compiled, table[i][j]: got {got}, expected {expected}", *said[-1:]]))
sys.exit(got != str(expected))
