"""`python -m attest import`: suites from configs of public models, and from models in ONNX."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import attest
from attest._model_lines import Sizes, suite_of_config

MODELS = Path(__file__).parent / "models"


def imported(*words, folder=None):
    done = subprocess.run([sys.executable, "-m", "attest", "import", *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def lines_of(text):
    return [line.split("#")[0].strip() for line in text.splitlines() if line.split("#")[0].strip()]


EXPECTED = {
    "llama_3_1_8b": [
        "dtype=bf16 heads=32/8 seq=1x4096 dim=128 causal align=bottom-right",
        "dtype=bf16 heads=32/8 seq=512x4096 dim=128 causal align=bottom-right",
    ],
    "gemma_2_27b": [
        "dtype=bf16 heads=32/16 seq=1x4096 dim=128 scale=0.0833333333 causal align=bottom-right window=4095:0 softcap=50",
        "dtype=bf16 heads=32/16 seq=1x4096 dim=128 scale=0.0833333333 causal align=bottom-right softcap=50",
        "dtype=bf16 heads=32/16 seq=512x4096 dim=128 scale=0.0833333333 causal align=bottom-right window=4095:0 softcap=50",
        "dtype=bf16 heads=32/16 seq=512x4096 dim=128 scale=0.0833333333 causal align=bottom-right softcap=50",
    ],
    "gpt_oss_20b": [
        "dtype=bf16 heads=64/8 seq=1x4096 dim=64 causal align=bottom-right window=127:0 sinks",
        "dtype=bf16 heads=64/8 seq=1x4096 dim=64 causal align=bottom-right sinks",
        "dtype=bf16 heads=64/8 seq=512x4096 dim=64 causal align=bottom-right window=127:0 sinks",
        "dtype=bf16 heads=64/8 seq=512x4096 dim=64 causal align=bottom-right sinks",
    ],
    "deepseek_v3": [
        "dtype=bf16 heads=128/1 seq=1x4096 dim=576/512 scale=0.135233779 causal align=bottom-right latent",
        "dtype=bf16 heads=128 seq=512x4096 dim=192/128 scale=0.135233779 causal align=bottom-right",
    ],
    "qwen3_next_80b": [
        "op=gated_delta dtype=bf16 heads=32 seq=1 dim=128 decay=head state qk_heads=16 l2norm=1e-06 out=o,present",
        "dtype=bf16 heads=16/2 seq=1x4096 dim=256 causal align=bottom-right",
        "op=gated_delta dtype=bf16 heads=32 seq=512 dim=128 decay=head state qk_heads=16 l2norm=1e-06 out=o,present",
        "dtype=bf16 heads=16/2 seq=512x4096 dim=256 causal align=bottom-right",
    ],
}


@pytest.mark.parametrize("model", EXPECTED)
def test_public_models(model, tmp_path):
    code, text, said = imported(str(MODELS / f"{model}.json"), "--queries", "1,512", "--keys", "4096",
                                "--out", str(tmp_path / "model.cases"))  # fmt: skip
    assert (code, text, said) == (0, "", "")
    text = (tmp_path / "model.cases").read_text()
    assert sorted(lines_of(text)) == sorted(attest.cases(EXPECTED[model]))
    assert attest.cases(str(tmp_path / "model.cases")) == lines_of(text), "lines are canonical, and the file is a suite"
    assert all("layers: " in line for line in text.splitlines() if not line.startswith("#"))


def test_a_suite_of_a_model_runs(tmp_path):
    code, _, said = imported(str(MODELS / "gpt_oss_20b.json"), "--batch", "2", "--queries", "1,9", "--keys", "9,200",
                             "--out", "model.cases", folder=tmp_path)  # fmt: skip
    assert code == 0, said
    results = attest.check("example", str(tmp_path / "model.cases"))
    assert results.ok and len(results) == 8, str(results)


def config(tmp_path, **values):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"num_attention_heads": 8, "hidden_size": 512, "num_hidden_layers": 12, **values}))
    return str(path)


@pytest.mark.parametrize(
    "values, sizes, lines",
    [
        (dict(model_type="mistral", num_key_value_heads=2, sliding_window=16), {},
         ["heads=8/2 seq=32 dim=64 causal window=15:0"]),
        (dict(model_type="mistral", sliding_window=None, torch_dtype="float16"), {}, ["dtype=f16 heads=8 seq=32 dim=64 causal"]),
        (dict(model_type="qwen2", sliding_window=16, use_sliding_window=False), {}, ["heads=8 seq=32 dim=64 causal"]),
        (dict(model_type="qwen2", sliding_window=16, use_sliding_window=True, max_window_layers=9), {},
         ["heads=8 seq=32 dim=64 causal", "heads=8 seq=32 dim=64 causal window=15:0"]),
        (dict(model_type="gemma3_text", sliding_window=16, sliding_window_pattern=6, head_dim=64, query_pre_attn_scalar=64), {},
         ["heads=8 seq=32 dim=64 causal window=15:0", "heads=8 seq=32 dim=64 causal"]),
        (dict(model_type="gemma3", text_config=dict(model_type="gemma3_text", num_attention_heads=4, head_dim=32)), {},
         ["heads=4 seq=32 dim=32 causal"]),
        (dict(model_type="falcon", multi_query=True, alibi=True), {}, ["heads=8/1 seq=32 dim=64 causal alibi"]),
        (dict(model_type="bert"), {}, ["heads=8 seq=32 dim=64"]),
        (dict(model_type="modernbert", local_attention=16, global_attn_every_n_layers=3), {},
         ["heads=8 seq=32 dim=64", "heads=8 seq=32 dim=64 window=8:8"]),
        (dict(model_type="llama4_text", attention_chunk_size=16), {},
         ["heads=8 seq=32 dim=64 mask=bool:11QK:chunks(16)", "heads=8 seq=32 dim=64 causal"]),
        (dict(model_type="granite", attention_multiplier=0.25), dict(added="layout=blhd"),
         ["heads=8 seq=32 dim=64 scale=0.25 causal layout=blhd"]),
        (dict(model_type="qwen3", rope_theta=1e6, rms_norm_eps=1e-5), dict(rope=True, queries=(2,)),
         ["heads=8 seq=2x32 dim=64 causal past=30 rope=halves rope.base=1000000 rope.cache=rotated norm=1e-05"]),
        (dict(model_type="gptj", rotary_dim=16), dict(rope=True), ["heads=8 seq=32 dim=64 causal rope=interleaved:16"]),
        (dict(model_type="llama"), dict(dtype="bf16", batches=(3,)), ["dtype=bf16 batch=3 heads=8 seq=32 dim=64 causal"]),
    ],
)  # fmt: skip
def test_choices(tmp_path, values, sizes, lines):
    suite = suite_of_config(config(tmp_path, **values), Sizes(**{"queries": (32,), "keys": (32,), **sizes}))
    assert sorted(suite.lines) == sorted(attest.cases(lines)), str(suite)


def test_what_is_not_read_is_said(tmp_path):
    suite = suite_of_config(config(tmp_path, model_type="x", index_topk=2048, attn_logit_multiplier=2.0), Sizes())
    assert "#   not read, may matter: index_topk=2048\n" in str(suite)
    assert "#   not read, may matter: attn_logit_multiplier=2.0\n" in str(suite)
    layers = ["full_attention", "mamba"]
    suite = suite_of_config(config(tmp_path, model_type="x", layer_types=layers), Sizes())
    assert "left out: 1 layers of type mamba" in str(suite)


@pytest.mark.parametrize(
    "words, part",
    [
        (["nowhere.json"], "nowhere.json: No such file"),
        (["empty.json"], "num_attention_heads is missing"),
        (["list.json"], "holds no object"),
        (["text.json"], "is no JSON"),
        (["t5.json"], "has an encoder and a decoder"),
        (["wide.json"], "num_attention_heads is 0"),
        (["good.json", "--queries", "1,x"], '"x" is no number'),
        (["good.json", "--queries", "9", "--keys", "4"], "no more queries than keys"),
        (["good.json", "--dtype", "f31"], "--dtype f31"),
        (["good.json", "--size", "batch=1"], "--size: is for ONNX files"),
        (["good.json", "--add", "colour=red"], "unknown key"),
        (["good.json", "--out", "nowhere/x.cases"], "nowhere/x.cases"),
        (["good.json", "--colour"], "--colour"),
        ([], "FILE"),
        (["model.onnx", "--keys", "4"], "--keys: an ONNX file has its own"),
    ],
)
def test_bad_requests_are_one_line_with_exit_code_2(tmp_path, words, part):
    texts = {"empty": "{}", "list": "[]", "text": "{", "t5": '{"is_encoder_decoder": true, "num_attention_heads": 8}',
             "wide": '{"num_attention_heads": 0}', "good": '{"num_attention_heads": 8, "head_dim": 64}'}  # fmt: skip
    for name, text in texts.items():
        (tmp_path / f"{name}.json").write_text(text)
    code, text, said = imported(*words, folder=tmp_path)
    assert code == 2 and text == "" and said.count("\n") == 1 and part in said, said
    assert not list(tmp_path.glob("*.part*"))


def test_without_the_package_onnx_there_is_one_line(tmp_path):
    program = "import sys; sys.modules['onnx'] = None; from attest import _import; sys.exit(_import.main(['x.onnx']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "pip install onnx" in done.stderr, done.stderr
