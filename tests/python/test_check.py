"""What attest.check makes of a callable: right, refused, and wrong in each way that isn't a number."""

import json
import os
import re
import signal

import kernels
import numpy as np
import pytest

import attest

LINE = "heads=2 seq=5x7 dim=4"


def verdict(function, line=LINE, **stated):
    (found,) = attest.check(function, line, shrink=False, **stated)
    return found


def test_a_right_backend_passes_what_it_takes_of_smoke():
    results = attest.check(kernels.Exact(), "smoke")
    assert not results.failures, str(results)
    assert results.count("pass") >= 35, str(results)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_types_of_storage(dtype):
    if dtype == "bf16":
        pytest.importorskip("ml_dtypes")
    assert verdict(kernels.Exact(), f"{LINE} dtype={dtype} layout=blhd").passed


def test_what_a_callable_has_no_parameter_for_is_refused_and_not_ignored():
    def attention(q, k, v):
        return kernels.attention(q, k, v)

    for option in ("scale=2", "causal align=top-left", "window=1:1 align=top-left", "mask=bool:BHQK:random(0.5)",
                   "mask=add:BHQK:normal", "softcap=3", "alibi align=top-left", "sinks", "dropout=0.5", "lengths=4",
                   "prefix=2 causal align=top-left", "past=2", "paged=2", "out=o,lse", "segments=q:2,3/k:4,3",
                   "blocks=2x2:random(0.5)"):  # fmt: skip
        found = verdict(attention, f"seq=5x7 dim=4 {option}")
        assert found.status == "refused", (option, str(found))
        assert "parameter `" in found.reason, found.reason


def test_all_that_is_hidden_in_one_mask_where_other_keywords_can_not_say_it():
    given = []

    def attention(q, k, v, *, causal=False, visible=None, bias=None, scale=None):
        given.append((causal, visible is not None))
        return kernels.attention(q, k, v, causal=causal, mask=visible, bias=bias, scale=scale)

    for option, how in (("causal align=top-left", (True, False)), ("mask=add:BHQK:neginf(0.5)", (False, False)),
                        ("causal align=bottom-right", (False, True)), ("causal window=2:inf align=top-left", (False, True)),
                        ("prefix=2 causal align=top-left", (False, True)), ("lengths=q:3,5/k:4,7", (False, True)),
                        ("segments=q:2,3/k:4,3", (False, True)), ("mask=bool:1HQ1:random(0.5)", (False, True)),
                        ("blocks=2x2:random(0.5) mask=add:B11K:normal", (False, True))):  # fmt: skip
        given.clear()
        found = verdict(attention, f"batch=2 heads=2 seq=5x7 dim=4 {option}")
        assert found.passed, (option, str(found))
        assert how in given, option  # beside calls of other options, which runs are mixed with
    found = verdict(attention, "seq=5 dim=4 causal align=top-left lengths=3 layout=thd")
    assert found.status == "refused", str(found)


def test_a_callable_may_be_said_to_refuse():
    found = verdict(kernels.attention, "heads=4/2 seq=4 dim=4", refuses=["grouped heads"])
    assert (found.status, found.reason) == ("refused", "grouped heads: not supported")


def test_keywords_of_another_name():
    def attention(q, k, v, is_causal=False):
        return kernels.attention(q, k, v, causal=is_causal)

    assert verdict(attention, "seq=5 dim=4 causal", keywords={"causal": "is_causal"}).passed
    with pytest.raises(TypeError, match="is_cuasal"):
        attest.check(attention, LINE, keywords={"causal": "is_cuasal"})
    with pytest.raises(ValueError, match='kausal'):
        attest.check(attention, LINE, keywords={"kausal": "is_causal"})


def raises(q, k, v):
    raise ValueError("first line\nno tile for 4")


@pytest.mark.parametrize(
    "function, part",
    [
        (lambda q, k, v: kernels.attention(q, k, v)[..., :-1], "(1, 2, 5, 3)"),
        (lambda q, k, v: kernels.attention(q, k, v).astype("f8"), "float64"),
        (lambda q, k, v: q[:], "q"),
        (lambda q, k, v: None, "None"),
        (lambda q, k, v: "out", "str"),
        (raises, "no tile for 4"),
        (lambda q, k, v: q.__setitem__(0, 0), "read-only"),
    ],
)
def test_what_is_no_result_fails_with_a_reason(function, part):
    found = verdict(function)
    assert (found.status, found.cause) == ("fail", "threw")
    assert part in found.reason, found.reason
    assert found.case == LINE


def test_changed_inputs_fail():
    import ctypes

    def attention(q, k, v):
        out = kernels.attention(q, k, v)
        ctypes.memset(q.ctypes.data, 0, 4)  # past NumPy, which gives a view that is read only
        return out

    assert verdict(attention).reason.endswith("changed its inputs")


def test_an_exception_says_where(tmp_path):
    assert "(test_check.py, line " in verdict(raises).reason


def test_statements_are_checked():
    for arithmetic, part in [
        ({"lse.exp_ulp": 1}, "exp_ulps"),
        ({"of_lse.exp_ulps": 1}, "there is no"),
        ({"lse.accumulator": "f16"}, "accumulator must be f32 or f64"),
        ({"exp_ulps": -1}, "-1"),
        ({"exp_ulp": 1}, "exp_ulp"),
        ({"accumulator": "f31"}, "f31"),
        ({"base2": 1}, "base2"),
    ]:
        with pytest.raises(attest.UserError, match=part):
            verdict(kernels.attention, arithmetic=arithmetic)
    with pytest.raises(attest.UserError, match="diagonal"):
        attest.check(kernels.attention, LINE, conventions={"diagonal": "left"})


def test_bad_requests_are_one_line():
    for line in ("seq=4x dim=4", "smokes", "nowhere.cases", "seq=4 dim=4 colour=red"):
        with pytest.raises(attest.UserError):
            attest.check(kernels.attention, line)
    with pytest.raises(TypeError, match="no callable"):
        attest.check(3, LINE)
    with pytest.raises(TypeError, match="tile"):
        attest.check(lambda q, k, v, tile: q, LINE)


def test_a_process_of_its_own():
    results = attest.check(kernels.attention, [LINE, "seq=3 dim=2"], isolate=True, shrink=False)
    assert results.ok, str(results)
    with pytest.raises(TypeError, match="can't be imported"):
        attest.check(lambda q, k, v: q, LINE, isolate=True)


def ends_the_process(q, k, v):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_crash_is_a_verdict_with_isolation():
    found = verdict(ends_the_process, isolate=True)
    assert (found.status, found.cause) == ("crashed", "crashed"), str(found)


@pytest.fixture
def ctrl_c():
    """Python's own handler, where whoever runs the tests ignores the signal, as pytest-xdist does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_valid_results(tmp_path):
    runs = []

    def attention(q, k, v):
        runs.append(1)
        if len(runs) == 40:
            signal.raise_signal(signal.SIGINT)
        return kernels.attention(q, k, v)

    lines = [f"seq={n} dim=4" for n in range(3, 60)]
    path = tmp_path / "run.jsonl"
    with pytest.raises(KeyboardInterrupt) as caught:
        attest.check(attention, lines, json=str(path), shrink=False)
    written = [json.loads(line) for line in path.read_text().splitlines()]
    results = caught.value.args[0]
    assert written[-1]["kind"] == "summary" and written[-1]["interrupted"] is True
    told = [line for line in written if line["kind"] == "verdict"]
    assert 0 < len(told) < len(lines) and len(told) == len(results)
    assert {line["status"] for line in told} == {"pass"}
    assert attest.check(attention, lines[:2]).ok  # the next run knows nothing of it


def test_results_show_themselves():
    def attention(q, k, v):
        raise ValueError("<script>alert(1)</script>")

    results = attest.check(attention, [LINE, "seq=4 dim=4 causal"], shrink=False)
    assert results.summary() == "0 passed, 1 failed, 1 skipped"
    assert not results.ok
    html = results._repr_html_() + results[0]._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "attest.check(attention, 'heads=2 seq=5x7 dim=4')" in str(results)
    with pytest.raises(AssertionError, match="0 passed, 1 failed"):
        results.require_ok()


def test_conventions_are_counted_beside_passes():
    def nan_in_empty_rows(q, k, v, *, key_lengths=None):
        out = kernels.attention(q, k, v, key_lengths=key_lengths)
        out[np.array(key_lengths or [1] * len(q)) == 0] = np.nan
        return out

    lines = ["batch=2 seq=3x4 dim=4 lengths=0,3", "seq=4 dim=4"]
    results = attest.check(nan_in_empty_rows, lines, conventions={"empty_row": "nan"}, shrink=False)
    assert [v.status for v in results] == ["convention", "pass"] and results.count("convention") == 1, str(results)
    told = str(results)
    head, row = ([line.split() for line in told.splitlines() if line.startswith(start)]
                 for start in ("backend ", "nan_in_empty_rows"))  # fmt: skip
    assert head[-1][:6] == ["backend", "pass", "convention", "fail", "refused", "inconclusive"], told
    assert row[-1][1:6] == ["1", "1", "0", "0", "0"], told
    assert "1 pass, 1 convention, 0 fail" in results._repr_html_()
    assert str(attest.Results([v for v in results if v.status == "pass"])) == "1 passed, 0 failed, 0 skipped"


def test_printed_results_are_the_commands(tmp_path, monkeypatch):
    import subprocess
    import sys

    lines = ["heads=2 seq=5x7 dim=4", "seq=3 dim=2", "seq=4 dim=4 causal"]
    (tmp_path / "plain.py").write_text("import kernels\ndef attention(q, k, v): return kernels.attention(q, k, v)\n"
                                       "def wrong(q, k, v): return kernels.attention(q, k, v) * 2\n")  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))  # also for the processes that judge it
    import plain

    def without_times(text):
        text = re.sub(r"[0-9.]+ GiB of memory for all", "GiB of memory for all", text)  # of what is free at the time
        return [line.strip() for line in text.splitlines() if " verdicts in " not in line and "smaller" not in line]

    for name in ("attention", "wrong"):
        file = os.path.relpath(tmp_path / "plain.py")
        said = subprocess.run([sys.executable, "-m", "attest", "check", *lines, "--python", f"{file}:{name}"],
                              capture_output=True, text=True)  # fmt: skip
        results = attest.check(getattr(plain, name), lines)
        told = without_times(str(results))
        assert told == without_times(said.stdout.strip("\n")), (told, said.stdout)
        assert ("wrong: wrong" if name == "wrong" else "right: attention") in str(results)
        assert told[0].startswith("processes of their own: 60 s for a step"), told
    assert "processes of their own" not in str(attest.check(plain.attention, lines, isolate=False))


def test_the_smallest_case_of_a_cause_fails_by_it():
    def attention(q, k, v):
        if q.shape[-1] > 8:
            raise ValueError("no tile")
        return kernels.attention(q, k, v) * 2

    results = attest.check(attention, ["seq=5 dim=16", "seq=6 dim=4"])
    causes = {verdict.case: verdict.cause for verdict in results}
    assert len(set(causes.values())) == len(results.shrunk) == 2
    for one in results.shrunk:
        assert attest.check(attention, one.smallest, shrink=False)[0].cause == causes[one.case], one


def test_the_smallest_case_stands_in_a_notebook():
    results = attest.check(lambda q, k, v: kernels.attention(q, k, v) * 2, "batch=2 heads=2 seq=5x7 dim=4")
    shown = results._repr_html_()
    assert results.shrunk and f"<code>{results.shrunk[0].smallest}</code>" in shown, shown
    assert "wrong: lambda" in shown


def test_progress_is_told():
    told = []
    attest.check(kernels.attention, [LINE, "seq=4 dim=4"], progress=lambda v, done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_files_are_those_of_the_command(tmp_path):
    attest.check(kernels.attention, LINE, json=str(tmp_path / "a.jsonl"), junit=str(tmp_path / "a.xml"))
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["run", "verdict", "summary"]
    assert "<testsuite" in (tmp_path / "a.xml").read_text()


def test_dlpack_and_functions_of_other_libraries():
    def dlpack(q, k, v):
        return kernels.attention(*(np.from_dlpack(t) for t in (q, k, v)))

    assert verdict(dlpack, tensors="dlpack").passed
    assert verdict(kernels.attention, tensors=np.from_dlpack).passed
    with pytest.raises(attest.UserError, match="tensors"):
        verdict(kernels.attention, tensors="jax")


def test_says_what_would_have_to_be_stated():
    bf16 = pytest.importorskip("ml_dtypes").bfloat16

    def stores_weights(q, k, v):
        scores = q.astype(np.float32) @ k.astype(np.float32).swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = (weights / weights.sum(-1, keepdims=True)).astype(bf16).astype(np.float32)
        return (weights @ v.astype(np.float32)).astype(q.dtype)

    lines = ["dtype=bf16 seq=24x40 dim=16", "dtype=bf16 seq=64x200 dim=64"]
    results = attest.check(stores_weights, lines, refuses=["dtype=f64", "dtype=f32", "dtype=f16"], shrink=False)
    (told,) = results.right_if
    assert told.statement == "stored_weights=bf16, normalised_before_storage for calls in bf16"
    assert told.code == 'arithmetic={"stored_weights": "bf16", "normalised_before_storage": True}'
    assert str(told) in str(results)
    stated = {"stored_weights": "bf16", "normalised_before_storage": True}
    assert attest.check(stores_weights, lines, refuses=["dtype=f64", "dtype=f32", "dtype=f16"], arithmetic=stated).ok


def test_names_the_mistake_that_gives_the_same():
    def without_scale(q, k, v):
        scores = q @ k.swapaxes(-1, -2)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights @ v / weights.sum(-1, keepdims=True)

    (verdict,) = attest.check(without_scale, "seq=5 dim=4", shrink=False)
    assert verdict.mistakes == ("scale_left_out",)
    assert "the output is what one gets with the scale left out" in verdict.reason
    assert "the scale left out" in attest.explain(without_scale, "seq=5 dim=4").text


def test_a_stated_convention_is_judged():
    def leaks(q, k, v, *, causal=False):
        scores = q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
        if causal:
            scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights @ v / weights.sum(-1, keepdims=True)

    lines = ["seq=7x40 dim=4 causal align=top-left poison=hidden:v", "seq=5 dim=4 causal"]
    assert [v.status for v in attest.check(leaks, lines, shrink=False)] == ["fail", "pass"]
    results = attest.check(leaks, lines, conventions={"hidden_nan": "leaks"})
    assert [v.status for v in results] == ["convention", "pass"]
    assert results.ok and results.summary() == "2 passed, 0 failed, 0 skipped"
    with pytest.raises(ValueError, match="hidden_nan"):
        attest.check(leaks, lines, refuses=["poison"])
    with pytest.raises(attest.UserError, match="stays out, leaks"):
        attest.check(leaks, lines, conventions={"hidden_nan": "leeks"})


def test_a_class_states_by_dicts_what_holds_for_every_call():
    class Mine(kernels.Exact):
        arithmetic = {"stored_weights": "bf16"}
        conventions = {"empty_row": "nan"}

    assert [v.status for v in attest.check(Mine(), ["seq=4 dim=4", "seq=4 dim=4 causal"])] == ["pass", "pass"]
    Mine.arithmetic = ["stored_weights"]
    with pytest.raises(attest.UserError, match="arithmetic"):
        attest.check(Mine(), "seq=4 dim=4")
