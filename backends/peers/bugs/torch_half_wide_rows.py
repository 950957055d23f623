"""PyTorch on processors: `torch.mm` of float16 whose rows lie 2^31 elements apart or more ends the process;
bfloat16 and float32 are right."""

import subprocess
import sys

import torch

if len(sys.argv) > 1:
    dtype, step = getattr(torch, sys.argv[1]), int(sys.argv[2])
    rows = torch.empty(step + 1, dtype=dtype).as_strided((2, 1), (step, 1)).fill_(1)
    print(torch.mm(rows, torch.ones(1, 1, dtype=dtype)).flatten().tolist())
    sys.exit()
wrong = False
for dtype in ("float32", "bfloat16", "float16"):
    for step in (2**30, 2**31 + 5):
        command = [sys.executable, __file__, dtype, str(step)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        got = ran.stdout.strip() or f"the end of the process (exit code {ran.returncode})"
        print(f"{dtype}, {step} elements between rows: got {got}, expected [1.0, 1.0]")
        wrong |= got != "[1.0, 1.0]"
sys.exit(wrong)
