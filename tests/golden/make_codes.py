#!/usr/bin/env python3
"""Writes codes/*.safetensors: numbers in float32 and the codes of 8 and 4 bits that others round them to.

    python3 -m venv v && v/bin/pip install ml_dtypes numpy && v/bin/python make_codes.py

`numbers` are all numbers of the format, the midpoints between neighbours, the float32 numbers on both sides of each,
the ends of the range, infinities and a NaN; `codes` are those of ml_dtypes, of integers those of NumPy's rint. Rounding
is monotonic, so that equal codes here are equal codes of every float32 number. Each code has a byte.
"""
import json
import pathlib
import struct

import ml_dtypes
import numpy as np

TYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "i8": np.int8, "e8m0": ml_dtypes.float8_e8m0fnu,
         "e2m1": ml_dtypes.float4_e2m1fn, "i4": ml_dtypes.int4}  # fmt: skip
IN_FOUR_BITS = ("e2m1", "i4")


def values(name):
    """The numbers of all codes, ascending, as float32."""
    with np.errstate(invalid="ignore"):
        all_of_them = np.arange(16 if name in IN_FOUR_BITS else 256, dtype=np.uint8).view(TYPES[name]).astype(np.float32)
    return np.unique(all_of_them[np.isfinite(all_of_them)])


def probes(name):
    finite = values(name)
    # One more step on each side: the midpoint to it is where the range ends.
    low, high = finite[0] + (finite[0] - finite[1]), finite[-1] + (finite[-1] - finite[-2])
    steps = np.concatenate([[low], finite, [high]]).astype(np.float32)
    middles = ((steps[:-1].astype(np.float64) + steps[1:]) / 2).astype(np.float32)
    beside = [np.nextafter(x, np.float32(side)) for x in (steps, middles) for side in (-np.inf, np.inf)]
    tiny, huge = np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).max
    ends = np.array([-np.inf, -huge, -tiny, -0.0, 0.0, tiny, huge, np.inf, np.nan], np.float32)
    numbers = np.unique(np.concatenate([steps, middles, *beside]))
    if name == "e8m0":  # ml_dtypes 0.6.0 rounds float32's subnormal numbers up
        numbers = numbers[(numbers >= np.finfo(np.float32).smallest_normal) | (numbers == finite[0])]
    return np.concatenate([numbers, ends]).astype(np.float32)


def codes(name, numbers):
    if name in ("i8", "i4"):  # as quantisers have it: to the nearest, ties to even, and saturated
        largest = 127 if name == "i8" else 7
        whole = np.rint(np.nan_to_num(numbers.astype(np.float64), nan=0))
        return np.clip(whole, -largest - 1, largest).astype(np.int8).view(np.uint8) & np.uint8(2 * largest + 1)
    with np.errstate(all="ignore"):
        return numbers.astype(TYPES[name])


def main():
    folder = pathlib.Path(__file__).parent / "codes"
    folder.mkdir(exist_ok=True)
    for name in TYPES:
        numbers = probes(name)
        header, data = {"__metadata__": {"producer": f"ml_dtypes {ml_dtypes.__version__}"}}, b""
        for key, kind, array in [("numbers", "F32", numbers), ("codes", "U8", codes(name, numbers))]:
            raw = array.tobytes()
            header[key] = {"dtype": kind, "shape": [array.size], "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        (folder / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main()
