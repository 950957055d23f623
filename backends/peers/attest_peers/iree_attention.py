"""IREE's operator iree_linalg_ext.attention, compiled for processors.

compiler/src/iree/compiler/Dialect/LinalgExt/: IR/LinalgExtOps.td, Transforms/ConvertAttentionToOnlineAttention.cpp and
IR/AggregatedOpInterfaceImpl.cpp, which writes it as exp2 of scores in units of log 2.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Mapping, Optional

import numpy as np

from attest_peers.peer import ADDING, CACHE, HIDING, SHAPES, Peer
from attest_peers.request import Request

#: Letters of the operator's axes: batch, group of heads, head in it, query, value feature, feature, key.
AXES = "bgrmnds"
TYPES = {"float32": "f32", "float16": "f16", "bool": "i1"}


class Backend(Peer):
    """A module for each set of sizes. The mask is a boolean one, or a sum with -inf where keys are hidden."""

    name = "iree"
    library = f"IREE {version('iree-base-compiler')}, iree_linalg_ext.attention, llvm-cpu"
    takes = (SHAPES | HIDING | ADDING | CACHE | {"dtype=f32", "dtype=f16"}) - {"a size 0"}
    cannot = {
        "a size 0": "the operator's loops are compiled for one or more",
        "softcap": "a cap in the operator's region would come after the mask",
        "sinks": "the operator has no input for it",
        "dropout": "the operator has no input for it",
        "out=lse": "the operator has one result",
        "dtype=f64": "its scores are of f32",
        "dtype=bf16": "iree/runtime/array_interop.py maps no element type of NumPy to it",
    }
    conventions = {"hidden_nan": "leaks", "empty_row": "nan"}

    def __init__(self) -> None:
        self._modules: dict[Any, Any] = {}

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        k, v = request.with_cached(k, v)
        batch, heads, queries, dim = q.shape
        groups = k.shape[1]
        mask = request.one_mask(request.visible(), q.dtype)
        tensors = {"q": np.ascontiguousarray(q).reshape(batch, groups, heads // groups, queries, dim), "k": k, "v": v}
        axes = {"q": "bgrmd", "k": "bgsd", "v": "bgsn"}
        if mask is not None:  # axes that repeat are left out
            whole = mask.reshape(mask.shape[0], *((groups, -1) if mask.shape[1] == heads else (1, 1)), *mask.shape[2:])
            kept = [(axis, size) for axis, size in zip("bgrms", whole.shape) if size > 1 or axis in "ms"]
            axes["mask"] = "".join(axis for axis, _ in kept)
            tensors["mask"] = np.broadcast_to(whole, (*whole.shape[:3], queries, k.shape[2])).reshape(
                [{"m": queries, "s": k.shape[2]}.get(axis, size) for axis, size in kept]
            )
        sizes = dict(zip(AXES, (batch, groups, heads // groups, queries, v.shape[3], dim, k.shape[2])))
        scale = float(np.float32(dim**-0.5 if request.scale is None else request.scale))
        given = [np.ascontiguousarray(tensor) for tensor in tensors.values()]
        types = {name: TYPES[tensor.dtype.name] for name, tensor in tensors.items()}
        made = self._module(sizes, axes, types)(*given, scale)
        return np.array(made.to_host()).reshape(batch, heads, queries, -1)  # a copy: what it maps goes with `made`

    def _module(self, sizes: Mapping[str, int], axes: Mapping[str, str], types: Mapping[str, str]) -> Any:
        key = tuple(sizes.values()), tuple(axes.items()), tuple(types.items())
        if key not in self._modules:
            import iree.compiler
            import iree.runtime

            binary = iree.compiler.compile_str(
                text_of(sizes, axes, types), target_backends=["llvm-cpu"],
                extra_args=["--iree-llvmcpu-target-cpu=host"],
            )  # fmt: skip
            context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
            context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, binary))
            if len(self._modules) > 30:
                self._modules.clear()
            self._modules[key] = context.modules.module.attention
        return self._modules[key]

    def cannot_do(self, call: Any) -> Optional[str]:
        if "mask.dtype" in call.features:
            return "mask.dtype: the adapter adds masks of the query's type"
        return None

    def arithmetic(self, call: Any) -> Mapping[str, Any]:
        # The scale times log2(e) is one factor, of the query, which stays in its type; tiles of keys go by the
        # processor's vectors; the sum divides last.
        stated = {
            "base2": True, "scale": "folded_log2e", "division": "reciprocal", "key_block": 8, "flush_to_zero": True,
        }  # fmt: skip
        if call.dtype == "f16":
            stated["query_operand"] = "f16"
        return stated


def text_of(sizes: Mapping[str, int], axes: Mapping[str, str], types: Mapping[str, str]) -> str:
    """The module: one function of q, k, v, a mask if there is one, and the scale in float32."""
    storage = types["q"]

    def tensor(name: str) -> str:
        shape = "x".join(str(sizes[axis]) for axis in axes.get(name, "bgrmn"))
        return f"tensor<{shape}x{types.get(name, storage)}>"

    def over(of: str) -> str:
        return f"affine_map<({', '.join(AXES)}) -> ({', '.join(of)})>"

    inputs = ["q", "k", "v", "scale"] + ["mask"] * ("mask" in axes)
    maps = [over(axes.get(name, "")) for name in inputs] + [over("bgrmn")]
    kinds = ["f32" if name == "scale" else tensor(name) for name in inputs]
    parameters = ", ".join(f"%{name}: {tensor(name)}" for name in axes)
    result = tensor("o")
    return f"""
func.func @attention({parameters}, %scale: f32) -> {result} {{
  %empty = tensor.empty() : {result}
  %o = iree_linalg_ext.attention <{{indexing_maps = [{", ".join(maps)}]}}>
      ins({", ".join("%" + name for name in inputs)} : {", ".join(kinds)}) outs(%empty : {result}) {{
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  }} -> {result}
  return %o : {result}
}}
"""
