"""Storage in 8 bits: every code is the number that ml_dtypes and PyTorch read."""

import json
import struct

import numpy as np
import pytest

import attest

CODES = np.arange(256, dtype=np.uint8)
NAMES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "i8": "int8"}
IN_FILES = {"e4m3": "F8_E4M3", "e5m2": "F8_E5M2", "i8": "I8"}


def file_of_codes(path, dtype, codes):
    """One key whose value has these codes: the output is the value, whatever q and k are."""
    one = struct.pack("<f", 1)
    tensors = {"q": ("F32", [1, 1], one), "k": ("F32", [1, 1], one),
               "v": (IN_FILES[dtype], [1, len(codes)], codes.tobytes())}  # fmt: skip
    header, data = {}, b""
    for name, (kind, shape, held) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(held)]}
        data += held
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return str(path)


class Values(attest.Backend):
    """The values themselves, as float32."""

    contract = 9

    def __init__(self, to_float32, tensors="numpy"):
        self.to_float32, self.tensors = to_float32, tensors

    def function(self):
        return lambda q, k, v, output_types=None: self.to_float32(v)


@pytest.mark.parametrize("dtype", NAMES)
def test_codes_are_those_of_ml_dtypes(tmp_path, dtype):
    numbers = CODES.view(getattr(pytest.importorskip("ml_dtypes"), NAMES[dtype], np.int8)).astype(np.float32)
    finite = np.isfinite(numbers)
    seen = []

    def read(v):
        seen.append(v.astype(np.float32).ravel())
        return v.astype(np.float32)

    (found,) = attest.check(Values(read), file_of_codes(tmp_path / "codes.safetensors", dtype, CODES[finite]))
    assert found.passed, str(found)
    assert any(np.array_equal(got, numbers[finite]) for got in seen)
    # A millionth beside them is an error.
    (wrong,) = attest.check(Values(lambda v: v.astype(np.float32) * np.float32(1 + 2**-20)),
                            str(tmp_path / "codes.safetensors"), shrink=False)  # fmt: skip
    assert wrong.status == "fail"
    everything = file_of_codes(tmp_path / "all.safetensors", dtype, CODES)
    (found,) = attest.check(Values(lambda v: v.astype(np.float32)), everything)
    assert found.status != "fail", str(found)


@pytest.mark.parametrize("dtype", NAMES)
def test_codes_are_those_of_torch(tmp_path, dtype):
    torch = pytest.importorskip("torch")
    numbers = torch.from_numpy(CODES.copy()).view(getattr(torch, NAMES[dtype])).to(torch.float32)
    finite = torch.isfinite(numbers).numpy()
    name = file_of_codes(tmp_path / "codes.safetensors", dtype, CODES[finite])
    wanted = numbers[torch.from_numpy(finite)].reshape(1, 1, 1, -1)
    (found,) = attest.check(Values(lambda v: wanted.clone(), "torch"), name)
    assert found.passed, str(found)


def test_a_format_is_refused_by_what_was_written_before(tmp_path):
    (found,) = attest.check(lambda q, k, v: v, "seq=1 dim=4 v.dtype=e4m3", shrink=False)
    assert found.status == "refused" and "version 9" in found.reason, str(found)
