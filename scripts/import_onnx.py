#!/usr/bin/env python3
"""Turns the node tests of an installed `onnx` package into cases under tests/golden/onnx and the suite tests/cases/onnx.cases.

    python3 -m venv v && v/bin/pip install onnx==1.23.2 && v/bin/python scripts/import_onnx.py

Attention (opsets 23 to 25), FlexAttention and LinearAttention. What FlexAttention says with graphs is said here with masks, softcap and the
causal flag; a graph that is not known stops the import. The result is committed, so that no test needs Python.
"""
import json
import pathlib
import re
import struct
import sys
import warnings

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "golden" / "onnx"
ORIGIN = f"onnx {onnx.__version__} node test {{}}, opset {{}}; Copyright (c) ONNX Project Contributors, Apache-2.0"
STAGES = {0: "raw", 1: "capped", 2: "biased", 3: "weights"}
NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "bool": "BOOL", "int64": "I64"}


def write_safetensors(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": NAMES[str(array.dtype)], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def lengths_of(tensors, attributes):
    """(Lq, Lk, head counts) of a node's inputs."""
    q, k = tensors["Q"], tensors["K"]
    length = 2 if q.ndim == 4 else 1
    past = tensors["past_key"].shape[2] if "past_key" in tensors else 0
    return q.shape[length], k.shape[length] + past


def full_mask(mask, keys):
    """Four axes, as many keys as there are: the text pads a shorter mask with what hides."""
    mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    missing = keys - mask.shape[3]
    if mask.shape[3] != 1 and missing > 0:
        hidden = False if mask.dtype == bool else -np.inf
        mask = np.concatenate([mask, np.full(mask.shape[:3] + (missing,), hidden, mask.dtype)], axis=3)
    return mask


def attention_case(tensors, outputs, attributes):
    queries, keys = lengths_of(tensors, attributes)
    case = {"q": tensors["Q"], "k": tensors["K"], "v": tensors["V"]}
    metadata, options, wanted = {}, [], ["o"]
    if tensors["Q"].ndim == 3:
        metadata = {"layout": "bld", "heads": str(attributes["q_num_heads"]), "kv_heads": str(attributes["kv_num_heads"])}
    if "past_key" in tensors:
        case["past_k"], case["past_v"] = tensors["past_key"], tensors["past_value"]
    if "attn_mask" in tensors:
        case["mask"] = full_mask(tensors["attn_mask"], keys)
    left, right = attributes.get("left_window_size", -1), attributes.get("right_window_size", -1)
    if attributes.get("is_causal"):
        options.append("causal")
    if left >= 0 or right >= 0:
        options.append("window=" + ":".join("inf" if side < 0 else str(side) for side in (left, right)))
    if "nonpad_kv_seqlen" in tensors:
        options += ["align=bottom-right", "lengths=" + ",".join(str(n) for n in tensors["nonpad_kv_seqlen"])]
    elif options and queries != keys and "past_key" not in tensors:
        options.append("align=top-left")
    if attributes.get("softcap"):
        options.append(f"softcap={attributes['softcap']!r}")
    if attributes.get("scale"):
        metadata["scale"] = repr(attributes["scale"])
    for name, array in outputs.items():
        if name == "Y":
            case["output"] = array
        elif name.startswith("present"):
            case["present_" + name[len("present_")]] = array
        else:
            mode = attributes.get("qk_matmul_output_mode", 0)
            case[STAGES[mode]] = array
            wanted.append(STAGES[mode])
    if "present_k" in case:
        wanted.append("present")
    if wanted != ["o"]:
        options.append("out=" + ",".join(wanted))
    return case, metadata, options


def flex_case(name, tensors, outputs, attributes):
    """The graphs of the node tests, each said in the case grammar."""
    case, metadata, options = attention_case(tensors, outputs, {k: v for k, v in attributes.items() if not k.endswith("_mod")})
    notes = []
    for key, graph in ((k, v) for k, v in attributes.items() if k.endswith("_mod")):
        operators = [node.op_type for node in graph.node]
        constants = [onnx.numpy_helper.to_array(t) for t in graph.initializer]
        for node in graph.node:
            constants += [onnx.numpy_helper.to_array(a.t) for a in node.attribute if a.name == "value"]
        numbers = [c for c in constants if c.dtype.kind == "f"]
        queries, keys = case["q"].shape[2], case["k"].shape[2]
        i, j = np.arange(queries)[:, None], np.arange(keys)[None, :]
        if key == "score_mod" and operators == ["Add"]:
            case["mask"] = np.full((1, 1, queries, keys), float(numbers[0]), case["q"].dtype)
            notes.append("score_mod adds a constant: an additive mask")
        elif key == "score_mod" and operators == ["Div", "Tanh", "Mul"]:
            options.append(f"softcap={float(numbers[0])!r}")
            notes.append("score_mod caps: softcap")
        elif key == "score_mod" and operators[-2:] == ["GreaterOrEqual", "Where"]:
            options.append("causal" + ("" if queries == keys else " align=top-left"))
            notes.append("score_mod compares positions: causal")
        elif key == "score_mod" and operators[-3:] == ["Sub", "Cast", "Add"]:
            case["mask"] = (i - j).astype(case["q"].dtype).reshape(1, 1, queries, keys)
            notes.append("score_mod adds query minus key position: an additive mask")
        elif key == "prob_mod" and operators == ["Mul"]:
            factor = float(numbers[0])
            assert np.log2(factor) == round(np.log2(factor)), "only a power of two folds into v exactly"
            case["v"] = (case["v"] * factor).astype(case["v"].dtype)
            notes.append(f"prob_mod multiplies every weight by {factor}: folded into v, exactly")
        else:
            sys.exit(f"{name}: {key} with {operators} is not known here")
    return case, metadata, options, notes


def linear_case(tensors, outputs, attributes):
    heads, key_heads = attributes["q_num_heads"], attributes["kv_num_heads"]
    case = {"q": tensors["query"], "k": tensors["key"], "v": tensors["value"]}
    metadata = {"layout": "bld", "heads": str(heads), "kv_heads": str(key_heads)}
    options = ["op=" + attributes.get("update_rule", b"gated_delta").decode(), "out=o,present"]
    if "decay" in tensors:
        case["decay"] = tensors["decay"]
        options += ["decay=head"] if tensors["decay"].shape[2] == key_heads else []
    if "beta" in tensors:
        case["beta"] = tensors["beta"]
        options += ["beta=one"] if tensors["beta"].shape[2] == 1 < key_heads else []
    if "past_state" in tensors:
        case["past_state"] = tensors["past_state"]
        options.append("state")
    if attributes.get("scale"):
        metadata["scale"] = repr(attributes["scale"])
    case["output"], case["present_state"] = outputs["output"], outputs["present_state"]
    return case, metadata, options


def main():
    warnings.filterwarnings("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.safetensors"):
        old.unlink()
    lines = []
    for test in collect_testcases(None):
        node = test.model.graph.node[0]
        if node.op_type not in ("Attention", "FlexAttention", "LinearAttention") or len(test.model.graph.node) != 1:
            continue
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        (inputs, outputs), = test.data_sets
        tensors = dict(zip((n for n in node.input if n), inputs))
        results = dict(zip((n for n in node.output if n), outputs))
        notes = []
        if node.op_type == "Attention":
            case, metadata, options = attention_case(tensors, results, attributes)
        elif node.op_type == "LinearAttention":
            case, metadata, options = linear_case(tensors, results, attributes)
        else:
            case, metadata, options, notes = flex_case(test.name, tensors, results, attributes)
        # onnx's own runner compares bfloat16 within two of its ulps at least.
        bfloat16 = any(str(array.dtype) == "bfloat16" for array in results.values())
        relative = max(test.rtol, 2**-6) if bfloat16 else test.rtol
        opset = max(o.version for o in test.model.opset_import if o.domain == "")
        metadata |= {"origin": ORIGIN.format(test.name, opset), "options": " ".join(options),
                     "tolerance": repr(test.atol), "relative_tolerance": repr(relative)}
        if notes:
            metadata["about"] = "; ".join(notes)
        name = re.sub("^test_", "", test.name)
        write_safetensors(FOLDER / f"{name}.safetensors", case, metadata)
        lines.append(f"../golden/onnx/{name}.safetensors")
    suite = ROOT / "tests" / "cases" / "onnx.cases"
    suite.write_text(f"# The node tests of onnx {onnx.__version__} for Attention, FlexAttention and LinearAttention (Apache-2.0), at their own tolerance.\n"
                     "# No expected file disagrees with the operators' text. Beside them: with softcap and qk_matmul_output_mode=0 the text says\n"
                     "# raw scores and the package's evaluator returns capped ones (q=2, k=3, scale 1, softcap 2: 6 by the text, 1.9901096 there).\n"
                     "# No node test has that pair of attributes; bugs.cases has a line for it.\n"
                     + "\n".join(lines) + "\n")
    print(f"{len(lines)} cases")


if __name__ == "__main__":
    main()
