"""ExecuTorch: `custom_sdpa` with `is_causal` and a scale of 0 or below gives NaN to all queries but the last."""

import importlib.util
from importlib.metadata import version
from pathlib import Path

import torch

folder = Path(next(iter(importlib.util.find_spec("executorch").submodule_search_locations)))
torch.ops.load_library(next((folder / "extension/llm/custom_ops").glob("libcustom_ops_aot_lib.*")))
q = torch.ones(1, 2, 1, 8)
v = torch.tensor([1.0, 3.0]).reshape(1, 2, 1, 1).expand(1, 2, 1, 8).contiguous()
hidden = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
got = {}
for scale in (-1.0, 0.0):
    by_flag = torch.ops.llama.custom_sdpa(q, q, v, 0, None, 0.0, True, scale)
    by_mask = torch.ops.llama.custom_sdpa(q, q, v, 0, hidden, 0.0, False, scale)
    got[scale] = [o[0, :, 0, 0].tolist() for o in (by_flag, by_mask)]
print(
    f"executorch {version('executorch')}: by scale, with is_causal and with the same mask: got {got}, expected [1, 2] for each"
)
raise SystemExit(any(o != [1, 2] for pair in got.values() for o in pair))
