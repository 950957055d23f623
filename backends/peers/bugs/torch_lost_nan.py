"""PyTorch on processors: `scaled_dot_product_attention` gives 0 for a query of NaN where a vector holds more numbers
than there are keys."""

import os
import subprocess
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def lost(path):
    """By type: for which numbers of keys, of 1 to 64, no NaN is left."""
    found = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        q = torch.full((1, 1, 4, 16), torch.nan, dtype=dtype)
        wrong = []
        for keys in range(1, 65):
            k = torch.ones(1, 1, keys, 16, dtype=dtype)
            with sdpa_kernel(path):
                if not scaled_dot_product_attention(q, k, k).isnan().any():
                    wrong.append(keys)
        found[str(dtype).removeprefix("torch.")] = f"{wrong[0]} to {wrong[-1]}" if wrong else "none"
    return found


if len(sys.argv) > 1:
    print(f"{torch.backends.cpu.get_cpu_capability()}: got {lost(SDPBackend.FLASH_ATTENTION)}")
    sys.exit()
ran = [
    subprocess.check_output(
        [sys.executable, __file__, "flash"], env={**os.environ, "ATEN_CPU_CAPABILITY": name}, text=True
    ).strip()
    for name in ("avx512", "avx2")  # what the processor lacks is not taken
]
print("Numbers of keys for which a query of NaN gives 0, expected none, by type:")
print("\n".join(ran))
print(f"SDPBackend.MATH: got {lost(SDPBackend.MATH)}")
sys.exit(any(" to " in line for line in ran))
