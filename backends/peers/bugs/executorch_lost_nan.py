"""ExecuTorch: in `custom_sdpa` a NaN among the first 512 of more keys takes these 512 away."""

import importlib.util
from importlib.metadata import version
from pathlib import Path

import torch

folder = Path(next(iter(importlib.util.find_spec("executorch").submodule_search_locations)))
torch.ops.load_library(next((folder / "extension/llm/custom_ops").glob("libcustom_ops_aot_lib.*")))
q = torch.ones(1, 1, 1, 8)
got = {}
for keys in (512, 513, 1024):
    for place in (0, keys - 1):
        k = torch.ones(1, keys, 1, 8)
        k[0, place] = torch.nan
        v = torch.arange(1.0, keys + 1).reshape(1, keys, 1, 1).expand(1, keys, 1, 8).contiguous()
        got[keys, place] = torch.ops.llama.custom_sdpa(q, k, v, keys - 1, None, 0.0, False, None)[0, 0, 0, 0].item()
print(f"executorch {version('executorch')}: by number of keys and place of NaN: got {got}, expected nan for each")
raise SystemExit(any(o == o for o in got.values()))
