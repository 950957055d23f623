"""MNN on x86: in `Attention` a NaN in a key is lost where the key lies in a full vector of 8; a query that sees nothing
gives NaN or a mean, by the number of keys."""

import json
import os
import tempfile
from importlib.metadata import version
from pathlib import Path

output = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # MNN and its converter write to standard output
import _tools  # noqa: E402
import MNN  # noqa: E402
import MNN.expr as F  # noqa: E402
import numpy as np  # noqa: E402


def module_of(keys, folder):
    """The operator Attention, and the shapes of its inputs."""
    shapes = {**{name: [1, keys, 1, 8] for name in "qkv"}, "mask": [1, 1, keys, keys]}
    operators = []
    for n, (name, shape) in enumerate(shapes.items()):
        described = {"dims": shape, "dtype": "DT_FLOAT", "dformat": "NCHW"}
        operators.append({"type": "Input", "name": name, "outputIndexes": [n], "main_type": "Input", "main": described})
    attention = {"type": "Attention", "name": "o", "inputIndexes": [0, 1, 2, 3], "outputIndexes": [4]}
    operators.append({**attention, "main_type": "AttentionParam", "main": {"kv_cache": False}})
    net = {"oplists": operators, "tensorName": [*shapes, "o"], "outputName": ["o"], "sourceType": "ONNX"}
    source, model = Path(folder) / f"{keys}.json", Path(folder) / f"{keys}.mnn"
    source.write_text(json.dumps(net))
    _tools.mnnconvert(["mnnconvert", "-f", "JSON", "--modelFile", str(source), "--MNNModel", str(model)])
    return MNN.nn.load_module_from_file(str(model), list(shapes), ["o"]), shapes


def run(module, shapes, nan_at=None, hidden=0.0):
    arrays = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    arrays["v"][:] = np.arange(1, shapes["v"][1] + 1).reshape(1, -1, 1, 1)
    arrays["mask"][:] = hidden
    if nan_at is not None:
        arrays["k"][0, nan_at] = np.nan
    given = [F.const(array, shapes[name], F.NCHW) for name, array in arrays.items()]
    return np.array(module.forward(given)[0].read()).reshape(-1)


lost, empty = {}, {}
with tempfile.TemporaryDirectory() as folder:
    for keys in (7, 12):
        module, shapes = module_of(keys, folder)
        lost[keys] = [at for at in range(keys) if not np.isnan(run(module, shapes, nan_at=at)).any()]
        empty[keys] = float(run(module, shapes, hidden=-np.inf)[0])
os.dup2(output, 1)
print(f"MNN {version('mnn')}: keys whose NaN was lost, by the number of keys: got {lost}, expected none")
print(f"a query that sees nothing, of values 1, 2, ...: got {empty}, expected one answer, as 0 or NaN")
raise SystemExit(any(lost.values()) or np.isnan(empty[7]) != np.isnan(empty[12]))
