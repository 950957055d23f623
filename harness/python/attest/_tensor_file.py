"""Files of tensors in the format safetensors."""

from __future__ import annotations

import json
import math
import os
import struct
from dataclasses import dataclass
from typing import Any, Mapping

import numpy as np

from attest import _attest

_TYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BOOL": "bool", "I64": "int64", "I32": "int32",
}  # fmt: skip
_WIDTHS = {"BF16": 2, **{name: np.dtype(kind).itemsize for name, kind in _TYPES.items()}}


@dataclass(frozen=True)
class Tensor:
    """A tensor as a file holds it: its bytes are dense, in the order of its axes."""

    kind: str  #: F64, F32, F16, BF16, BOOL, ...
    shape: tuple[int, ...]
    data: bytes

    def array(self) -> Any:
        """As an array; BF16 needs ml_dtypes."""
        if self.kind == "BF16":
            import ml_dtypes

            return np.frombuffer(self.data, ml_dtypes.bfloat16).reshape(self.shape)
        return np.frombuffer(self.data, _TYPES[self.kind]).reshape(self.shape)


def tensor_of(array: Any) -> Tensor:
    """An array of one of these types. Raises KeyError for others."""
    kinds = {"bfloat16": "BF16", **{kind: name for name, kind in _TYPES.items()}}
    return Tensor(kinds[array.dtype.name], tuple(array.shape), np.ascontiguousarray(array).tobytes())


def read_tensors(path: str) -> dict[str, Tensor]:
    """The tensors of a file whose types have whole bytes, by name. Raises UserError for no such file."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise _attest.UserError(f"{path}: {error.strerror}") from None
    try:
        (length,) = struct.unpack_from("<Q", content)
        header = json.loads(content[8 : 8 + length])
        header.pop("__metadata__", None)
        return {name: _tensor(one, content, 8 + length) for name, one in header.items() if one["dtype"] in _WIDTHS}
    except (ValueError, KeyError, TypeError, AttributeError, struct.error):
        raise _attest.UserError(f"{path}: is no whole file of tensors") from None


def _tensor(told: Mapping[str, Any], content: bytes, start: int) -> Tensor:
    begin, end = told["data_offsets"]
    shape = tuple(int(size) for size in told["shape"])
    if min(shape, default=1) < 0 or math.prod(shape) * _WIDTHS[told["dtype"]] != end - begin or begin < 0:
        raise ValueError
    if start + end > len(content):
        raise ValueError
    return Tensor(told["dtype"], shape, content[start + begin : start + end])


def write_tensors(path: str, metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> None:
    """Writes the file complete or not at all."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name, one in tensors.items():
        header[name] = {"dtype": one.kind, "shape": list(one.shape), "data_offsets": [end, end + len(one.data)]}
        end += len(one.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = f"{path}.part{os.getpid()}"
    with open(part, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for one in tensors.values():
            file.write(one.data)
    os.replace(part, path)
