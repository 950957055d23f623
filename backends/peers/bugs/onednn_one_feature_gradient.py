"""oneDNN's graph API: `dnnl_graph_partition_compile` of `ReduceSum` over an axis of length 1 ends the process."""

import ctypes
import glob
import os
import signal
import subprocess
import sys
from ctypes import byref, c_int64, c_size_t, c_uint8, c_void_p
from importlib.metadata import version

REDUCE_SUM, AXES, KEEP_DIMS, FLOAT, STRIDED, VARIABLE, CPU, FUSION = 57, 0x40, 0x61, 3, 2, 1, 1, 1


def compiled(length):
    """The status of dnnl_graph_partition_compile() for sums along the second axis of a tensor of 2 rows."""
    libraries = os.path.join(sys.prefix, "lib")
    os.environ.update(OCL_ICD_FILENAMES=f"{libraries}/libintelocl.so", ONEAPI_DEVICE_SELECTOR="opencl:cpu")
    for name in ("libintlc.so.5", "libsvml.so", "libimf.so", "libtbb.so.12", "libumf.so.1", "libur_loader.so.0",
                 "libsycl.so.*[0-9]"):  # fmt: skip
        ctypes.CDLL(sorted(glob.glob(os.path.join(libraries, name)))[0], ctypes.RTLD_GLOBAL)
    dnnl = ctypes.CDLL(os.path.join(libraries, "libdnnl.so.3"))
    engine, graph, operator, partition, result = (c_void_p() for _ in range(5))
    dnnl.dnnl_engine_create(byref(engine), CPU, c_size_t(0))
    dnnl.dnnl_graph_graph_create(byref(graph), CPU)
    tensors = [ctypes.create_string_buffer(256) for _ in range(2)]  # dnnl_graph_logical_tensor_t has 224 bytes
    for place, (tensor, columns) in enumerate(zip(tensors, (length, 1))):
        dnnl.dnnl_graph_logical_tensor_init_with_dims(
            tensor, c_size_t(place), FLOAT, 2, (c_int64 * 12)(2, columns), STRIDED, VARIABLE
        )
    dnnl.dnnl_graph_op_create(byref(operator), c_size_t(0), REDUCE_SUM, b"sum")
    dnnl.dnnl_graph_op_set_attr_s64(operator, AXES, byref(c_int64(1)), c_size_t(1))
    dnnl.dnnl_graph_op_set_attr_bool(operator, KEEP_DIMS, byref(c_uint8(1)), c_size_t(1))
    dnnl.dnnl_graph_op_add_input(operator, tensors[0])
    dnnl.dnnl_graph_op_add_output(operator, tensors[1])
    dnnl.dnnl_graph_add_op(graph, operator)
    dnnl.dnnl_graph_graph_finalize(graph)
    dnnl.dnnl_graph_graph_filter(graph, FUSION)
    dnnl.dnnl_graph_graph_get_partitions(graph, c_size_t(1), byref(partition))
    dnnl.dnnl_graph_compiled_partition_create(byref(result), partition)
    pointers = [(c_void_p * 1)(ctypes.addressof(tensor)) for tensor in tensors]
    return dnnl.dnnl_graph_partition_compile(
        partition, result, c_size_t(1), pointers[0], c_size_t(1), pointers[1], engine
    )  # fmt: skip


def outcome(length):
    code = subprocess.run([sys.executable, __file__, str(length)], check=False, stderr=subprocess.DEVNULL).returncode
    return signal.Signals(-code).name if code < 0 else f"status {code}"


if len(sys.argv) > 1:
    sys.exit(compiled(int(sys.argv[1])))
got = {length: outcome(length) for length in (2, 1)}
print(f"oneDNN {version('onednn')}: got {got} by the axis' length, expected status 0, or another one, for each")
raise SystemExit(any(text.startswith("SIG") for text in got.values()))
