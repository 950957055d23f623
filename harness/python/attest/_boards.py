"""Submissions as boards want them, called as the boards call them: what a task's line `call` says, as a Backend.

KernelBench's ModelNew()(Q, K, V), GPU MODE's custom_kernel(data), and the run(...) of FlashInfer-Bench's solutions.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
import types
import typing
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

import numpy as np

from attest._attest import Call, UserError
from attest._backend import Backend

#: What a tensor of attest is called by; the others carry what a call says of pages and lengths.
_TENSORS = ("q", "k", "v", "k_cache", "v_cache", "q_nope", "q_pe", "ckv_cache", "kpe_cache")
_KNOWN = {*_TENSORS, "kv_indptr", "kv_indices", "kv_last_page_len", "qo_indptr", "sm_scale"}


@dataclass(frozen=True)
class BoardCall:
    """`NAME [init=JSON] [tuple] [into] ARGUMENT... [-> OUTPUT...]`. An argument may say how its axes lie: q:blhd."""

    name: str  # of the function, or of the class that is made with `init` first
    init: tuple[Any, ...]
    as_tuple: bool  # the arguments are one
    into: bool  # arrays for the outputs come behind the arguments
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]


def board_call(text: str) -> BoardCall:
    """The call that a text says. Raises UserError where it says none."""
    before, _, behind = text.partition("->")
    words = before.split()
    if not words or not words[0].isidentifier():
        raise UserError(f"call {text}: the name of a function or a class is wanted")
    arguments = [word for word in words[1:] if word not in ("tuple", "into") and not word.startswith("init=")]
    for word in arguments:
        name, colon, layout = word.partition(":")
        if name not in _KNOWN or (colon and (name not in ("q", "k", "v") or sorted(layout) != sorted("bhld"))):
            raise UserError(f"call {text}: there is no argument {word}")
    init = next((word[len("init=") :] for word in words[1:] if word.startswith("init=")), "[]")
    try:
        values = json.loads(init)
    except ValueError:
        values = None
    if not isinstance(values, list):
        raise UserError(f"call {text}: init={init} is no list in JSON")
    return BoardCall(words[0], tuple(values), "tuple" in words, "into" in words, tuple(arguments), tuple(behind.split()))


def prepared_import(folder: str, call: BoardCall) -> None:
    """What files of a board import besides their own: GPU MODE's have its module `task` at hand."""
    if call.as_tuple and not os.path.exists(os.path.join(folder, "task.py")):
        stub: Any = types.ModuleType("task")
        stub.input_t = stub.output_t = typing.Any
        sys.modules.setdefault("task", stub)


def module_in_package(path: str) -> Any:
    """The module of a file, in a package that has the files beside it: they may import each other in either way."""
    folder, package = os.path.dirname(path), "submitted"
    name = f"{package}.{os.path.splitext(os.path.basename(path))[0]}"
    if name in sys.modules:
        return sys.modules[name]
    whole = types.ModuleType(package)
    whole.__path__ = [folder]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is no source of Python")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    sys.modules[package] = whole
    sys.modules[name] = sys.modules[os.path.splitext(os.path.basename(path))[0]] = module
    spec.loader.exec_module(module)
    return module


def board_backend(found: Any, call: BoardCall) -> Backend:
    """`found` is what the module calls by the name that `call` says."""
    function = found(*call.init) if isinstance(found, type) else found
    if not callable(function):
        raise UserError(f"{call.name} is not callable")
    return _BoardBackend(function, call)


class _BoardBackend(Backend):
    def __init__(self, function: Callable[..., Any], call: BoardCall):
        self.name = call.name.lower().strip("_")
        self.tensors = "torch" if "torch" in sys.modules else "numpy"
        self._function, self._call = function, call

    def attention(
        self, q: Any, k: Any, v: Any, *, scale: Optional[float] = None, causal: bool = False, align: str = "top-left",
        key_lengths: Any = None, query_lengths: Any = None, page_table: Any = None, page_size: int = 0,
        query_starts: Any = None, key_starts: Any = None, latent: bool = False, q_rope: Any = None, k_rope: Any = None,
        outputs: Sequence[str] = ("o",),
    ) -> Any:  # fmt: skip
        width = q.shape[-1] + (0 if q_rope is None else q_rope.shape[-1])
        tensors = {
            "q": q, "k": k, "v": v, "k_cache": k, "v_cache": v, "q_nope": q, "ckv_cache": k, "q_pe": q_rope, "kpe_cache": k_rope,
        }  # fmt: skip
        as_given = _numpy_given if self.tensors == "numpy" else _torch_given
        packed = query_starts is not None
        said: dict[str, Any] = {"sm_scale": width**-0.5 if scale is None else scale}
        if page_table is not None:
            said.update(_of_pages(np.asarray(page_table), np.asarray(key_lengths), page_size))
        elif key_starts is not None:
            said["kv_indptr"] = np.asarray(key_starts)
        if packed:
            said["qo_indptr"] = np.asarray(query_starts)
        arguments = []
        for word in self._call.arguments:
            name, _, layout = word.partition(":")
            if name in tensors:
                arguments.append(as_given(_laid_out(name, tensors[name], layout, packed, page_table is not None)))
            elif name == "sm_scale":
                arguments.append(said[name])
            else:
                arguments.append(as_given(said[name].astype(np.int32)))
        if self._call.as_tuple:
            arguments = [tuple(arguments)]
        result = self._answer(arguments, q, v, packed)
        layout = next((word.partition(":")[2] for word in self._call.arguments if word.startswith("q:")), "")
        if not self._call.outputs:
            return as_given(_from_layout(result, layout))
        by_name = {"output": "o", "lse": "lse"}
        found = dict(zip((by_name.get(one, one) for one in self._call.outputs), result))
        return {name: as_given(_from_rows(name, found[name], packed)) for name in outputs}

    def _answer(self, arguments: list[Any], q: Any, v: Any, packed: bool) -> Any:
        """Of the function: a tensor, or a sequence of those that the call names."""
        if not self._call.into:
            result = self._function(*arguments)
            if not self._call.outputs:
                return result
            if isinstance(result, Mapping):
                return [result[name] for name in self._call.outputs]
            return result if isinstance(result, (tuple, list)) else [result]
        heads = (q.shape[2], q.shape[1]) if packed else tuple(q.shape[:2])
        empty = np.empty if self.tensors == "numpy" else sys.modules["torch"].empty
        single = np.float32 if self.tensors == "numpy" else sys.modules["torch"].float32
        made = [
            empty(heads, dtype=single) if name == "lse" else empty((*heads, v.shape[-1]), dtype=q.dtype)
            for name in self._call.outputs
        ]
        self._function(*arguments, *made)
        return made

    def refuse(self, call: Call) -> Optional[str]:
        names = {word.partition(":")[0] for word in self._call.arguments}
        paged, packed = call.page_size is not None, "layout=thd" in call.features
        apart = "latent.parts=apart" in call.features
        lengths = call.key_lengths is not None or call.query_lengths is not None
        for feature, asked, given in (
            ("paged", paged, "kv_indices" in names),
            ("layout=thd", packed, "qo_indptr" in names),
            ("latent.parts=apart", apart, "q_pe" in names),
            ("lengths", lengths, "kv_indptr" in names),
        ):
            if asked and not given:
                return f"{feature}: {self._call.name} takes nothing of it"
            if given and not asked and feature != "lengths":
                return f"{feature}: {self._call.name} takes nothing else"
        if call.page_size not in (None, 1) and "kv_last_page_len" not in names:
            return f"paged: {self._call.name} isn't told how long the last page is"
        return None

    def arithmetic(self, call: Call) -> Mapping[str, Any]:
        """Nobody can state it in a board's format: weights may be stored as the tensors are."""
        return {"stored_weights": call.dtype} if call.dtype in ("f16", "bf16") else {}


def _of_pages(table: Any, lengths: Any, size: int) -> Iterator[tuple[str, Any]]:
    pages = -(-lengths // size)
    yield "kv_indptr", np.concatenate([[0], np.cumsum(pages)])
    yield "kv_indices", np.concatenate([table[b, :n] for b, n in enumerate(pages)] or [np.zeros(0)])
    yield "kv_last_page_len", np.where(lengths > 0, lengths - (pages - 1) * size, 0)


def _laid_out(name: str, tensor: Any, layout: str, packed: bool, paged: bool) -> Any:
    """From B,H,L,D, or pages,H,rows,D."""
    if layout:
        return tensor.transpose(*_order("bhld", layout)) if isinstance(tensor, np.ndarray) else tensor.permute(*_order("bhld", layout))
    if name in ("q", "q_nope", "q_pe", "k", "v") and packed:
        return tensor[0].swapaxes(0, 1)  # all rows, heads
    if name in ("ckv_cache", "kpe_cache"):
        return tensor[:, 0]
    if name.endswith("_cache") and paged:
        return tensor.swapaxes(1, 2)
    return tensor[:, :, 0] if name in ("q", "q_nope", "q_pe") and paged else tensor


def _order(have: str, want: str) -> list[int]:
    return [have.index(axis) for axis in want]


def _from_layout(result: Any, layout: str) -> Any:
    if not layout:
        return result
    order = _order(layout, "bhld")
    return result.transpose(*order) if isinstance(result, np.ndarray) else result.permute(*order)


def _from_rows(name: str, found: Any, packed: bool) -> Any:
    """To B,H,L,D or B,H,L. The board's logsumexps have base 2."""
    if name == "lse" and isinstance(found, np.ndarray):
        found = (found.astype(np.float64) * math.log(2)).astype(found.dtype)
    elif name == "lse":
        found = (found.double() * math.log(2)).to(found.dtype)
    if packed:
        return found.swapaxes(0, 1)[None]
    return found[:, :, None]


def _numpy_given(array: Any) -> Any:
    return np.ascontiguousarray(array)


def _torch_given(tensor: Any) -> Any:
    torch = sys.modules["torch"]
    return (torch.from_numpy(tensor) if isinstance(tensor, np.ndarray) else tensor).contiguous()
