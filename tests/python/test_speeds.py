"""The page of speeds against other libraries, and what its adapters share, without any of these libraries."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attest

PEERS = Path(os.environ.get("ATTEST_PEERS", str(Path(__file__).parent / "../../backends/peers")))
sys.path.insert(0, str(PEERS))

import speeds  # noqa: E402
import speeds_report  # noqa: E402
from attest_peers.readied import Readied, key_of  # noqa: E402
from attest_peers.request import Request  # noqa: E402

CASES = ("seq=4 dim=4", "seq=8 dim=4")


def sample(backend, case, time, disturbed=0, threads=2.0):
    return {
        "name": f"{backend}/{case}/iterations:1", "run_type": "iteration", "label": case, "real_time": time,
        "time_unit": "ms", "disturbed": disturbed, "threads_used": threads, "median_ulps": 0.25, "largest_ulps": time,
    }  # fmt: skip


def write(folder, samples, no_speed=(), threads=2, weights=(3, 1)):
    context = {
        "threads": str(threads), "repetitions": "4", "cpu": "a processor", "build": "a build", "date": "2026-11-24",
        "commit": "0123456789", "command": "attest bench", "roof_fma_gflops_f32": "100", "roof_read_gbps": "10",
        "backend_simd": "ours",
    }  # fmt: skip
    cases = [{"case": case, "weight": weight, "what": ""} for case, weight in zip(CASES, weights)]
    peers = ["torch_sdpa", "onnxruntime", "onnxruntime_gqa"]
    data = {
        "context": context, "benchmarks": samples, "no_speed": list(no_speed),
        "suite": {"name": "shapes", "natives": ["simd"], "peers": peers, "cases": cases},
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    with gzip.open(folder / f"shapes.{threads}.json.gz", "wt") as file:
        json.dump(data, file)


def row_of(page, begins):
    (found,) = (line for line in page.splitlines() if line.startswith(f"| {begins} |"))
    return [cell.strip() for cell in found.strip("|").split("|")]


def series(backend, case, middle):
    return [sample(backend, case, middle * factor) for factor in (0.99, 0.995, 1.005, 1.01)]


def test_the_page_says_what_the_samples_say(tmp_path):
    slow = series("torch_sdpa", CASES[0], 30) + series("onnxruntime", CASES[0], 40)
    first = series("simd", CASES[0], 10) + slow + series("onnxruntime_gqa", CASES[0], 20)
    second = series("simd", CASES[1], 16) + series("torch_sdpa", CASES[1], 8)
    refused = [
        {"case": CASES[1], "backend": "onnxruntime", "reason": "refused: no such size"},
        {"case": CASES[1], "backend": "onnxruntime_gqa", "cause": "refused", "reason": "refused: nor this"},
    ]
    write(tmp_path, first + second, refused)
    slower = [{**one, "real_time": 1.5 * one["real_time"]} for one in first]
    write(tmp_path, slower, threads=1)
    page = speeds_report.page(tmp_path)
    case, weight, simd, torch, ort, ratio, scaled = row_of(page, f"`{CASES[0]}`")
    assert (weight, simd, torch, ort) == ("3", "10.0", "30.0", "20.0 gqa")
    assert ratio.startswith("2.00 (1.9") and scaled == "1.50, 1.50"
    assert row_of(page, f"`{CASES[1]}`")[2:5] == ["16.0", "8.00", "refused"]
    before_errors = page.partition("Errors of the results")[0]
    mean, low, middle, worst, behind, surely = row_of(before_errors, "`simd` | 2")[2:]
    assert mean == f"{(2**3 * 0.5) ** 0.25:.2f}" and float(low) < float(mean)
    assert (middle, worst, behind, surely) == ("1.25", f"0.50: `{CASES[1]}`", "1", "1")
    assert "| `onnxruntime_gqa` | 1 | refused: nor this |" in page
    assert f"| `simd` | 2 | 0.25 | 15.8: `{CASES[1]}` |" in page


def test_a_wrong_result_is_no_refusal_and_what_is_disturbed_is_left_out(tmp_path):
    samples = series("simd", CASES[0], 10) + [sample("simd", CASES[0], 99, disturbed=1)]
    samples += [sample("torch_sdpa", CASES[0], 20, disturbed=1) for _ in range(4)]
    write(tmp_path, samples, [{"case": CASES[0], "backend": "onnxruntime", "cause": "wrong_result", "reason": "fail"}])
    row = row_of(speeds_report.page(tmp_path), f"`{CASES[0]}`")
    assert row[2:5] == ["10.0", "20.0?", "no speed"]


def test_the_interval_is_that_of_compare(tmp_path):
    rng = np.random.default_rng(3)
    for many in ((9, 9), (4, 7), (3, 3), (1, 2)):
        over, under = (list(10 * np.exp(rng.normal(0, 0.1, count))) for count in many)
        paths = []
        for name, times in (("under", under), ("over", over)):
            paths.append(str(tmp_path / f"{name}.json"))
            Path(paths[-1]).write_text(json.dumps({"benchmarks": [sample("simd", CASES[0], time) for time in times]}))
        told = tmp_path / "comparison.json"
        command = [sys.executable, "-m", "attest", "compare", *paths, "--confidence", "0.95", "--json", str(told)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert told.exists(), ended.stderr
        (line,) = json.loads(told.read_text())["cases"]
        ratio = speeds_report.ratio_of(over, under)
        wanted = [line[key] for key in ("ratio", "low", "high", "confidence")]
        assert [ratio.middle, ratio.low, ratio.high, ratio.covered] == pytest.approx(wanted, rel=1e-4)


def test_weights_stand_before_what_a_shape_is_for(tmp_path, monkeypatch):
    monkeypatch.setattr(speeds, "CASES", tmp_path)
    (tmp_path / "some.cases").write_text(
        "# a head\nseq=4 dim=4  # 3 dense, of 12 heads\n\nseq=8 dim=4  # BERT\nseq=1 dim=1\n"
    )
    assert speeds.lines_of("some") == [
        ("seq=4 dim=4", 3.0, "dense, of 12 heads"), ("seq=8 dim=4", 1.0, "BERT"), ("seq=1 dim=1", 1.0, "")
    ]  # fmt: skip


class Timed(Readied):
    """A library with one mask, in NumPy."""

    name = "timed"
    takes = Readied.takes | {"dtype=f32"}
    made = 0

    def readied(self, q, k, v, request, key):
        def mask_of():
            type(self).made += 1
            return request.visible()

        mask = self.keep(key, mask_of)

        def run():
            k_all, v_all = (np.repeat(t, q.shape[1] // k.shape[1], axis=1) for t in (k, v))
            scores = q @ k_all.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
            weights = np.exp(scores - scores.max(-1, keepdims=True)) * (1 if mask is None else mask)
            return (weights @ v_all / weights.sum(-1, keepdims=True)).astype(q.dtype)

        return run


def test_what_a_call_fixes_is_made_once_and_what_data_say_each_time():
    for line, fixed in (("heads=4/2 seq=64 dim=16 causal", True), ("seq=64 dim=16 mask=bool:11QK:random(0.5)", False)):
        Timed.made = 0
        (timed,) = attest.bench(Timed(), line, against=[], repetitions=2, min_seconds=0.01, threads=1)
        assert not timed["timed"].wrong, timed["timed"].wrong
        assert (Timed.made == 1) if fixed else (Timed.made > 10), Timed.made


def test_calls_that_differ_have_keys_that_differ():
    q = k = v = np.zeros((1, 2, 8, 4), np.float32)

    def key(**said):
        return key_of(q, k, v, Request(1, 2, 8, 8, **said))

    slopes = np.array([0.5, 0.25])
    keys = [key(), key(causal=True), key(causal=True, align="bottom-right"), key(window=(3, None)),
            key(key_lengths=[5]), key(alibi_slopes=slopes), key(alibi_slopes=2 * slopes), key(scale=2.0)]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert key(mask=np.ones((1, 2, 8, 8), bool)) is None
