#!/usr/bin/env python3
"""Writes scales/*.safetensors: codes with scales, and attention over what ONNX's DequantizeLinear makes of them.

    python3 -m venv v && v/bin/pip install onnx==1.23.2 && v/bin/python make_scales.py

The graphs are run by onnx's own evaluator: DequantizeLinear with its axis or block_size and, where keys lie in pages,
Gather by the page table, then Attention (opset 23). Scales of pages lie as FlashInfer's `kv_cache_sf` in the layout HND
does: pages, heads, rows of a page, blocks of a row. The result is committed, so that no test needs Python.
"""
import json
import pathlib
import struct
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

FOLDER = pathlib.Path(__file__).parent / "scales"
KINDS = {"e4m3": (TensorProto.FLOAT8E4M3FN, "F8_E4M3"), "e5m2": (TensorProto.FLOAT8E5M2, "F8_E5M2"),
         "i8": (TensorProto.INT8, "I8")}
NUMBERS = {"float32": "F32", "int32": "I32"}


def codes(rng, kind, shape):
    """Each code of a number, also large ones: which scale they have shows."""
    if kind == "i8":
        return rng.integers(-128, 128, shape, np.int8)
    drawn = np.clip(rng.normal(0, 2, shape), -400, 400).astype(np.float32)
    return drawn.astype(helper.tensor_dtype_to_np_dtype(KINDS[kind][0]))


def scales(rng, shape, kind):
    """Any two differ, by what is seen and not exactly by powers of two."""
    count = int(np.prod(shape))
    steps = rng.permutation(np.linspace(0.3, 2.5, count)) if count > 1 else np.array([0.7])
    return (steps / (64 if kind == "i8" else 1)).astype(np.float32).reshape(shape)


def dequantise(nodes, name, how, dim):
    """Adds the node. Scales of a tensor and of heads have one axis less there for each that they don't vary along."""
    attributes, given = {}, f"{name}_scales"
    if how in ("tensor", "head"):
        nodes.append(helper.make_node("Squeeze", [given], [f"{name}_squeezed"]))
        given, attributes = f"{name}_squeezed", {"axis": 1}
    else:
        attributes = {"axis": 3, "block_size": dim if how == "token" else int(how.split(":")[1])}
    nodes.append(helper.make_node("DequantizeLinear", [name, given], [f"{name}_numbers"], **attributes))
    return f"{name}_numbers"


def paged(nodes, name, batch, heads, dim):
    """pages,H,P,D and a table of B,n pages: B,H,n*P,D."""
    nodes.append(helper.make_node("Gather", [name, "page_table"], [f"{name}_found"], axis=0))
    nodes.append(helper.make_node("Transpose", [f"{name}_found"], [f"{name}_turned"], perm=[0, 2, 1, 3, 4]))
    nodes.append(helper.make_node("Constant", [], [f"{name}_wanted"], value_ints=[batch, heads, -1, dim]))
    nodes.append(helper.make_node("Reshape", [f"{name}_turned", f"{name}_wanted"], [f"{name}_rows"]))
    return f"{name}_rows"


def scales_shape(how, shape):
    outer, heads, rows, dim = shape
    if how == "tensor":
        return [1, 1, 1, 1]
    if how == "head":
        return [1, heads, 1, 1]
    return [outer, heads, rows, 1 if how == "token" else -(-dim // int(how.split(":")[1]))]


def make(name, k, v, q=None, page=0, options=(), causal=False):
    """k, v and q: type and what has one scale."""
    rng = np.random.default_rng(list(name.encode()))
    batch, heads, key_heads, queries, keys, dim, value_dim = 2, 4, 2, 3, 8, 16, 12
    tensors, kinds, nodes, operands, said = {}, {}, [], [], list(options)
    for tensor, given, shape in [("q", q, (batch, heads, queries, dim)), ("k", k, (batch, key_heads, keys, dim)),
                                 ("v", v, (batch, key_heads, keys, value_dim))]:
        if given is None:
            tensors[tensor] = rng.normal(0, 1, shape).astype(np.float32)
            kinds[tensor] = (TensorProto.FLOAT, "F32")
            operands.append(tensor)
            continue
        kind, how = given
        if page and tensor != "q":
            shape = (batch * keys // page + 1, key_heads, page, shape[3])
        tensors[tensor], kinds[tensor] = codes(rng, kind, shape), KINDS[kind]
        tensors[f"{tensor}_scales"] = scales(rng, scales_shape(how, shape), kind)
        kinds[f"{tensor}_scales"] = (TensorProto.FLOAT, "F32")
        said.append(f"{tensor}.scale={how}")
        number = dequantise(nodes, tensor, how, shape[3])
        operands.append(paged(nodes, number, batch, key_heads, shape[3]) if page and tensor != "q" else number)
    if page:
        pages = rng.permutation(batch * keys // page + 1)[: batch * keys // page]  # one page is nobody's
        tensors["page_table"], kinds["page_table"] = pages.reshape(batch, -1).astype(np.int32), (TensorProto.INT32, "I32")
        said.append(f"lengths={','.join([str(keys)] * batch)}")
    nodes.append(helper.make_node("Attention", operands, ["output"], is_causal=int(causal)))
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info(n, kinds[n][0], t.shape) for n, t in tensors.items()],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    (output,) = ReferenceEvaluator(model).run(None, tensors)
    header = {"__metadata__": {
        "origin": f"onnx {onnx.__version__}, its evaluator: DequantizeLinear and Attention, opset 23",
        "options": " ".join(said + (["causal align=top-left"] if causal else [])),
        "tolerance": "1e-5", "relative_tolerance": "1e-5"}}
    data = b""
    for key, array in sorted([*tensors.items(), ("output", output)], key=lambda item: -item[1].itemsize):
        raw = np.ascontiguousarray(array).tobytes()
        header[key] = {"dtype": kinds.get(key, (0, "F32"))[1], "shape": list(array.shape),
                       "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    (FOLDER / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    warnings.filterwarnings("ignore")
    FOLDER.mkdir(exist_ok=True)
    make("tensor_and_head", ("e4m3", "tensor"), ("e5m2", "head"))
    make("head_and_token", ("i8", "head"), ("i8", "token"), causal=True)
    make("blocks", ("e4m3", "block:8"), ("e4m3", "block:4"))
    make("short_last_block", ("i8", "block:6"), ("e5m2", "block:5"))
    make("queries", ("e4m3", "token"), ("e4m3", "head"), q=("e4m3", "token"))
    make("pages_of_blocks", ("e4m3", "block:4"), ("e4m3", "block:4"), page=4)
    make("pages_of_tokens", ("i8", "token"), ("e4m3", "tensor"), page=2)


if __name__ == "__main__":
    main()
