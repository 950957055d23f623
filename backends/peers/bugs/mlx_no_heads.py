"""MLX on processors: `mx.fast.scaled_dot_product_attention` without heads ends the process by a division by zero."""

import signal
import subprocess
import sys
from importlib.metadata import version

ATTENTION = """
import mlx.core as mx
q = mx.zeros((1, 0, 4, 8))
mx.eval(mx.fast.scaled_dot_product_attention(q, q, q, scale=1.0))
"""
code = subprocess.run([sys.executable, "-c", ATTENTION], check=False).returncode
got = "an output" if code == 0 else signal.Signals(-code).name if code < 0 else f"exit code {code}"
print(f"MLX {version('mlx')}: got {got}, expected an output of shape (1, 0, 4, 8), or an exception")
raise SystemExit(code != 0)
