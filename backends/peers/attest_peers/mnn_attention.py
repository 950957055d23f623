"""MNN's operator Attention on processors: source/backend/cpu/CPUAttention.cpp.

MNN.expr has no function for it. A model of this operator alone is made from JSON, and run as a module.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional

import _tools
import MNN
import MNN.expr as F
import numpy as np

from attest_peers.peer import ADDING, HIDING, SHAPES, Peer
from attest_peers.request import Request

NAMES = ("q", "k", "v", "mask", "sinks")
ATTENTION_OPTION = 7  #: HintMode of include/MNN/Interpreter.hpp


class Backend(Peer):
    """Without a cache there are as many keys as queries. Heads are padded with zeros to one size, a scale is put into
    the query, and sequences of a batch are run one by one. No mask stands for a causal one."""

    name = "mnn"
    library = f"Attention, MNN {version('mnn')}, CPU"
    takes = (SHAPES | HIDING | ADDING | {"dtype=f32", "sinks"}) - {"a size 0", "seq=LqxLk"}
    cannot = {
        "a size 0": "a tensor without elements isn't computed",
        "seq=LqxLk": "onExecute() takes as many keys as there are queries; CPUAttention.cpp",
        "past": "the cache is that of MNN's engine of language models, which hands KVMeta over; CPUAttention.cpp",
        "softcap": "AttentionParam has none; schema/default/MNN.fbs",
        "dropout": "AttentionParam has none; schema/default/MNN.fbs",
        "out=lse": "the operator gives the output alone",
        **{f"dtype={name}": "the kernel of x86 is of float" for name in ("f64", "f16", "bf16")},
    }
    conventions = {"hidden_nan": "leaks"}  # type: ignore[assignment]
    option = 8  #: of ATTENTION_OPTION in include/MNN/Interpreter.hpp: with flash attention, the default

    def __init__(self) -> None:
        self._modules: dict[Any, Any] = {}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        width = max(q.shape[3], v.shape[3])
        factor = 1.0 if request.scale is None and width == q.shape[3] else (
            (q.shape[3] ** -0.5 if request.scale is None else request.scale) * width**0.5
        )  # fmt: skip
        wide = [np.pad(t, [(0, 0)] * 3 + [(0, width - t.shape[3])]).transpose(0, 2, 1, 3) for t in (q, k, v)]
        if factor != 1:
            wide[0] = (wide[0] * np.float32(factor)).astype(np.float32)
        mask = None if request.only_causal() and request.sinks is None else mask_of(request)
        sinks = None if request.sinks is None else np.asarray(request.sinks, np.float32)
        made = []
        for sequence in range(request.batch):
            given = [t[sequence : sequence + 1] for t in wide]
            if mask is not None:
                given.append(mask[min(sequence, len(mask) - 1)][None])
            if sinks is not None:
                given.append(sinks)
            made.append(self._run(given)[: q.shape[2] * q.shape[1] * width].reshape(*given[0].shape[1:]))
        return np.ascontiguousarray(np.stack(made).transpose(0, 2, 1, 3)[..., : v.shape[3]])

    def _run(self, given: list[np.ndarray]) -> np.ndarray:
        shapes = tuple(array.shape for array in given)
        if shapes not in self._modules:
            if len(self._modules) > 30:
                self._modules.clear()
            self._modules[shapes] = module_of(shapes, self.threads, self.option)
        held = [F.const(np.ascontiguousarray(array, np.float32), list(array.shape), F.NCHW) for array in given]
        return np.array(self._modules[shapes].forward(held)[0].read(), np.float32).reshape(-1)

    def cannot_do(self, call: Any) -> Optional[str]:
        per_head = re.search(r"mask=(bool|add):.H|blocks=", call.line) or "alibi" in call.features
        if per_head and call.query_heads > 1:
            return "a mask of each head: _maskQK() in CPUAttention.cpp has one for all"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # _AVX_MNNSoftmax(): exp() has no subnormal numbers; MNN_FLASH_ATTENTION_BLOCK_SIZE keys a step.
        return {"division": "reciprocal", "flush_to_zero": True, "key_block": 64}


class Whole(Backend):
    """With all scores of a head at once."""

    name = "mnn_whole"
    library = f"Attention, MNN {version('mnn')}, CPU, ATTENTION_OPTION 0"
    option = 0

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        return {"division": "reciprocal", "flush_to_zero": True, "normalised_before_storage": True}


def mask_of(request: Request) -> np.ndarray:
    """B or 1,1,L,S."""
    visible = request.visible()
    added = request.bias_with(visible, np.float32) if request.adds else np.zeros((1, 1, 1, 1), np.float32)
    if visible is not None and not request.adds:
        added = np.where(visible, np.float32(0), np.float32(-np.inf))
    return np.broadcast_to(added[:, :1], (added.shape[0], 1, request.queries, request.keys))


def module_of(shapes: tuple[tuple[int, ...], ...], threads: int, option: int) -> Any:
    names = list(NAMES[: len(shapes)])
    inputs = [
        {
            "type": "Input", "name": name, "outputIndexes": [n], "main_type": "Input",
            "main": {"dims": list(shape), "dtype": "DT_FLOAT", "dformat": "NCHW"},
        }
        for n, (name, shape) in enumerate(zip(names, shapes))
    ]  # fmt: skip
    attention = {
        "type": "Attention", "name": "o", "inputIndexes": list(range(len(names))), "outputIndexes": [len(names)],
        "main_type": "AttentionParam", "main": {"kv_cache": False},
    }  # fmt: skip
    net = {"oplists": [*inputs, attention], "tensorName": [*names, "o"], "outputName": ["o"], "sourceType": "ONNX"}
    with tempfile.TemporaryDirectory() as folder:
        source, model = Path(folder) / "attention.json", Path(folder) / "attention.mnn"
        source.write_text(json.dumps(net))
        with silent():
            _tools.mnnconvert(["mnnconvert", "-f", "JSON", "--modelFile", str(source), "--MNNModel", str(model)])
        runtime = MNN.nn.create_runtime_manager(({"backend": "CPU", "numThread": threads},))
        runtime.set_hint(ATTENTION_OPTION, option)
        return MNN.nn.load_module_from_file(str(model), names, ["o"], runtime_manager=runtime)


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Without what C++ writes to standard output."""
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)
