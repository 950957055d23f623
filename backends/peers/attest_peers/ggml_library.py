"""ggml's flash attention on the processor through its C interface, as llama.cpp calls it.

The package `llama-cpp-python` builds the libraries; include/ggml.h and ggml-cpu.h say what they take.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from ctypes import POINTER, c_bool, c_float, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Optional

import numpy as np

#: ggml_type of a numpy type
TYPES = {"float32": 0, "float16": 1, "bfloat16": 30}
Q4_0, Q8_0 = 2, 8
#: numbers in a block of Q4_0 or Q8_0, which has one scale of f16
BLOCK = 32


class InitParams(ctypes.Structure):
    """ggml_init_params"""

    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool)]


class Blocks:
    """Rows of blocks as ggml stores them: `bytes` has axes B, H, rows, bytes of a row."""

    def __init__(self, ggml_type: int, columns: int, stored: np.ndarray) -> None:
        self.ggml_type, self.bytes = ggml_type, np.ascontiguousarray(stored)
        self.sizes = (columns, *reversed(stored.shape[:3]))


def q8_0(codes: np.ndarray, scales: np.ndarray) -> Blocks:
    """block_q8_0 of ggml-common.h: the scale, then a byte for each number. `scales` has axes B, H, rows, blocks."""
    blocks = codes.reshape(*codes.shape[:3], -1, BLOCK)
    stored = np.empty((*blocks.shape[:4], 2 + BLOCK), np.uint8)
    _store_scales(stored, scales)
    stored[..., 2:] = blocks.view(np.uint8)
    return Blocks(Q8_0, codes.shape[3], stored.reshape(*codes.shape[:3], -1))


def q4_0(codes: np.ndarray, scales: np.ndarray) -> Blocks:
    """block_q4_0: the scale, then the code + 8 of numbers i and i + 16 in the low and high half of byte i."""
    blocks = (codes.reshape(*codes.shape[:3], -1, BLOCK) + 8).astype(np.uint8)
    stored = np.empty((*blocks.shape[:4], 2 + BLOCK // 2), np.uint8)
    _store_scales(stored, scales)
    stored[..., 2:] = blocks[..., : BLOCK // 2] | blocks[..., BLOCK // 2 :] << 4
    return Blocks(Q4_0, codes.shape[3], stored.reshape(*codes.shape[:3], -1))


def _store_scales(stored: np.ndarray, scales: np.ndarray) -> None:
    rows = np.broadcast_to(scales, stored.shape[:4]).astype(np.float16)
    stored[..., :2] = np.ascontiguousarray(rows)[..., None].view(np.uint8)


class Library:
    """libggml-base and libggml-cpu."""

    def __init__(self) -> None:
        folder = os.path.join(str(_folder()), "lib")
        self._base = ctypes.CDLL(os.path.join(folder, "libggml-base.so"), ctypes.RTLD_GLOBAL)
        self._cpu = ctypes.CDLL(os.path.join(folder, "libggml-cpu.so"), ctypes.RTLD_GLOBAL)
        tensor, context = c_void_p, c_void_p
        for name, result, *arguments in (
            ("ggml_init", context, InitParams), ("ggml_free", None, context), ("ggml_version", ctypes.c_char_p),
            ("ggml_new_tensor", tensor, context, c_int, c_int, POINTER(c_int64)), ("ggml_nbytes", c_size_t, tensor),
            ("ggml_get_data", c_void_p, tensor), ("ggml_new_graph", c_void_p, context),
            ("ggml_build_forward_expand", None, c_void_p, tensor), ("ggml_tensor_overhead", c_size_t),
            ("ggml_graph_overhead", c_size_t),
            ("ggml_flash_attn_ext", tensor, context, tensor, tensor, tensor, tensor, c_float, c_float, c_float),
            ("ggml_flash_attn_ext_add_sinks", None, tensor, tensor),
            ("ggml_flash_attn_ext_set_prec", None, tensor, c_int),
        ):  # fmt: skip
            function = getattr(self._base, name)
            function.restype, function.argtypes = result, arguments
        self._cpu.ggml_cpu_init()
        self._cpu.ggml_graph_compute_with_ctx.argtypes = [context, c_void_p, c_int]
        self._cpu.ggml_graph_compute_with_ctx.restype = c_int

    def version(self) -> str:
        return self._base.ggml_version().decode()

    def flash_attention(
        self, q: np.ndarray, k: Any, v: Any, mask: Optional[np.ndarray], sinks: Optional[np.ndarray], scale: float,
        softcap: float, threads: int,
    ) -> np.ndarray:  # fmt: skip
        """The output, B,L,H,D. k and v are arrays or Blocks, q float32 B,H,L,D, and mask float16 B,H,L,S or 1,1,L,S."""
        inputs = [given for given in (q, k, v, mask, sinks) if given is not None]
        room = sum(_stored(given).nbytes + 64 for given in inputs) + q.shape[0] * q.shape[1] * q.shape[2] * _width(v) * 4
        work = threads * (1 << 20) + 64 * _stored(q).nbytes  # the scratch of ggml_graph_plan()
        size = room + work + 16 * self._base.ggml_tensor_overhead() + self._base.ggml_graph_overhead() + 4096
        context = self._base.ggml_init(InitParams(size, None, False))
        if not context:
            raise MemoryError("ggml_init() gives no context")
        try:
            tensors = [None if each is None else self._tensor(context, each) for each in (q, k, v, mask)]
            o = self._base.ggml_flash_attn_ext(context, *tensors, scale, 0.0, softcap)
            self._base.ggml_flash_attn_ext_set_prec(o, 10)  # GGML_PREC_F32, as llama.cpp does
            if sinks is not None:
                self._base.ggml_flash_attn_ext_add_sinks(o, self._tensor(context, sinks))
            graph = self._base.ggml_new_graph(context)
            self._base.ggml_build_forward_expand(graph, o)
            status = self._cpu.ggml_graph_compute_with_ctx(context, graph, threads)
            if status:
                raise RuntimeError(f"ggml_graph_compute_with_ctx() gives ggml_status {status}")
            result = np.empty((q.shape[0], q.shape[2], q.shape[1], _width(v)), np.float32)
            ctypes.memmove(result.ctypes.data, self._base.ggml_get_data(o), result.nbytes)
            return result
        finally:
            self._base.ggml_free(context)

    def _tensor(self, context: Any, given: Any) -> Any:
        stored = _stored(given)
        if isinstance(given, Blocks):
            ggml_type, sizes = given.ggml_type, given.sizes
        else:
            ggml_type, sizes = TYPES[given.dtype.name], tuple(reversed(given.shape))
        made = self._base.ggml_new_tensor(context, ggml_type, len(sizes), (c_int64 * len(sizes))(*sizes))
        if self._base.ggml_nbytes(made) != stored.nbytes:
            raise RuntimeError(f"a tensor of ggml has {self._base.ggml_nbytes(made)} bytes, not {stored.nbytes}")
        ctypes.memmove(self._base.ggml_get_data(made), stored.ctypes.data, stored.nbytes)
        return made


def _stored(given: Any) -> np.ndarray:
    return given.bytes if isinstance(given, Blocks) else np.ascontiguousarray(given)


def _width(v: Any) -> int:
    return v.sizes[0] if isinstance(v, Blocks) else v.shape[-1]


def _folder() -> str:
    found = importlib.util.find_spec("llama_cpp")
    if found is None or found.origin is None:
        raise ImportError("the package llama-cpp-python is not installed")
    return os.path.dirname(found.origin)
