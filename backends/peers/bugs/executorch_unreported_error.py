"""ExecuTorch: in PyTorch, a call that the kernel of `custom_sdpa` refuses raises nothing and gives memory that nothing
was written to."""

import importlib.util
from importlib.metadata import version
from pathlib import Path

import torch

folder = Path(next(iter(importlib.util.find_spec("executorch").submodule_search_locations)))
torch.ops.load_library(next((folder / "extension/llm/custom_ops").glob("libcustom_ops_aot_lib.*")))
q = torch.ones(1, 2, 1, 8)
wide = torch.ones(1, 2, 1, 16)
mask = torch.zeros(2, 2)
calls = {
    "a mask and is_causal": (q, q, q, 0, mask, 0.0, True),
    "wider values": (q, q, wide, 0),
    "a boolean mask": (q, q, q, 0, torch.ones(2, 2, dtype=torch.bool)),
}
unreported = []
for name, arguments in calls.items():
    untouched = torch.full_like(q, 7)
    try:
        torch.ops.llama.custom_sdpa.out(*arguments, out=untouched)
    except RuntimeError:
        continue
    if (untouched == 7).all():
        unreported.append(name)
print(
    f"executorch {version('executorch')}: got no error and no output for {unreported}, expected a RuntimeError for each"
)
raise SystemExit(bool(unreported))
