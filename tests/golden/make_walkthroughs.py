#!/usr/bin/env python3
"""Turns walkthroughs.json and solved.json into the .safetensors cases beside them. Standard library only.

Run in this folder after changing walkthroughs.json; the result is committed, so that no
test needs Python. Where an example's print-out breaks off, the missing numbers of a stage are those of the solution.
"""
import json
import math
import pathlib
import random
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


def padded(matrix, columns):
    return [row + [0.0] * (columns - len(row)) for row in matrix]


def matmul(a, b):
    return [[sum(x * b[t][c] for t, x in enumerate(row)) for c in range(len(b[0]))] for row in a]


def number(value):
    return float(value) if isinstance(value, str) else value


def attend(scores, v, causal):
    """Weights times values, for numbers that a print-out cut off."""
    output = []
    for i, row in enumerate(scores):
        exps = [math.exp(s - max(row)) if j <= i or not causal else 0.0 for j, s in enumerate(row)]
        output += matmul([[e / sum(exps) for e in exps]], v)
    return output


def main():
    walks = json.loads((HERE / "walkthroughs.json").read_text())
    solved = json.loads((HERE / "solved.json").read_text())
    meta = lambda w, **more: {"about": w["about"], "tolerance": repr(w["tolerance"]), **more}

    w = walks["three_tokens"]
    mask = [[0.0 if j <= i else -1e9 for j in range(3)] for i in range(3)]
    hidden = [[0.0 if j <= i else 1.0 for j in range(3)] for i in range(3)]
    for name, dtype in (("three_tokens", "F64"), ("three_tokens_f32", "F32")):
        save(name, {"q": w["Q"], "k": w["K"], "v": w["V"], "mask": mask, "X": w["X"], "W_Q": w["W_Q"],
                    "W_K": w["W_K"], "W_V": w["W_V"], "scores": w["scores"], "hidden": hidden,
                    "masked_scores": w["masked_scores"], "weights": w["weights"], "row_sums": w["row_sums"],
                    "output": w["output"]}, meta(w), dtype)

    w = walks["the_cat_sat_on_mat"]
    tokens = " ".join(w["tokens"])
    base = {"q": w["Q"], "k": w["K"], "v": w["V"], "X": w["X"]}
    save("the_cat_sat_on_mat", {**base, "weights": w["weights"], "output": w["output"]},
         meta(w, scale=repr(w["scale"]), tokens=tokens))
    save("the_cat_sat_on_mat_causal", {**base, "weights": w["causal_weights"], "output": w["causal_output"]},
         meta(w, scale=repr(w["scale"]), tokens=tokens, options="causal"))

    w, found = walks["first_principles"], solved["first_principles"]
    scores = matmul(found["Q"], [[x / 4 for x in column] for column in zip(*found["K"])])
    base = {"q": found["Q"], "k": found["K"], "v": found["V"], "scores": w["scaled_scores"],
            "statistics": w["statistics"]}
    rest = attend(scores, found["V"], False)
    save("first_principles", {**base, "weights": w["weights"], "score_row_sums": w["row_sums"],
                              "score_column_sums": w["column_sums"], "row_sums": [1.0] * 4,
                              "output": w["output"] + [w["output_row_3_first_numbers"] + rest[3][9:]]}, meta(w))
    rest = attend(scores, found["V"], True)
    mask = [[number(x) for x in row] for row in w["mask"]]
    save("first_principles_causal",
         {**base, "mask": mask, "added": mask, "weights": w["causal_weights"], "row_sums": [1.0] * 4,
          "output": w["causal_output"] + [w["causal_output_row_2_first_numbers"] + rest[2][9:], rest[3]]}, meta(w))

    w = walks["first_principles_sums"]
    scores = [w["row"]] + [[x, 0.0, 0.0, 0.0] for x in w["column"][1:]]
    save("first_principles_sums", {"q": scores, "k": identity(4), "v": identity(4), "scores": scores,
                                   "score_row_sums": [w["row_sum"]] + w["column"][1:],
                                   "score_column_sums": [w["column_sum"]] + w["row"][1:]}, meta(w, scale="1"))

    w = walks["seed_42"]
    save("seed_42", {"q": w["Q"], "k": w["K"], "v": w["V"], "weights": w["weights"], "output": w["output"]}, meta(w))

    # Any q and k of 64 numbers with these products will do: the scores stand in q, and k is an identity. v is any.
    draw = random.Random(5)
    v = [[round(draw.gauss(0, 1), 3) for _ in range(64)] for _ in range(5)]
    w, found = walks["scale_mask_softmax"], solved["scale_mask_softmax"]
    visible = [[m == 0 for m in row] for row in w["mask"]]  # printed with 1 = masked out
    save("scale_mask_softmax",
         {"q": padded(found["raw_scores"], 64), "k": padded(identity(5), 64), "v": v,
          "mask": visible, "hidden": [[float(m) for m in row] for row in w["mask"]], "raw_scores": w["raw_scores"],
          "scores": w["scaled_scores"], "masked_scores": [[number(x) for x in row] for row in w["masked_scores"]],
          "weights": w["weights"], "row_sums": [1.0] * 5, "variance_before": [w["variance_before"]],
          "variance_after": [w["variance_after"]]},
         meta(w, tolerances="raw_scores=0.005 masked_scores=0.005 variance_before=0.005 variance_after=0.005"))

    w = walks["small_and_large_scores"]
    save("small_and_large_scores", {"q": w["scores"], "k": identity(3), "v": identity(3), "weights": w["weights"]},
         meta(w, scale="1"))
    w = walks["position_3"]
    save("position_3", {"q": w["scores"], "k": identity(4), "v": identity(4), "scores": w["scores"]},
         meta(w, scale="1"))


if __name__ == "__main__":
    main()
