#!/usr/bin/env python3
"""check.py BUNDLE/FILE ANSWERS/FILE: whether each element of each result lies within its bound of what is expected.

Exit code 0: right, 1: wrong, 2: not readable. Needs Python alone.
"""

import array
import json
import math
import struct
import sys


def read(path):
    """The tensors of a file, by name: type, shape and bytes."""
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack_from("<Q", content)[0]
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}


def numbers(tensor):
    kind, _, data = tensor
    if kind == "F16":
        return struct.unpack(f"<{len(data) // 2}e", data)
    if kind == "BF16":  # the upper half of F32
        return struct.unpack(f"<{len(data) // 2}f", b"".join(b"\0\0" + data[n : n + 2] for n in range(0, len(data), 2)))
    return array.array({"F64": "d", "F32": "f"}[kind], data)


def is_right(got, expected, bound):
    if math.isnan(expected):
        return not math.isfinite(got)
    return got == expected if math.isinf(expected) else abs(got - expected) <= bound


def main():
    try:
        truth, given = map(read, sys.argv[1:])
        wrong = compared = 0
        names = [key[9:] for key in truth if key.startswith("expected.")]
        if not names:
            raise ValueError(f"{sys.argv[1]}: nothing is expected")
        for name in names:
            if given[name][1] != truth["expected." + name][1]:
                raise ValueError(f"{name} has shape {given[name][1]}")
            lists = (given[name], truth["expected." + name], truth["bound." + name])
            # An infinite bound: nothing can be said of this element.
            seen = [is_right(*one) for one in zip(*map(numbers, lists)) if one[2] != math.inf]
            wrong, compared = wrong + seen.count(False), compared + len(seen)
    except (OSError, ValueError, KeyError, struct.error) as error:
        sys.exit(print(f"check: {error!r}", file=sys.stderr) or 2)
    print(f"{sys.argv[2]}: {wrong} of {compared} elements are wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
