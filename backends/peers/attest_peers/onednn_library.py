"""oneDNN's graphs through its C interface, oneapi/dnnl/dnnl_graph.h: operators on tensors of NumPy, on the processor.

The package `onednn` computes on the processor by SYCL, whose driver comes along.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_void_p
from typing import Any, Sequence

import numpy as np

LIBRARIES = os.path.join(sys.prefix, "lib")
TYPES = {"float16": 1, "bfloat16": 2, "float32": 3, "bool": 8}
#: dnnl_graph_op_kind_t, and its attributes
ADD, EXP, MATMUL, MULTIPLY, REDUCE_SUM, SOFTMAX, SUBTRACT, TYPE_CAST, SELECT = 2, 26, 39, 46, 57, 64, 74, 77, 81
AXIS, AXES, KEEP_DIMS, TRANSPOSE_A, TRANSPOSE_B, MODE = 0x30, 0x40, 0x61, 0x65, 0x66, 0x84
CPU, FUSION, STRIDED, VARIABLE, DEFAULT_FLAGS = 1, 1, 2, 1, 1


class LogicalTensor(ctypes.Structure):
    """dnnl_graph_logical_tensor_t"""

    _fields_ = [
        ("id", c_size_t), ("ndims", c_int), ("dims", c_int64 * 12), ("data_type", c_int), ("property", c_int),
        ("layout_type", c_int), ("strides", c_int64 * 12),
    ]  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.dims[: self.ndims])


def library() -> ctypes.CDLL:
    """libdnnl, with the libraries that it needs beside it."""
    for loader in ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS"):  # Khronos' loader; Debian's, which attest brings in first
        os.environ.setdefault(loader, os.path.join(LIBRARIES, "libintelocl.so"))
    os.environ.setdefault("ONEAPI_DEVICE_SELECTOR", "opencl:cpu")
    for name in ("libintlc.so.5", "libsvml.so", "libimf.so", "libtbb.so.12", "libumf.so.1", "libur_loader.so.0",
                 "libsycl.so.*[0-9]"):  # fmt: skip
        for path in sorted(glob.glob(os.path.join(LIBRARIES, name)))[:1]:
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(os.path.join(LIBRARIES, "libdnnl.so.3"))


def processor_has_bf16() -> bool:
    """Whether oneDNN's implementations of bf16 are for this processor: its instruction sets avx512_core and avx2_vnni_2."""
    with open("/proc/cpuinfo") as told:
        flags = set(next((line for line in told if line.startswith("flags")), "").split())
    return bool(flags & {"avx512bw", "avx_ne_convert"})


class Graph:
    """Operators that are compiled as one partition."""

    def __init__(self, dnnl: ctypes.CDLL, engine: c_void_p) -> None:
        self._dnnl, self._engine = dnnl, engine
        self._tensors: list[LogicalTensor] = []
        self._inputs: list[LogicalTensor] = []
        self._operators = 0
        self._graph, self._compiled = c_void_p(), c_void_p()
        self._call("dnnl_graph_graph_create", byref(self._graph), CPU)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._dnnl, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} gives dnnl_status_t {status}")

    def tensor(self, shape: Sequence[int], dtype: str) -> LogicalTensor:
        made = LogicalTensor()
        dims = (c_int64 * 12)(*shape)
        self._call(
            "dnnl_graph_logical_tensor_init_with_dims", byref(made), c_size_t(len(self._tensors)), TYPES[dtype],
            c_int32(len(shape)), dims, STRIDED, VARIABLE,
        )  # fmt: skip
        self._tensors.append(made)
        return made

    def given(self, shape: Sequence[int], dtype: str) -> LogicalTensor:
        self._inputs.append(self.tensor(shape, dtype))
        return self._inputs[-1]

    def operator(
        self, kind: int, inputs: Sequence[LogicalTensor], shape: Sequence[int], dtype: str, attributes: dict[int, Any]
    ) -> LogicalTensor:
        """Its one output."""
        return self.operator_with(kind, inputs, [(shape, dtype)], attributes)[0]

    def operator_with(
        self, kind: int, inputs: Sequence[LogicalTensor], outputs: Sequence[tuple[Sequence[int], str]],
        attributes: dict[int, Any],
    ) -> list[LogicalTensor]:  # fmt: skip
        """Its outputs, by their shapes and types. Attributes are bool, int, list of int or str."""
        made = c_void_p()
        self._operators += 1
        self._call("dnnl_graph_op_create", byref(made), c_size_t(self._operators), kind, str(kind).encode())
        for name, value in attributes.items():
            if isinstance(value, bool):
                self._call("dnnl_graph_op_set_attr_bool", made, name, byref(c_uint8(value)), c_size_t(1))
            elif isinstance(value, int):
                self._call("dnnl_graph_op_set_attr_s64", made, name, byref(c_int64(value)), c_size_t(1))
            elif isinstance(value, list):
                numbers = (c_int64 * len(value))(*value)
                self._call("dnnl_graph_op_set_attr_s64", made, name, numbers, c_size_t(len(value)))
            else:
                self._call("dnnl_graph_op_set_attr_str", made, name, c_char_p(value.encode()), c_size_t(len(value)))
        for each in inputs:
            self._call("dnnl_graph_op_add_input", made, byref(each))
        results = [self.tensor(shape, dtype) for shape, dtype in outputs]
        for each in results:
            self._call("dnnl_graph_op_add_output", made, byref(each))
        self._call("dnnl_graph_add_op", self._graph, made)
        return results

    def compile(self, outputs: Sequence[LogicalTensor]) -> None:
        self._outputs = list(outputs)
        count = c_size_t()
        self._call("dnnl_graph_graph_finalize", self._graph)
        self._call("dnnl_graph_graph_filter", self._graph, FUSION)
        self._call("dnnl_graph_graph_get_partition_num", self._graph, byref(count))
        if count.value != 1:
            raise RuntimeError(f"{count.value} partitions where one is wanted")
        partition = (c_void_p * 1)()
        self._call("dnnl_graph_graph_get_partitions", self._graph, c_size_t(1), partition)
        supported = c_uint8()
        self._call("dnnl_graph_partition_is_supported", c_void_p(partition[0]), byref(supported))
        if not supported.value:
            raise RuntimeError("dnnl_graph_partition_is_supported says no")
        self._call("dnnl_graph_compiled_partition_create", byref(self._compiled), c_void_p(partition[0]))
        inputs = (POINTER(LogicalTensor) * len(self._inputs))(*map(ctypes.pointer, self._inputs))
        results = (POINTER(LogicalTensor) * len(self._outputs))(*map(ctypes.pointer, self._outputs))
        self._call(
            "dnnl_graph_partition_compile", c_void_p(partition[0]), self._compiled, c_size_t(len(inputs)), inputs,
            c_size_t(len(results)), results, self._engine,
        )  # fmt: skip

    def run(self, stream: c_void_p, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """`arrays` are of the inputs in the order in which they were given, and contiguous, as `outputs` are."""
        tensors = []
        for logical, array in zip([*self._inputs, *self._outputs], [*arrays, *outputs], strict=True):
            tensor = c_void_p()
            pointer = c_void_p(array.ctypes.data)
            self._call("dnnl_graph_tensor_create", byref(tensor), byref(logical), self._engine, pointer)
            tensors.append(tensor)
        inputs = (c_void_p * len(self._inputs))(*tensors[: len(self._inputs)])
        results = (c_void_p * len(self._outputs))(*tensors[len(self._inputs) :])
        try:
            self._call(
                "dnnl_graph_compiled_partition_execute", self._compiled, stream, c_size_t(len(inputs)), inputs,
                c_size_t(len(results)), results,
            )  # fmt: skip
            self._call("dnnl_stream_wait", stream)
        finally:
            for tensor in tensors:
                self._dnnl.dnnl_graph_tensor_destroy(tensor)
