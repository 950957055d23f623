"""ggml on processors: `ggml_flash_attn_ext` adds up in f16 where values are in f16, although `GGML_PREC_F32` is
set."""

import ctypes
import importlib.util
import os
from ctypes import c_float, c_int, c_int64, c_size_t, c_void_p
from importlib.metadata import version

KEYS, WIDTH = 8000, 64
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
F32, F16, GGML_PREC_F32 = 0, 1, 10


def filled(ggml_type, rows, number):
    tensor = base.ggml_new_tensor_4d(context, c_int(ggml_type), *(c_int64(n) for n in (WIDTH, rows, 1, 1)))
    return c_void_p(cpu.ggml_set_f32(c_void_p(tensor), c_float(number)))


got = {}
for name, ggml_type in (("f16", F16), ("f32", F32)):
    q, k, v = filled(F32, 1, 0), filled(ggml_type, KEYS, 0), filled(ggml_type, KEYS, 1)
    o = c_void_p(base.ggml_flash_attn_ext(context, q, k, v, None, c_float(1), c_float(0), c_float(0)))
    base.ggml_flash_attn_ext_set_prec(o, GGML_PREC_F32)
    graph = c_void_p(base.ggml_new_graph(context))
    base.ggml_build_forward_expand(graph, o)
    cpu.ggml_graph_compute_with_ctx(context, graph, 1)
    got[name] = round(base.ggml_get_data_f32(o)[0], 4)
print(f"llama-cpp-python {version('llama-cpp-python')}: got {got} for the mean of {KEYS} values of 1, expected 1 for each")
raise SystemExit(got["f16"] != 1)
