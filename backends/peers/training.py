#!/usr/bin/env python3
"""Times gradients of attest's backends beside PyTorch's flash backward, in one run: rows of a table.

    python3 backends/peers/training.py [--threads 2] [--repetitions 9] [LINE ...]

Without lines it takes the suite `training`. Run it with the interpreter of the environment `torch` (install.sh makes
it); PyTorch's kernel knows no packed sequences and no segments. Let nothing else run meanwhile.
"""

from __future__ import annotations

import argparse
from typing import Any

import attest
import torch

#: Of aten/src/ATen/native/cpu/FlashAttentionKernel.cpp: weights and dS enter the products in the type of q.
NARROW = {"bf16": {"stored_weights": "bf16", "stored_score_gradients": "bf16"}}


def torch_flash(q: Any, k: Any, v: Any, *, causal: bool = False, scale: Any = None, do: Any, saved_o: Any,
                saved_lse: Any, pass_: str, outputs: Any) -> dict[str, Any]:  # fmt: skip
    """dq, dk and dv; key heads are repeated for their group, and its gradients summed, as PyTorch itself does it."""
    group = q.shape[1] // k.shape[1]
    if group > 1:
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    dq, dk, dv = backward(do, q, k, v, saved_o, saved_lse.reshape(q.shape[:3]), 0.0, causal, scale=scale)
    if group > 1:
        dk, dv = (x.unflatten(1, (-1, group)).sum(2) for x in (dk, dv))
    return {"dq": dq, "dk": dk, "dv": dv}


def row(line: str, threads: int, repetitions: int) -> str:
    stated = next((facts for name, facts in NARROW.items() if f"dtype={name}" in line), {})
    timed = attest.bench(torch_flash, line, against=["simd", "eigen"], tensors="torch", threads=threads,
                         repetitions=repetitions, arithmetic=stated)[0]  # fmt: skip
    names = ("simd", "eigen", "torch_flash")
    cells = [timed[name].wrong or f"{1e3 * timed[name].median:.1f} ({timed[name].gflops:.0f})" for name in names]
    ratio = timed["torch_flash"].median / min(timed[name].median for name in names[:2])
    return f"| `{line}` | {' | '.join(cells)} | {ratio:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("lines", nargs="*", metavar="LINE")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    lines = asked.lines or attest.cases("training")
    print("| case | simd: ms (GFLOP/s) | eigen | PyTorch | PyTorch / best of ours |\n|---|---|---|---|---|")
    for line in lines:
        print(row(line, asked.threads, asked.repetitions), flush=True)


if __name__ == "__main__":
    main()
