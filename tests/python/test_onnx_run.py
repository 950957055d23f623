"""`python -m attest import MODEL.onnx --run DATA`: files must hold what the model hands to its attention, bit for bit."""

import subprocess
import sys

import numpy as np
import pytest

import attest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from attest._tensor_file import read_tensors  # noqa: E402

RANDOM = np.random.default_rng(3)
KINDS = {"float32": TensorProto.FLOAT, "bool": TensorProto.BOOL, "int64": TensorProto.INT64}


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def imported(*words, folder):
    done = subprocess.run([sys.executable, "-m", "attest", "import", *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def saved(folder, nodes, given, constants=(), outputs=("o",), opset=24):
    """Writes model.onnx with its batches open, and the data of its inputs as a folder and as an .npz."""
    def open_batch(array):
        return ["batch", *array.shape[1:]] if array.ndim == 3 else array.shape

    graph = helper.make_graph(
        nodes, "model",
        [helper.make_tensor_value_info(name, KINDS[one.dtype.name], open_batch(one)) for name, one in given.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in dict(constants).items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    onnx.save(model, str(folder / "model.onnx"))
    (folder / "data").mkdir(exist_ok=True)
    for index, (name, one) in enumerate(given.items()):
        (folder / f"data/input_{index}.pb").write_bytes(numpy_helper.from_array(one, name).SerializeToString())
    np.savez(folder / "data.npz", **given)
    return model


def computed(model, names, given):
    """These tensors, computed by what runs the model there, too: other libraries sum in another order."""
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    try:
        import onnxruntime
    except ImportError:
        return ReferenceEvaluator(model).run(names, given)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(names, given)


def node(kind, inputs, outputs, **attributes):
    """A name of "-" is an input that is left out."""
    names = [("" if name == "-" else name) for name in inputs.split()]
    return helper.make_node(kind, names, outputs.split(), name=f"{kind}_{outputs.split()[0]}", **attributes)


def two_layers(folder):
    """Projections and a fused node, then projections and attention spelled out, with a mask of keys."""
    heads = np.array([0, 0, 4, 8], np.int64)
    second = [
        step for name, weights in (("q2", "wq2"), ("k2", "wk2"), ("v2", "wv2")) for step in (
            node("MatMul", f"y {weights}", f"{name}m"), node("Reshape", f"{name}m heads", f"{name}r"),
            node("Transpose", f"{name}r", name, perm=[0, 2, 3, 1] if name == "k2" else [0, 2, 1, 3]),
        )
    ]  # fmt: skip
    nodes = [
        node("MatMul", "x wq", "q1"), node("MatMul", "x wk", "k1"), node("MatMul", "x wv", "v1"),
        node("Attention", "q1 k1 v1", "a", is_causal=1, q_num_heads=4, kv_num_heads=2, softcap=5.0),
        node("MatMul", "a wo", "y"), *second, node("Mul", "q2 half", "q2s"), node("MatMul", "q2s k2", "s"),
        node("Div", "s two", "sd"), node("Add", "sd m", "sm"), node("Softmax", "sm", "w", axis=-1),
        node("MatMul", "w v2", "p"), node("Relu", "p", "o"),
    ]  # fmt: skip
    constants = {"wq": normal(32, 32), "wk": normal(32, 16), "wv": normal(32, 16), "wo": normal(32, 32) / 6,
                 "wq2": normal(32, 32), "wk2": normal(32, 32), "wv2": normal(32, 32), "heads": heads,
                 "half": np.float32(0.5), "two": np.float32(2)}  # fmt: skip
    given = {"x": normal(2, 6, 32), "m": np.where(RANDOM.random((2, 1, 1, 6)) < 0.7, 0, -1e4).astype(np.float32)}
    model = saved(folder, nodes, given, constants)
    names = ["q1", "k1", "v1", "q2s", "k2", "v2"]
    return given, dict(zip(names, computed(model, names, given)))


@pytest.mark.parametrize("data", ["data", "data.npz"])
def test_both_layers_are_captured(tmp_path, data):
    given, made = two_layers(tmp_path)
    code, text, error = imported("model.onnx", "--run", data, "--out", "captured", folder=tmp_path)
    assert (code, error) == (0, ""), error
    first, second = "captured/000_Attention_a.safetensors", "captured/001_Softmax_w.safetensors"
    assert text == f"{first}: Attention_a: causal softcap=5\n{second}: Softmax_w: scale=0.5\n"
    stored = read_tensors(str(tmp_path / first))
    assert {name: one.data for name, one in stored.items()} == {name[0]: made[name].tobytes() for name in ("q1", "k1", "v1")}
    stored = {name: one.array() for name, one in read_tensors(str(tmp_path / second)).items()}
    assert np.array_equal(stored["q"], made["q2s"]) and np.array_equal(stored["v"], made["v2"])
    assert np.array_equal(stored["k"], made["k2"].swapaxes(2, 3)) and np.array_equal(stored["mask"], given["m"])

    results = attest.check("example", [str(tmp_path / first), str(tmp_path / second)], once=True)
    assert [one.status for one in results] == ["pass", "pass"], str(results)


def test_what_is_judged_is_what_the_model_computes(tmp_path):
    """The model's own results of both layers lie within the bounds of the files; with another scale they do not."""
    given, _ = two_layers(tmp_path)
    assert imported("model.onnx", "--run", "data", "--out", "captured", folder=tmp_path)[0] == 0
    model = onnx.load(str(tmp_path / "model.onnx"))
    a, p = computed(model, ["a", "p"], given)
    by_layer = {"Attention": a.reshape(2, 6, 4, 8).swapaxes(1, 2), "Softmax": p}
    for path in sorted((tmp_path / "captured").iterdir()):
        result = next(one for name, one in by_layer.items() if name in path.name)
        for factor, status in ((1, "pass"), (1.001, "fail")):

            def attention(q, k, v, *, scale=None, causal=False, softcap=None, bias=None, align=None):
                return (result * np.float32(factor)).astype(q.dtype)

            results = attest.check(attention, str(path), once=True, arithmetic={"scale": "split_root"})
            assert results[0].status == status, str(results)


def fused(folder, names, given, **attributes):
    nodes = [helper.make_node("Attention", names, ["o"], name="one", **attributes)]
    return saved(folder, nodes, given)


@pytest.mark.parametrize(
    "names, more, attributes, options",
    [
        ("q k v", {}, dict(is_causal=1), "causal align=top-left"),
        ("q k v", {}, dict(scale=0.25), "scale=0.25"),
        ("q k v visible", dict(visible=RANDOM.random((5, 9)) < 0.7), {}, ""),
        ("q k v m", dict(m=normal(2, 1, 5, 7)), {}, ""),  # the last keys are hidden
        ("q k v visible", dict(visible=np.ones((5, 1), bool)), {}, ""),  # all but the first key are
        ("q k v - - - n", dict(n=np.array([9, 6])), dict(is_causal=1), "causal align=bottom-right lengths=9,6"),
        ("q k v - - - n", dict(n=np.array([9, 6])), {}, "lengths=9,6"),
        ("q k v - pk pv", dict(pk=normal(2, 2, 4, 8), pv=normal(2, 2, 4, 6)), dict(is_causal=1), "causal"),
    ],
)
def test_inputs_of_the_operator(tmp_path, names, more, attributes, options):
    given = dict(q=normal(2, 4, 5, 8), k=normal(2, 2, 9, 8), v=normal(2, 2, 9, 6), **more)
    model = fused(tmp_path, [("" if name == "-" else name) for name in names.split()], given, **attributes)
    code, text, error = imported("model.onnx", "--run", "data", "--out", "x", folder=tmp_path)
    file = "x/000_one.safetensors"
    assert (code, text) == (0, f"{file}: one{': ' if options else ''}{options}\n"), error
    result = ReferenceEvaluator(model).run(None, given)[0]

    def attention(q, k, v, *, scale=None, causal=False, align=None, mask=None, bias=None, key_lengths=None,
                  past_k=None, past_v=None):  # fmt: skip
        return result.astype(q.dtype)

    results = attest.check(attention, str(tmp_path / file), once=True, arithmetic={"scale": "split_root"})
    assert results[0].status == "pass", str(results)


@pytest.mark.parametrize(
    "q, k, between, more, options",
    [
        ([2, 4, 5, 8], [2, 4, 9, 8], [node("Where", "visible p low", "s")],
         dict(visible=RANDOM.random((2, 1, 5, 9)) < 0.7, low=np.float32(-1e9)), "scale=1"),
        ([2, 4, 5, 8], [2, 4, 9, 8], [node("Where", "visible low p", "s")],  # true hides
         dict(visible=RANDOM.random((5, 9)) < 0.3, low=np.float32(-np.inf)), "scale=1"),
        ([2, 4, 5, 8], [2, 1, 9, 8], [node("Mul", "p c", "s")], dict(c=np.float32(0.5)), "scale=0.5"),
        ([2, 4, 5, 8], [2, 4, 9, 8], [node("Where", "seen p low", "s")],
         dict(seen=np.tri(5, 9, 4, dtype=bool), low=np.float32(-np.inf)), "causal align=bottom-right scale=1"),
        ([8, 5, 8], [8, 9, 8], [node("Add", "p m", "s")], dict(m=normal(8, 5, 9)), "scale=1"),
        ([2, 2, 3, 5, 8], [2, 2, 1, 9, 8], [node("Mul", "p c", "s")], dict(c=np.float32(0.25)), "scale=0.25"),
        ([5, 8], [9, 8], [node("Add", "m p", "s")], dict(m=normal(5, 9)), "scale=1"),
    ],
)
def test_attention_that_is_spelled_out(tmp_path, q, k, between, more, options):
    given = dict(q=normal(*q), k=normal(*k), v=normal(*k[:-1], 6), **more)
    constants = {name: given.pop(name) for name in ("low", "c", "seen") if name in given}
    axes = [*range(len(k) - 2), len(k) - 1, len(k) - 2]
    nodes = [node("Transpose", "k", "kt", perm=axes), node("MatMul", "q kt", "p"), *between,
             node("Softmax", "s", "w", axis=-1), node("MatMul", "w v", "o")]  # fmt: skip
    model = saved(tmp_path, nodes, given, constants)
    code, text, error = imported("model.onnx", "--run", "data.npz", "--out", "x", folder=tmp_path)
    file = "x/000_Softmax_w.safetensors"
    assert (code, text) == (0, f"{file}: Softmax_w: {options}\n"), error
    result = ReferenceEvaluator(model).run(None, given)[0]

    def attention(q, k, v, *, scale=None, causal=False, align=None, mask=None, bias=None):
        return result.reshape(q.shape[:3] + v.shape[3:]).astype(q.dtype)

    results = attest.check(attention, str(tmp_path / file), once=True)
    assert results[0].status == "pass", str(results)


@pytest.mark.parametrize(
    "between",
    [[node("Add", "p m", "a"), node("Mul", "a c", "s")],
     [node("Where", "visible p c", "a"), node("Tanh", "a", "s")]],
)  # fmt: skip
def test_masks_that_are_changed_with_the_scores_are_left_out(tmp_path, between):
    given = dict(q=normal(1, 2, 5, 8), k=normal(1, 2, 8, 5), v=normal(1, 2, 5, 8), m=normal(5, 5),
                 visible=RANDOM.random((5, 5)) < 0.5)  # fmt: skip
    nodes = [node("MatMul", "q k", "p"), *between, node("Softmax", "s", "w", axis=-1), node("MatMul", "w v", "o")]
    saved(tmp_path, nodes, given, {"c": np.float32(0.5)})
    code, _, error = imported("model.onnx", "--run", "data", "--out", "x", folder=tmp_path)
    assert code == 2 and error.endswith("left out: Softmax Softmax_w: its mask is scaled or capped with the scores\n"), error


def test_a_budget_leaves_layers_out(tmp_path):
    two_layers(tmp_path)
    one_layer = 4 * (2 * 6 * 32 + 2 * 2 * 6 * 16) / 2**30
    code, text, error = imported(
        "model.onnx", "--run", "data", "--out", "x", "--limit", str(one_layer), folder=tmp_path
    )
    assert (code, error) == (0, "") and len([*(tmp_path / "x").iterdir()]) == 1
    assert "left out: Softmax Softmax_w: its tensors would make more than" in text, text


def test_operators_that_are_not_captured_are_told(tmp_path):
    given = dict(q=normal(2, 5, 8))
    one = helper.make_node("MultiHeadAttention", ["q", "q", "q"], ["o"], name="one", domain="com.microsoft", num_heads=2)
    saved(tmp_path, [one], given)
    code, _, error = imported("model.onnx", "--run", "data", "--out", "x", folder=tmp_path)
    assert (code, error) == (2, "attest: model.onnx: has no attention that is captured; "
                             "left out: MultiHeadAttention one: inputs of this operator are not captured\n")  # fmt: skip
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["--run", "data"], "--run: name the folder for the tensor files with --out"),
        (["--run", "none", "--out", "x"], "none: No such file or directory; --run wants a folder with input_0.pb, ... or an .npz"),
        (["--run", "empty", "--out", "x"],
         "empty/input_0.pb: No such file or directory; --run wants a folder with input_0.pb, ... or an .npz"),
        (["--run", "other.npz", "--out", "x"], "other.npz: has no array q; the model's inputs are q, k, v"),
        (["--run", "small.npz", "--out", "x"], "--run: k has shape 2,2,9,4; the model wants 2,2,9,8"),
        (["--run", "model.onnx", "--out", "x"], "model.onnx: can't be read: "),
        (["--run", "data", "--out", "x", "--size", "b=2"], "--size: with --run the data have their sizes and types"),
        (["--run", "data", "--out", "model.onnx"], "model.onnx/000_one.safetensors: "),
    ],
)
def test_requests_that_cannot_be_carried_out(tmp_path, words, complaint):
    given = dict(q=normal(2, 4, 5, 8), k=normal(2, 2, 9, 8), v=normal(2, 2, 9, 6))
    fused(tmp_path, ["q", "k", "v"], given)
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "other.npz", x=normal(2))
    np.savez(tmp_path / "small.npz", **{**given, "k": normal(2, 2, 9, 4)})
    code, _, error = imported("model.onnx", *words, folder=tmp_path)
    assert code == 2 and error.startswith(f"attest: {complaint}") and error.count("\n") == 1, error
