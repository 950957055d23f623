"""Models in ONNX: a line must describe what its node computes, as the evaluator of onnx or onnxruntime computes it."""

import subprocess
import sys
import zipfile

import numpy as np
import pytest

import attest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from attest._onnx_lines import suite_of_onnx  # noqa: E402


def saved(path, nodes, inputs, outputs=("o",), constants=(), opset=23):
    def of(name, shape):
        kind = TensorProto.BOOL if name.startswith("visible") else TensorProto.FLOAT
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        nodes, "model", [of(*one) for one in inputs.items()], [of(name, None) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in dict(constants).items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    onnx.save(model, str(path))
    return model


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs.split(), output.split(), name=f"{kind}_{output.split()[0]}", **attributes)


F32 = np.float32
Q, K, V = [2, 4, 5, 8], [2, 4, 9, 8], [2, 4, 9, 6]


def spelled(*between, on_q=(), scores="s", weights="w"):
    """q and k, transposed, multiplied; what stands between; softmax; v."""
    return [
        *on_q, node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", ("q2" if on_q else "q") + " kt", "p"),
        *between, node("Softmax", scores, "w", axis=-1), node("MatMul", f"{weights} v", "o"),
    ]  # fmt: skip


SHAPE = "batch=2 heads=4 seq=5x9 dim=8/6"
SPELLED = {
    "scaled": (spelled(node("Mul", "p c", "s")), {"c": F32(0.5)}, f"{SHAPE} scale=0.5"),
    "divided": (spelled(node("Div", "p c", "s")), {"c": F32(8**0.5)}, SHAPE),
    "scaled twice": (spelled(node("Mul", "p c", "s"), on_q=[node("Div", "q d", "q2")]), {"c": F32(0.5), "d": F32(4)},
                     f"{SHAPE} scale=0.125"),
    "capped": (spelled(node("Mul", "p c", "a"), node("Div", "a d", "b"), node("Tanh", "b", "t"), node("Mul", "t d", "s")),
               {"c": F32(0.5), "d": F32(3)}, f"{SHAPE} scale=0.5 softcap=3"),
    "added": (spelled(node("Mul", "p c", "a"), node("Add", "m a", "s")), {"c": F32(1)}, f"{SHAPE} scale=1 mask=add:B1QK:normal"),
    "hidden": (spelled(node("Where", "visible p low", "s")), {"low": F32(-1e9)}, f"{SHAPE} scale=1 mask=bool:B1QK:random(0.9)"),
    "causal": (spelled(node("Where", "seen p low", "s")), {"low": F32(-np.inf), "seen": np.tri(5, 9, 4, dtype=bool)},
               f"{SHAPE} scale=1 causal align=bottom-right"),
    "causal by numbers": (spelled(node("Add", "p low", "s")),
                          {"low": np.where(np.tri(5, 9, dtype=bool), 0, -np.inf).astype(F32)},
                          f"{SHAPE} scale=1 causal align=top-left"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLED)
def test_subgraphs(tmp_path, name):
    nodes, constants, line = SPELLED[name]
    used = " ".join(" ".join(one.input) for one in nodes).split()
    inputs = {key: shape for key, shape in dict(q=Q, k=K, v=V, m=[2, 1, 5, 9], visible=[2, 1, 5, 9]).items() if key in used}
    model = saved(tmp_path / "model.onnx", nodes, inputs, constants=constants)
    suite = suite_of_onnx(str(tmp_path / "model.onnx"), {})
    assert suite.lines == attest.cases(line), str(suite)

    evaluator = ReferenceEvaluator(model)

    def computed(q, k, v, *, scale=None, softcap=None, mask=None, bias=None, causal=False, align=None):
        said = dict(q=q, k=k, v=v, visible=mask, m=bias)
        return evaluator.run(None, {key: said[key] for key in inputs})[0].astype(q.dtype)

    results = attest.check(computed, suite.lines[0].replace("random(0.9)", "random(0.9) seed=3"), once=True)
    assert results[0].status == "pass", str(results)


def test_attention_of_onnx(tmp_path):
    for extra, given, line in [
        (dict(is_causal=1), {}, "heads=4 seq=5x9 dim=8/6 causal align=top-left"),
        (dict(scale=0.25, softcap=2.0), {}, "heads=4 seq=5x9 dim=8/6 scale=0.25 softcap=2"),
        ({}, dict(m=[5, 9]), "heads=4 seq=5x9 dim=8/6 mask=add:11QK:normal"),
        ({}, dict(visible=[2, 1, 1, 9]), "heads=4 seq=5x9 dim=8/6 mask=bool:B11K:random(0.9)"),
    ]:
        attention = node("Attention", " ".join(["q", "k", "v", *given]), "o", **extra)
        model = saved(tmp_path / "model.onnx", [attention], dict(q=Q, k=K, v=V, **given))
        suite = suite_of_onnx(str(tmp_path / "model.onnx"), {})
        assert suite.lines == attest.cases("batch=2 " + line), str(suite)
        evaluator = ReferenceEvaluator(model)

        def computed(q, k, v, *, scale=None, softcap=None, mask=None, bias=None, causal=False, align=None):
            said = dict(q=q, k=k, v=v, visible=mask, m=None if bias is None else bias[0, 0])
            return evaluator.run(None, {key: said[key] for key in ("q", "k", "v", *given)})[0].astype(q.dtype)

        results = attest.check(computed, suite.lines, once=True)
        assert results[0].status == "pass", str(results)


def test_attention_of_three_axes_with_a_past(tmp_path):
    inputs = dict(q=[2, 3, 32], k=[2, 3, 16], v=[2, 3, 16], pk=[2, 2, 7, 8], pv=[2, 2, 7, 8])
    attention = helper.make_node("Attention", ["q", "k", "v", "", "pk", "pv"], ["o", "nk", "nv"], name="a",
                                 q_num_heads=4, kv_num_heads=2, is_causal=1)  # fmt: skip
    saved(tmp_path / "model.onnx", [attention], inputs)
    suite = suite_of_onnx(str(tmp_path / "model.onnx"), {}, added="out=o,present")
    expected = "batch=2 heads=4/2 seq=3x10 dim=8 causal past=7 layout=bld out=o,present"
    assert suite.lines == attest.cases(expected), str(suite)


def fused(tmp_path, kind, names, shapes, **attributes):
    one = helper.make_node(kind, names.replace("-", "").split(" "), ["o"], name="a", domain="com.microsoft", **attributes)
    saved(tmp_path / "model.onnx", [one], shapes)
    return suite_of_onnx(str(tmp_path / "model.onnx"), {})


@pytest.mark.parametrize(
    "kind, names, shapes, attributes, line",
    [
        ("MultiHeadAttention", "q k v", dict(q=[2, 5, 32], k=[2, 9, 32], v=[2, 9, 64]), dict(num_heads=4),
         "batch=2 heads=4 seq=5x9 dim=8/16 layout=bld"),
        ("MultiHeadAttention", "q", dict(q=[2, 5, 4, 3, 8]), dict(num_heads=4, unidirectional=1),
         "batch=2 heads=4 seq=5 dim=8 causal layout=qkv"),
        ("MultiHeadAttention", "q k v - pad", dict(q=[2, 5, 32], k=[2, 9, 32], v=[2, 9, 32], pad=[2, 9]),
         dict(num_heads=4, scale=0.5), "batch=2 heads=4 seq=5x9 dim=8 scale=0.5 mask=bool:B11K:random(0.9) layout=bld"),
        ("MultiHeadAttention", "q k v - - bias", dict(q=[2, 5, 32], k=[2, 4, 9, 8], v=[2, 4, 9, 8], bias=[1, 4, 5, 9]),
         dict(num_heads=4), "batch=2 heads=4 seq=5x9 dim=8 mask=add:1HQK:normal layout=bld k.layout=bhld v.layout=bhld"),
        ("GroupQueryAttention", "q k v pk pv len", dict(q=[2, 1, 64], k=[2, 1, 16], v=[2, 1, 16], pk=[2, 2, 7, 8],
                                                        pv=[2, 2, 7, 8], len=[2]),
         dict(num_heads=8, kv_num_heads=2, local_window_size=4, softcap=3.0, do_rotary=1),
         "batch=2 heads=8/2 seq=1x8 dim=8 causal window=3:0 past=7 softcap=3 rope=halves rope.cache=rotated "
         "layout=bld"),
        ("GroupQueryAttention", "q - - - - len", dict(q=[1, 6, 48], len=[1]),
         dict(num_heads=4, kv_num_heads=1, smooth_softmax=1), "heads=4/1 seq=6 dim=8 causal sinks=0,0,0,0 layout=bld"),
        ("Attention", "x w", dict(x=[2, 5, 20], w=[20, 96]), dict(num_heads=4, unidirectional=1),
         "batch=2 heads=4 seq=5 dim=8 causal"),
    ],
)  # fmt: skip
def test_operators_of_onnxruntime(tmp_path, kind, names, shapes, attributes, line):
    suite = fused(tmp_path, kind, names, shapes, **attributes)
    assert suite.lines == attest.cases(line), str(suite)


def test_sizes_that_a_file_leaves_open(tmp_path):
    shapes = dict(q=["n", 4, "rows", 8], k=["n", 4, None, 8], v=["n", 4, None, 6])
    saved(tmp_path / "model.onnx", spelled(scores="p"), shapes)
    path = str(tmp_path / "model.onnx")
    with pytest.raises(attest.UserError, match="--size n=N --size rows=N --size k.2=N --size v.2=N"):
        suite_of_onnx(path, {})
    with pytest.raises(attest.UserError, match="--size m: no input"):
        suite_of_onnx(path, {"m": 3})
    suite = suite_of_onnx(path, {"n": 2, "rows": 5, "k.2": 9, "v.2": 9}, dtype="f16")
    assert suite.lines == ["dtype=f16 batch=2 heads=4 seq=5x9 dim=8/6 scale=1"]


def test_what_is_no_attention(tmp_path):
    path = str(tmp_path / "model.onnx")
    saved(path, [node("Softmax", "q", "o")], dict(q=Q))
    with pytest.raises(attest.UserError, match="has no attention that is read"):
        suite_of_onnx(path, {})
    saved(path, [node("Softmax", "q", "w", axis=1), node("MatMul", "w v", "o")], dict(q=[4, 4], v=[4, 6]))
    with pytest.raises(attest.UserError, match="left out: Softmax .*no product"):
        suite_of_onnx(path, {})
    (tmp_path / "model.onnx").write_text("not a model")
    with pytest.raises(attest.UserError, match="is no model in ONNX"):
        suite_of_onnx(path, {})


REAL = {  # packages that ship a model, the model, sizes that it leaves open, and its attention
    "rapidocr-onnxruntime==1.4.4": (
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        {"p2o.DynamicDimension.0": 1, "x.2": 48, "p2o.DynamicDimension.1": 320},
        ["heads=8 seq=40 dim=15"],
    ),
    "pipecat-ai==1.14.0": (
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx", {"s6": 1}, ["heads=6 seq=400 dim=64"],
    ),
    "arabic-name-romanizer==0.2.0": (
        "arabic_name_romanizer/resources/decoder.onnx", {"batch": 2, "tgt_len": 5, "src_len": 12},
        ["batch=2 seq=1x12 dim=256 scale=1 mask=bool:B11K:random(0.9)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("package", REAL)
def test_models_of_packages(tmp_path, package):
    name, sizes, lines = REAL[package]
    words = ["download", "-q", "--no-deps", "--only-binary=:all:", "--dest", str(tmp_path), package]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"{package} can't be had here: {done.stderr.strip().splitlines()[-1]}")
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extract(name, tmp_path)
    suite = suite_of_onnx(str(tmp_path / name), sizes)
    assert suite.lines == lines, str(suite)
    results = attest.check("example", suite.lines, once=True)
    assert results.ok, str(results)
