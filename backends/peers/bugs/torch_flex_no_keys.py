"""PyTorch: `flex_attention` compiled for processors divides by zero without queries or keys, which ends the process."""

import subprocess
import sys

import torch
from torch.nn.attention.flex_attention import flex_attention

if len(sys.argv) > 1:
    queries, keys = map(int, sys.argv[1:])
    q, k = torch.zeros(1, 1, queries, 16), torch.zeros(1, 1, keys, 16)
    print(tuple(torch.compile(flex_attention)(q, k, k).shape))
    sys.exit()
wrong = False
for queries, keys in ((0, 4), (4, 0), (4, 4)):
    command = [sys.executable, __file__, str(queries), str(keys)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    got = ran.stdout.strip() or f"the end of the process (exit code {ran.returncode})"
    expected = (1, 1, queries, 16)
    print(f"{queries} queries, {keys} keys: got {got}, expected an output of shape {expected}, or an exception")
    wrong |= ran.returncode < 0
sys.exit(wrong)
