#!/usr/bin/env python3
"""Turns walkthroughs.json into the .safetensors cases beside it. Standard library only.

Run in this folder after changing walkthroughs.json; the result is committed, so that no test needs Python.
"""
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
OUT = HERE / "walkthroughs"


def flat(values):
    return [x for row in values for x in flat(row)] if isinstance(values, list) else [values]


def shape(values):
    return [len(values)] + shape(values[0]) if isinstance(values, list) else []


def identity(n):
    return [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]


def save(name, tensors, metadata, dtype="F64"):
    header, data = {"__metadata__": metadata}, b""
    for key, values in tensors.items():
        kind = "BOOL" if key == "mask" and isinstance(flat(values)[0], bool) else dtype
        code = {"BOOL": "?", "F64": "d", "F32": "f"}[kind]
        numbers = flat(values)
        chunk = struct.pack(f"<{len(numbers)}{code}", *numbers)
        dims = shape(values) or [1]
        header[key] = {"dtype": kind, "shape": dims, "data_offsets": [len(data), len(data) + len(chunk)]}
        data += chunk
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (OUT / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    walks = json.loads((HERE / "walkthroughs.json").read_text())
    meta = lambda w, **more: {"about": w["about"], "tolerance": repr(w["tolerance"]), **more}

    w = walks["three_tokens"]
    mask = [[0.0 if j <= i else -1e9 for j in range(3)] for i in range(3)]
    for name, dtype in (("three_tokens", "F64"), ("three_tokens_f32", "F32")):
        save(name, {"q": w["Q"], "k": w["K"], "v": w["V"], "mask": mask, "X": w["X"], "W_Q": w["W_Q"],
                    "W_K": w["W_K"], "W_V": w["W_V"], "scores": w["scores"], "masked_scores": w["masked_scores"],
                    "weights": w["weights"], "row_sums": w["row_sums"], "output": w["output"]}, meta(w), dtype)

    w = walks["the_cat_sat_on_mat"]
    tokens = " ".join(w["tokens"])
    base = {"q": w["Q"], "k": w["K"], "v": w["V"], "X": w["X"]}
    save("the_cat_sat_on_mat", {**base, "weights": w["weights"], "output": w["output"]},
         meta(w, scale=repr(w["scale"]), tokens=tokens))
    save("the_cat_sat_on_mat_causal", {**base, "weights": w["causal_weights"], "output": w["causal_output"]},
         meta(w, scale=repr(w["scale"]), tokens=tokens, options="causal"))

    w = walks["first_principles"]
    base = {"q": w["scaled_scores"], "k": identity(4), "v": identity(4)}
    save("first_principles", {**base, "scores": w["scaled_scores"], "weights": w["weights"],
                              "score_row_sums": w["row_sums"], "score_column_sums": w["column_sums"]},
         meta(w, scale="1"))
    ones = [[1.0 if j <= i else float("-inf") for j in range(4)] for i in range(4)]
    save("first_principles_causal", {**base, "mask": ones, "scores": w["scaled_scores"],
                                     "weights": w["causal_weights"]}, meta(w, scale="1"))

    w = walks["seed_42"]
    save("seed_42", {"q": w["Q"], "k": w["K"], "v": w["V"], "weights": w["weights"], "output": w["output"]}, meta(w))

    w = walks["scale_mask_softmax"]
    visible = [[m == 0 for m in row] for row in w["mask"]]  # printed with 1 = masked out
    save("scale_mask_softmax",
         {"q": w["raw_scores"], "k": identity(5), "v": identity(5), "mask": visible, "raw_scores": w["raw_scores"],
          "scores": w["scaled_scores"], "weights": w["weights"], "variance_before": [w["variance_before"]],
          "variance_after": [w["variance_after"]]}, meta(w, scale=repr(w["scale"])))


if __name__ == "__main__":
    main()
