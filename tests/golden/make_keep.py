#!/usr/bin/env python3
"""Writes keep/*.safetensors: inputs with a given keep tensor for dropout, which no case line can express.

Standard library only; the same bytes every time. Values are small multiples of 1/8.
"""
import json
import pathlib
import random
import struct


def tensor(kind, shape, make):
    count = 1
    for extent in shape:
        count *= extent
    values = [make() for _ in range(count)]
    return kind, shape, b"".join(struct.pack("<?" if kind == "BOOL" else "<f", x) for x in values)


def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, (kind, shape, raw) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    folder = pathlib.Path(__file__).parent / "keep"
    folder.mkdir(exist_ok=True)
    for name, options, about in [
        ("dropout", "dropout=0.25 causal align=bottom-right", "a given keep tensor with a dropout probability"),
        ("keep_alone", "out=o,lse", "a given keep tensor, probability 0: nothing is scaled"),
    ]:
        rng = random.Random(name)
        shapes = {"q": [2, 4, 3, 6], "k": [2, 2, 5, 6], "v": [2, 2, 5, 7]}
        tensors = {n: tensor("F32", s, lambda: rng.randint(-12, 12) / 8) for n, s in shapes.items()}
        tensors["keep"] = tensor("BOOL", [2, 4, 3, 5], lambda: rng.random() < 0.6)
        write(folder / f"{name}.safetensors", tensors, {"options": options, "about": about})


main()
