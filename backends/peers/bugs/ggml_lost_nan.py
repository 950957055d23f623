"""ggml on processors: `ggml_flash_attn_ext` gives 0 to 64 or more queries where the last key is NaN, and NaN to
fewer."""

import ctypes
import importlib.util
import os
from ctypes import c_float, c_int, c_int64, c_size_t, c_void_p
from importlib.metadata import version

KEYS, WIDTH = 4, 8
folder = os.path.join(os.path.dirname(importlib.util.find_spec("llama_cpp").origin), "lib")
base, cpu = (ctypes.CDLL(os.path.join(folder, f"libggml-{name}.so"), ctypes.RTLD_GLOBAL) for name in ("base", "cpu"))


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", ctypes.c_bool)]


for name in ("ggml_init", "ggml_new_tensor_4d", "ggml_flash_attn_ext", "ggml_new_graph"):
    getattr(base, name).restype = c_void_p
cpu.ggml_set_f32.restype = c_void_p
base.ggml_get_data_f32.restype = ctypes.POINTER(c_float)
cpu.ggml_cpu_init()
context = c_void_p(base.ggml_init(InitParams(1 << 24, None, False)))
F32 = 0


def filled(rows, number):
    tensor = base.ggml_new_tensor_4d(context, c_int(F32), *(c_int64(n) for n in (WIDTH, rows, 1, 1)))
    return c_void_p(cpu.ggml_set_f32(c_void_p(tensor), c_float(number)))


got = {}
for queries in (63, 64):
    q, k, v = filled(queries, 1), filled(KEYS, 1), filled(KEYS, 1)
    base.ggml_get_data_f32(k)[(KEYS - 1) * WIDTH] = float("nan")
    o = c_void_p(base.ggml_flash_attn_ext(context, q, k, v, None, c_float(1), c_float(0), c_float(0)))
    graph = c_void_p(base.ggml_new_graph(context))
    base.ggml_build_forward_expand(graph, o)
    cpu.ggml_graph_compute_with_ctx(context, graph, 1)
    got[f"{queries} queries"] = base.ggml_get_data_f32(o)[0]
print(f"llama-cpp-python {version('llama-cpp-python')}: got {got} where the last of {KEYS} keys is NaN, expected nan")
raise SystemExit(got["64 queries"] == got["64 queries"])
