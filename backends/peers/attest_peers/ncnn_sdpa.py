"""ncnn's layer SDPA on processors: src/layer/sdpa.cpp and src/layer/x86/sdpa_x86.cpp.

docs/developer-guide/operators.md says what it takes.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import ncnn
import numpy as np

from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request


class Backend(Peer):
    """A net of one layer, run for each sequence of the batch. Hidden keys are -inf in attn_mask. In bf16 by the option
    use_bf16_storage."""

    name = "ncnn"
    library = f"ncnn {ncnn.__version__}, layer SDPA, CPU"
    takes = (SHAPES | HIDING | ADDING | CACHE | {"dtype=f32", "dtype=bf16"}) - {"a size 0"}
    cannot = {
        "a size 0": "a Mat without elements is empty(), as one that isn't given; src/mat.h",
        "softcap": "the layer has no parameter for it; docs/developer-guide/operators.md",
        "sinks": "the layer has no input for it; docs/developer-guide/operators.md",
        "dropout": "the layer has no input for it; docs/developer-guide/operators.md",
        "out=lse": "the layer gives the output and the cache alone",
        "out=present": "the layout of a cache is each processor's own, says Tencent/ncnn#6987",
        "mixed types": "an option of the net sets the type of all that is stored",
        "dtype=f64": "a Mat of float has 32 bits",
        "dtype=f16": "the layer has no storage of f16 on x86: support_fp16_storage of it is false",
    }
    conventions = {"hidden_nan": "leaks"}  # type: ignore[assignment]

    def __init__(self) -> None:
        self._nets: dict[Any, Any] = {}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        cached = 0 < request.past < request.keys
        if not cached:
            k, v = request.with_cached(k, v)
        mask = mask_of(request)
        scale = 0.0 if request.scale is None else float(request.scale)
        net = self._net(mask is not None, cached, scale, q.dtype.name == "bfloat16")
        made: list[np.ndarray] = []
        for sequence in range(request.batch):
            given = {name: t[sequence].astype(np.float32) for name, t in (("q", q), ("k", k), ("v", v))}
            if mask is not None:
                given["mask"] = mask[min(sequence, mask.shape[0] - 1)]
            cache = {}
            if cached:  # which the layer makes, as it has a layout of its own
                first = {"q": given["q"][:, :1], "k": request.past_k[sequence], "v": request.past_v[sequence]}
                empty = {"past_k": ncnn.Mat(), "past_v": ncnn.Mat()}
                past = self._net(False, True, scale, q.dtype.name == "bfloat16")
                cache = dict(zip(empty, run(past, first, empty, ["present_k", "present_v"])))
            made.append(np.array(run(net, given, cache, ["o"])[0]))
        return np.stack(made).astype(q.dtype)

    def _net(self, masked: bool, cached: bool, scale: float, bf16: bool) -> Any:
        key = (masked, cached, scale, bf16, self.threads)
        if key not in self._nets:
            if len(self._nets) > 30:
                self._nets.clear()
            inputs = ["q", "k", "v"] + ["mask"] * masked + ["past_k", "past_v"] * cached
            outputs = ["o"] + ["present_k", "present_v"] * cached
            lines = ["7767517", f"{len(inputs) + 1} {len(inputs) + len(outputs)}"]
            lines += [f"Input {name} 0 1 {name}" for name in inputs]
            tensors = " ".join(inputs + outputs)
            lines.append(
                f"SDPA sdpa {len(inputs)} {len(outputs)} {tensors} 5={int(masked)} 6={scale:.9e} 7={int(cached)}"
            )
            net = ncnn.Net()
            net.opt.num_threads = self.threads
            net.opt.use_bf16_storage = bf16
            if net.load_param_mem("\n".join(lines) + "\n"):
                raise RuntimeError("ncnn::Net::load_param_mem() fails")
            net.load_model(ncnn.DataReaderFromEmpty())
            self._nets[key] = net
        return self._nets[key]

    def cannot_do(self, call: Any) -> Optional[str]:
        if call.scale == 0:
            return "scale: 0 stands for 1/sqrt(embed_dim); docs/developer-guide/operators.md"
        if call.dtype == "bf16" and {"mask.dtype", "alibi"} & set(call.features):
            return "mask.dtype and alibi: with use_bf16_storage attn_mask is of bf16, too; src/net.cpp"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # softmax_x86.cpp divides by the reciprocal of the sum; exp_ps() has no subnormal numbers.
        return {"division": "reciprocal", "flush_to_zero": True}


def mask_of(request: Request) -> Optional[np.ndarray]:
    """attn_mask of B or 1,H or 1,L,S: "attn_mask_blob.c > 1" tells a mask of each head."""
    visible = request.visible()
    if request.adds:
        added = request.bias_with(visible, np.float32)
    elif visible is None:
        return None
    else:
        added = np.where(visible, np.float32(0), np.float32(-np.inf))
    return np.broadcast_to(added, (*added.shape[:2], request.queries, request.keys))


def run(net: Any, given: Mapping[str, np.ndarray], cache: Mapping[str, Any], wanted: list[str]) -> list[Any]:
    """Mats that were extracted: those of a cache as they are."""
    held = {name: np.ascontiguousarray(array, np.float32) for name, array in given.items()}  # a Mat doesn't keep them
    mats = {name: ncnn.Mat(array) for name, array in held.items()}
    made = []
    with net.create_extractor() as extractor:
        for name, mat in {**mats, **cache}.items():
            extractor.input(name, mat)
        for name in wanted:
            status, mat = extractor.extract(name, int(name != "o"))
            if status:
                raise RuntimeError(f"ncnn::Extractor::extract() gives {status} for {name}")
            made.append(mat)
        return [mat.clone() if name == "o" else mat for name, mat in zip(wanted, made)]
