"""Storage in 8 and 4 bits: every code is the number that ml_dtypes and PyTorch read."""

import json
import pathlib
import struct

import numpy as np
import pytest

import attest

CODES = np.arange(256, dtype=np.uint8)
NAMES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "i8": "int8"}
PAIRS = {"e2m1": "float4_e2m1fn", "i4": "int4"}  # two to a byte, which NumPy gets in a byte each
IN_FILES = {"e4m3": "F8_E4M3", "e5m2": "F8_E5M2", "i8": "I8", "e2m1": "F4", "i4": "U8"}


def file_of_codes(path, dtype, codes):
    """One key whose value has these codes: the output is the value, whatever q and k are."""
    one, width = struct.pack("<f", 1), len(codes)
    if dtype in PAIRS:
        codes = codes[0::2] | codes[1::2] << 4
    tensors = {"q": ("F32", [1, 1], one), "k": ("F32", [1, 1], one),
               "v": (IN_FILES[dtype], [1, len(codes) if dtype == "i4" else width], codes.tobytes())}  # fmt: skip
    header, data = {"__metadata__": {"int4": "v"}} if dtype == "i4" else {}, b""
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


@pytest.mark.parametrize("dtype", [*NAMES, *PAIRS])
def test_codes_are_those_of_ml_dtypes(tmp_path, dtype):
    name = {**NAMES, **PAIRS}[dtype]
    codes = CODES[:16] if dtype in PAIRS else CODES
    numbers = codes.view(getattr(pytest.importorskip("ml_dtypes"), name, np.int8)).astype(np.float32)
    finite = np.isfinite(numbers)
    seen = []

    def read(v):
        assert v.dtype == name
        seen.append(v.astype(np.float32).ravel())
        return v.astype(np.float32)

    (found,) = attest.check(Values(read), file_of_codes(tmp_path / "codes.safetensors", dtype, codes[finite]))
    assert found.passed, str(found)
    assert any(np.array_equal(got, numbers[finite]) for got in seen)
    # A millionth beside them is an error.
    (wrong,) = attest.check(Values(lambda v: v.astype(np.float32) * np.float32(1 + 2**-20)),
                            str(tmp_path / "codes.safetensors"), shrink=False)  # fmt: skip
    assert wrong.status == "fail"
    everything = file_of_codes(tmp_path / "all.safetensors", dtype, codes)
    (found,) = attest.check(Values(lambda v: v.astype(np.float32)), everything)
    assert found.status != "fail", str(found)


@pytest.mark.parametrize("tensors", ["numpy", "torch"])
def test_pairs_are_bytes_elsewhere_and_scales_are_powers(tensors):
    """A tensor of values in i4 with scales in e8m0, multiplied by a callable."""
    pytest.importorskip("torch" if tensors == "torch" else "ml_dtypes")

    def values(q, k, v, v_scale=None, v_scales=None, output_types=None):
        if tensors == "torch":
            import torch

            assert v.dtype == torch.uint8 and v.shape[-1] == 4
            halves = torch.stack([v & 15, v >> 4], -1).reshape(1, 1, 1, 8).to(torch.int32)
            return torch.where(halves > 7, halves - 16, halves) * v_scales.to(torch.float32)
        return v.astype(np.float32) * v_scales.astype(np.float32)

    class Scaled(attest.Backend):
        contract = 9

        def function(self):
            return values

    Scaled.tensors = tensors
    (found,) = attest.check(Scaled(), "seq=1 dim=1/8 v.dtype=i4 v.scale=token v_scales.dtype=e8m0", shrink=False)
    assert found.passed, str(found)


@pytest.mark.parametrize("dtype", NAMES)
def test_codes_are_those_of_torch(tmp_path, dtype):
    torch = pytest.importorskip("torch")
    numbers = torch.from_numpy(CODES.copy()).view(getattr(torch, NAMES[dtype])).to(torch.float32)
    finite = torch.isfinite(numbers).numpy()
    name = file_of_codes(tmp_path / "codes.safetensors", dtype, CODES[finite])
    wanted = numbers[torch.from_numpy(finite)].reshape(1, 1, 1, -1)
    (found,) = attest.check(Values(lambda v: wanted.clone(), "torch"), name)
    assert found.passed, str(found)


def golden_codes(dtype):
    """Numbers and codes that the tests in C++ hold the program's own conversion against."""
    held = (pathlib.Path(attest.__file__).parent / "data" / "golden" / "codes" / f"{dtype}.safetensors").read_bytes()
    size = struct.unpack("<Q", held[:8])[0]
    header, data = json.loads(held[8 : 8 + size]), held[8 + size :]

    def tensor(name, kind):
        first, last = header[name]["data_offsets"]
        return np.frombuffer(data[first:last], kind)

    return tensor("numbers", np.float32), tensor("codes", np.uint8)


def is_nan(dtype, codes):
    return {"e4m3": (codes & 0x7F) == 0x7F, "e5m2": (codes & 0x7F) > 0x7C, "i8": codes != codes}[dtype]


def expect_codes(dtype, got):
    numbers, codes = golden_codes(dtype)
    assert len(numbers) > 3 * 240
    wrong = np.where(is_nan(dtype, codes), ~is_nan(dtype, got), got != codes)
    assert not wrong.any(), list(zip(numbers[wrong], codes[wrong], got[wrong]))[:10]


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
def test_numbers_get_the_codes_of_ml_dtypes(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with np.errstate(all="ignore"):
        expect_codes(dtype, golden_codes(dtype)[0].astype(getattr(ml_dtypes, NAMES[dtype])).view(np.uint8))


@pytest.mark.parametrize("dtype", NAMES)
def test_numbers_get_the_codes_of_torch(dtype):
    torch = pytest.importorskip("torch")
    numbers = torch.from_numpy(golden_codes(dtype)[0].copy())
    if dtype == "i8":  # a cast truncates and wraps around; its quantiser does what is meant
        finite = torch.nan_to_num(numbers, nan=0, posinf=1000, neginf=-1000).clamp(-1000, 1000)
        codes = torch.quantize_per_tensor(finite, 1.0, 0, torch.qint8).int_repr()
    else:
        codes = numbers.to(getattr(torch, NAMES[dtype]))
    expect_codes(dtype, codes.view(torch.uint8).numpy())


@pytest.mark.parametrize("dtype", NAMES)
def test_numbers_get_the_codes_of_onnx(dtype):
    """QuantizeLinear without saturation; integers saturate always."""
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    numbers = golden_codes(dtype)[0]
    if dtype == "i8":  # the evaluator goes through integers of 32 bits
        numbers = np.clip(np.nan_to_num(numbers, nan=0), -(2.0**30), 2.0**30).astype(np.float32)
    kind = {"e4m3": onnx.TensorProto.FLOAT8E4M3FN, "e5m2": onnx.TensorProto.FLOAT8E5M2, "i8": onnx.TensorProto.INT8}
    zero = onnx.helper.make_tensor("zero", kind[dtype], [], [0])
    attributes = {} if dtype == "i8" else {"saturate": 0}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"], **attributes)], "codes",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, numbers.shape)],
        [onnx.helper.make_tensor_value_info("y", kind[dtype], numbers.shape)],
        [onnx.helper.make_tensor("scale", onnx.TensorProto.FLOAT, [], [1.0]), zero])  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)])
    with np.errstate(all="ignore"):
        (got,) = ReferenceEvaluator(model).run(None, {"x": numbers})
    expect_codes(dtype, got.view(np.uint8))


def test_a_format_is_refused_by_what_was_written_before(tmp_path):
    (found,) = attest.check(lambda q, k, v: v, "seq=1 dim=4 v.dtype=e4m3", shrink=False)
    assert found.status == "refused" and "version 9" in found.reason, str(found)
