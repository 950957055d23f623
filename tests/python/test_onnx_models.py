"""`python -m attest onnx`: models of a bundle's cases, judged as `attest verify` judges any answer to the bundle."""

import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from attest._onnx_models import rounded  # noqa: E402
from attest._tensor_file import Tensor, read_tensors, tensor_of, write_tensors  # noqa: E402

LINES = [
    "heads=2 seq=5x7 dim=4",
    "batch=2 heads=4/2 seq=6 dim=4 causal",
    "heads=4/2 seq=5x9 dim=8/6 scale=0.3 softcap=2",
    "heads=2 seq=5x7 dim=4 causal align=bottom-right",
    "batch=2 heads=2 seq=5x7 dim=4 mask=bool:B1QK:random(0.7)",
    "heads=2 seq=5x7 dim=4 mask=bool:11Q1:random(0.5)",
    "heads=2 seq=5x7 dim=4 causal align=top-left mask=add:1HQK:normal",
    "heads=2 seq=3x9 dim=4/6 causal past=6 out=o,present",
    "batch=2 heads=2 seq=1x9 dim=4 past=8",
    "batch=2 heads=2 seq=3x9 dim=4 causal align=bottom-right lengths=9,4",
    "heads=2 seq=7 dim=4 causal window=2:0",
    "heads=2 seq=7 dim=4 segments=2,5 alibi",
    "batch=2 heads=2 seq=8 dim=4 causal blocks=2x4:random(0.5)",
    "batch=2 heads=4/2 seq=6 dim=4 layout=bld causal",
    "heads=2 seq=5x6 dim=4 out=o,weights layout=blhd",
    "heads=2 seq=5x6 dim=4 out=o,biased softcap=3 mask=add:11QK:neginf(0.2)",
    "heads=2 seq=5x6 dim=4 out=weights",
    "heads=2 seq=3x9 dim=4 causal past=6 out=o,capped softcap=3",
    "dtype=f64 heads=2 seq=5x6 dim=4 causal align=top-left",
    "dtype=f16 heads=2 seq=5x7 dim=4",
    "dtype=f16 heads=4/2 seq=6 dim=4 causal softcap=3 mask=add:11QK:normal",
    "dtype=bf16 heads=4/2 seq=6 dim=4 causal",
]
LEFT_OUT = {
    "heads=2 seq=5 dim=4 out=o,lse": "out=lse: Attention has no such output",
    "heads=2 seq=5 dim=4 sinks": "sinks: Attention has no input for it",
    "heads=2 seq=5 dim=4 scale=-1": "scale: the operator multiplies q and k by its square root, so that there is no negative one",
    "heads=2 seq=3x6 dim=4 causal align=top-left poison=hidden:kv":
        "k has NaN or infinity: from a hidden key they reach the operator's result",
    "heads=2 seq=5 dim=4 out=o,weights,raw": "out=weights,raw: the operator has one output for the scores; export each alone",
    "batch=2 heads=2 seq=5 dim=4 lengths=5,3 layout=thd": "layout=thd: Attention has no packed sequences",
}  # fmt: skip
#: Beside what the evaluator states (onnx/reference/ops/op_attention.py), all options: it is asked for bounds alone.
EVALUATOR = '''
import attest


class Evaluator(attest.Backend):
    name = "evaluator"

    def attention(self, q, k, v, *, scale=None, causal=False, align=None, window=None, key_lengths=None,
                  query_lengths=None, segments=None, mask=None, bias=None, blocks=None, block_size=None, softcap=None,
                  alibi_slopes=None, sinks=None, past_k=None, past_v=None, query_starts=None, key_starts=None,
                  outputs=None):
        raise NotImplementedError

    def arithmetic(self, call):
        stated = {"scale": "split_root", "normalised_before_storage": True, "stored_weights": call.dtype}
        if call.dtype == "f32":
            stated.update(exp_ulps=3.0, tanh_ulps=4.0)
        if call.dtype in ("f16", "bf16"):
            stated.update(stored_scores=call.dtype, score_stores=3)
        return stated
'''


def said(*words, folder):
    done = subprocess.run([sys.executable, "-m", "attest", *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a bundle and its models, and what writing the models printed."""
    folder = tmp_path_factory.mktemp("onnx")
    (folder / "evaluator.py").write_text(EVALUATOR)
    code, text, error = said(
        "export", *LINES, *LEFT_OUT, "--python", "evaluator.py:Evaluator", "--out", "bundle", folder=folder
    )
    assert code == 0 and "left out" not in text, text + error
    code, text, error = said("onnx", "bundle", "--out", "models", folder=folder)
    assert (code, error) == (0, ""), text + error
    (folder / "printed").write_text(text)
    return folder


def cases(folder):
    return [json.loads(line) for line in (folder / "bundle/bundle.jsonl").read_text().splitlines()[1:]]


def arrays(data, side):
    files = sorted(data.glob(f"{side}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))
    protos = [onnx.TensorProto.FromString(path.read_bytes()) for path in files]
    return {proto.name: onnx.numpy_helper.to_array(proto) for proto in protos}


def answered(folder, answers, results):
    """Writes what `results` gives of each model's folder as an answer to the bundle."""
    (folder / answers).mkdir()
    for case in cases(folder):
        model = folder / "models" / case["file"].removesuffix(".safetensors")
        if model.is_dir():
            found = results(model)
            tensors = {one["name"]: tensor_of(found[one["name"]].reshape(one["shape"])) for one in case["results"]}
            write_tensors(str(folder / answers / case["file"]), {}, tensors)


def evaluated(folder, change=lambda model: None):
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    change(model)
    data = arrays(folder / "test_data_set_0", "input")
    return dict(zip([one.name for one in model.graph.output], ReferenceEvaluator(model).run(None, data)))


def verdicts(folder, answers):
    code, text, error = said(
        "verify", "bundle", answers, "--partial", "--json", f"{answers}.jsonl", folder=folder
    )
    told = [json.loads(line) for line in (folder / f"{answers}.jsonl").read_text().splitlines()]
    return code, {one["case"]: one["status"] for one in told if one["kind"] == "verdict"}, text + error


def test_each_case_has_a_model_or_a_reason(place):
    text = (place / "printed").read_text().splitlines()
    lines = [case["case"] for case in cases(place)]
    for number, (line, reason) in enumerate(zip(lines[len(LINES) :], LEFT_OUT.values()), len(LINES) + 1):
        assert f"left out: {number:05} {line}: {reason}" in text
        assert not (place / f"models/{number:05}").exists()
    assert text[len(LEFT_OUT)].startswith(f"{len(LINES)} cases, ") and text[len(LEFT_OUT)].endswith("opset 24: models")
    assert text[-1] == f"{len(LINES)} models written; {len(LEFT_OUT)} cases left out"
    told = [json.loads(line) for line in (place / "models/models.jsonl").read_text().splitlines()]
    assert [one["case"] for one in told[1:]] == lines
    assert [one["reason"] for one in told[1:] if "reason" in one] == [*LEFT_OUT.values()]


def test_the_evaluator_is_right_on_the_models(place):
    answered(place, "evaluated", evaluated)
    code, status, text = verdicts(place, "evaluated")
    assert code == 0, text
    assert [*status.values()] == ["pass"] * len(LINES) + ["refused"] * len(LEFT_OUT), text


def test_what_is_expected_is_right_in_each_type(place):
    answered(place, "expected", lambda folder: arrays(folder / "test_data_set_0", "output"))
    code, status, text = verdicts(place, "expected")
    assert (code, [*status.values()].count("pass")) == (0, len(LINES)), text


def test_inputs_are_those_of_the_bundle_bit_for_bit(place):
    for case, line in zip(cases(place), LINES):
        stored = read_tensors(str(place / "bundle" / case["file"]))
        given = arrays(place / "models" / case["file"].removesuffix(".safetensors") / "test_data_set_0", "input")
        for name in {"q", "k", "v", "past_k", "past_v"} & set(stored):
            assert given[name].tobytes() == stored[name].data, (line, name)
        if "mask" in stored and "causal" not in line and "11Q1" not in line:
            assert given["mask"].tobytes() == stored["mask"].data, line


def test_wrong_models_are_found(place):
    def other_scale(model):
        (node,) = model.graph.node
        kept = [one for one in node.attribute if one.name != "scale"]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute("scale", 0.9)])

    answered(place, "wrong", lambda folder: evaluated(folder, other_scale))
    code, status, text = verdicts(place, "wrong")
    assert (code, [*status.values()].count("fail")) == (1, len(LINES)), text


def test_an_older_operator_says_the_rest_with_a_mask(place):
    code, text, error = said("onnx", "bundle", "--out", "models23", "--opset", "23", folder=place)
    assert (code, error) == (0, "")
    line = next(n for n, one in enumerate(LINES, 1) if "lengths=" in one)
    for opset, names in (("", "qkv"), ("23", "qkv")):
        model = onnx.load(place / f"models{opset}/{line:05}/model.onnx")
        assert model.opset_import[0].version == int(opset or 24)
        more = {one.name for one in model.graph.input} - set(names)
        assert more == ({"mask"} if opset else {"key_lengths"})


def test_a_run_goes_on_where_it_was_ended(place):
    folder, kept = place / "models/00002", place / "models/00001/model.onnx"
    before = kept.stat().st_mtime_ns
    folder.rename(place / "models/00002.part")  # ended while it was written
    (place / "models/00002.part/model.onnx").unlink()
    code, text, _ = said("onnx", "bundle", "--out", "models", folder=place)
    assert code == 0 and text.splitlines()[-1].startswith(f"1 model written and {len(LINES) - 1} that were there"), text
    assert (folder / "model.onnx").exists() and kept.stat().st_mtime_ns == before
    assert not (place / "models/00002.part").exists()


@pytest.mark.parametrize(
    "words, complaint",
    [
        (("none", "--out", "x"), "none/bundle.jsonl: No such file or directory; name a folder of `attest export`"),
        (("bundle", "--out", "models", "--opset", "23"), "models: it holds models of another bundle; name another folder"),
        (("bundle", "--out", "bundle"), "bundle: the folder is not empty; name another one"),
        (("bundle", "--out", "x", "--limit", "0.000001"), "that is more than 1e-06 GiB; --limit 1 allows it"),
        (("bundle", "--out", "evaluator.py"), "evaluator.py: File exists; name another folder for --out"),
        (("bundle",), "onnx: the following arguments are required: --out; see `python -m attest onnx --help`"),
        (("broken", "--out", "x"), "broken/00001.safetensors: is no whole file of tensors"),
        (("listless", "--out", "x"), "listless/bundle.jsonl: is no whole list of `attest export` that this attest reads"),
        (("parted", "--out", "x"), "parted/00001.safetensors: is missing; the same `attest export` writes it"),
    ],
)
def test_requests_that_cannot_be_carried_out(place, words, complaint):
    line = (place / "bundle/bundle.jsonl").read_text().splitlines()
    header = json.loads(line[0])
    for name, count in (("broken", 1), ("listless", 2), ("parted", 1)):
        (place / name).mkdir(exist_ok=True)
        text = json.dumps({**header, "cases": count}) + "\n" + line[1] + "\n"
        (place / name / "bundle.jsonl").write_text(text)
    (place / "broken/00001.safetensors").write_bytes((place / "bundle/00001.safetensors").read_bytes()[:-8])
    code, _, error = said("onnx", *words, folder=place)
    assert (code, error) == (2, f"attest: {complaint}\n")
    assert not (place / "x").exists()


def test_a_bundle_of_which_nothing_can_be_said(place):
    code, text, error = said("export", "seq=4 dim=4 out=o,lse", "--backend", "example", "--out", "lse", folder=place)
    assert code == 0, error
    code, text, error = said("onnx", "lse", "--out", "none", folder=place)
    assert (code, error) == (3, "") and text.endswith("0 models; 1 case left out\n")
    assert not (place / "none").exists()


def test_rounding_to_bfloat16_is_to_nearest_even():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.concatenate([
        np.random.default_rng(0).standard_normal(1000),
        # Beside the middle of two neighbours, by less than float32 tells; ties; overflow.
        [1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8 - 2**-40, 0.0, -0.0, 2.0**-140],
        [3.3895313892515355e38, 3.4e38, 1e300, -1e300, np.inf, -np.inf],
    ])  # fmt: skip
    got = rounded(values, "BF16").array()
    with np.errstate(invalid="ignore"):
        every = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16).astype(np.float64)
    every = np.unique(every[np.isfinite(every)])
    for value, one in zip(values, got.astype(np.float64)):
        if not np.isfinite(one):
            assert abs(value) >= 3.3961e38 and np.sign(one) == np.sign(value)
            continue
        near = every[max(0, np.searchsorted(every, value) - 1) :][:3]
        assert abs(Fraction(one) - Fraction(value)) == min(abs(Fraction(x) - Fraction(value)) for x in near)
    assert [float(x) for x in got[1002:1004]] == [1.0, 1 + 2 * 2**-7]  # ties go to even
    assert np.isnan(rounded(np.array([np.nan]), "BF16").array().astype(np.float32)).all()


def test_tensor_files(tmp_path):
    path = str(tmp_path / "one.safetensors")
    tensors = {"a": tensor_of(np.arange(6.0).reshape(2, 3)), "b": tensor_of(np.array([True])), "c": Tensor("F32", (0,), b"")}
    write_tensors(path, {"about": "three"}, tensors)
    assert read_tensors(path) == tensors
    content = (tmp_path / "one.safetensors").read_bytes()
    for wrong in (content[:-1], content[:20], b"", content.replace(b'"shape": [2, 3]', b'"shape": [2, 4]')):
        (tmp_path / "wrong.safetensors").write_bytes(wrong)
        with pytest.raises(ValueError, match="is no whole file of tensors"):
            read_tensors(str(tmp_path / "wrong.safetensors"))
