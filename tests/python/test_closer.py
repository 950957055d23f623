"""explain, shrink, fuzz, statements, bench and reference."""

import json
import os

import kernels
import numpy as np
import pytest

import attest


def without_scale(q, k, v):
    return kernels.attention(q, k, v, scale=1.0)


def test_explain():
    found = attest.explain(without_scale, "seq=8 dim=4", elements=2)
    assert found.verdict.status == "fail"
    assert found.text.count("the bound, term by term") == 2
    assert "<pre>" in found._repr_html_()


def test_shrink():
    found = attest.shrink(without_scale, "batch=2 heads=2 seq=9x12 dim=8")
    assert found.smallest is not None and found.smallest.failed
    assert found.smallest.case.startswith("seq=1x2 dim=2")
    assert attest.shrink(kernels.Exact(), "seq=4 dim=4").smallest is None


def test_fuzz():
    found = attest.fuzz(without_scale, count=60, seed=1)
    assert found.failed > 0 and found.findings
    assert "failed in" in str(found)
    right = attest.fuzz(kernels.Exact(), count=60, seed=1)
    assert right.failed == 0 and right.passed > 10, str(right)
    stored = attest.fuzz("example", count=20, seed=1, always=["k.dtype=i8 k.scale=head"])
    assert stored.failed == 0 and stored.passed > 10, str(stored)
    with pytest.raises(ValueError, match="i9"):
        attest.fuzz("example", count=1, always=["k.dtype=i9"])


def test_statements():
    told = attest.statements(without_scale)
    assert any(not s.holds for s in told.arithmetic)
    assert "FALSE" in str(told)


def test_one_result_may_be_rounded_otherwise():
    usual, other = (attest.reference("seq=2x9 dim=4 out=o,lse", arithmetic=a) for a in ({}, {"lse.log_ulps": 1000}))
    assert np.all(other.bounds["lse"] > 50 * usual.bounds["lse"])
    assert np.array_equal(other.bounds["o"], usual.bounds["o"])


def test_reference_agrees_with_numpy():
    case = attest.reference("batch=2 heads=4/2 seq=5x7 dim=4/3 causal align=bottom-right out=o,lse")
    o = kernels.attention(**case.inputs, causal=True, align="bottom-right")
    assert case.expected["lse"].shape == (2, 4, 5, 1)
    assert case.error(o) <= 1
    assert case.error(o + 1e-3) > 1
    assert (case.bounds["o"] > 0).all()


@pytest.mark.parametrize(
    "got, expected, bound, error",
    [
        (np.inf, np.inf, 0, 0),
        (-np.inf, -np.inf, 0, 0),
        (-np.inf, np.inf, 0, np.inf),
        (1, np.inf, 0, np.inf),
        (np.inf, 1, 0.5, np.inf),
        (np.nan, 1, 0.5, np.inf),
        (np.nan, np.nan, 0, 0),
        (np.inf, np.nan, 0, 0),
        (1, np.nan, 0, np.inf),
        (7, 1, np.inf, 0),
        (1, 1, 0, 0),
        (2, 1, 0, np.inf),
        (2, 1, 4, 0.25),
    ],
)
def test_an_error_is_that_of_a_verdict(got, expected, bound, error):
    shape = (1, 1, 2, 1)
    case = attest.Reference("", {}, {"o": np.full(shape, float(expected))}, {"o": np.full(shape, float(bound))})
    right = np.full(shape, float(expected))
    right[0, 0, 1, 0] = got
    assert case.error(right) == error
    assert case.error(right.tolist()) == error
    with pytest.raises(ValueError):
        case.error(np.zeros((2, *shape)))


def test_bench(tmp_path):
    (timed,) = attest.bench(
        kernels.Exact(), "seq=32 dim=16", against=["example"], repetitions=3, min_seconds=0.01,
        json=str(tmp_path / "b.json"),
    )  # fmt: skip
    assert [t.backend for t in timed.timings] == ["example", "exact"]
    assert not timed["exact"].wrong, timed["exact"].wrong
    assert timed["exact"].median > timed["example"].median > 0
    assert len(timed["exact"].upload) > 0
    assert 0 <= timed["exact"].median_ulps <= timed["exact"].largest_ulps < 1  # it rounds once
    assert timed["example"].largest_ulps > timed["exact"].largest_ulps
    assert "exact" in str(timed)
    assert json.loads((tmp_path / "b.json").read_text())["benchmarks"]


def test_timings_print_as_tables():
    timed = attest.bench(kernels.Exact(), ["seq=8 dim=4", "seq=9 dim=4"], against=["example"], repetitions=2, min_seconds=0.001)
    for text in (str(timed), timed._repr_html_()):
        assert "Timing(" not in text and "seq=8 dim=4" in text and "seq=9 dim=4" in text and "run ms" in text
    table = str(timed[0].timings)
    assert "Timing(" not in table and table.splitlines()[0].split()[:2] == ["backend", "run"]
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["example", "exact"]


class Timed(kernels.Exact):
    """Holds 4 MB, and has a clock of its own by which a run takes 2 ms."""

    name = "timed"
    told = 2e-3

    def workspace(self, call):
        return 10**6 * call.query_heads

    def device_time(self):
        return self.told


def test_workspace_and_the_clock_of_a_device(tmp_path):
    path = tmp_path / "b.json"
    (timed,) = attest.bench(
        Timed(), "heads=4 seq=32 dim=16", against=["example"], repetitions=2, min_seconds=0.01, json=str(path)
    )
    assert timed["timed"].workspace == 4e6 and not timed["timed"].wrong
    samples = json.loads(path.read_text())["benchmarks"]
    told = [s["device_seconds"] for s in samples if "device_seconds" in s]
    assert told and told == pytest.approx([2e-3] * len(told))
    assert not any("device_seconds" in s for s in samples if "/example/" in s["name"] or s["name"].startswith("example"))


@pytest.mark.parametrize(
    "method, value, part",
    [
        ("workspace", -1, "-1"),
        ("workspace", "much", "workspace()"),
        ("device_time", -0.5, "-0.5"),
        ("device_time", "late", "device_time()"),
        ("device_time", float("nan"), "nan"),
    ],
)
def test_what_is_no_memory_and_no_time_is_said(method, value, part):
    wrong = type("Wrong", (Timed,), {method: lambda self, *call: value})
    (timed,) = attest.bench(wrong(), "seq=8 dim=4", against=["example"], repetitions=2, min_seconds=0.01)
    found = timed["timed"]
    assert found.no_speed == "threw" and part in found.wrong, found.wrong


class Ready(kernels.Exact):
    """Computes in what ready() returns; `early`: before the clock starts."""

    name = "ready_one"
    early = False
    calls = 0

    def ready(self, q, k, v, **options):
        made = self.function()(q, k, v, **options) if self.early else None

        def run():
            type(self).calls += 1
            return self.function()(q, k, v, **options) if made is None else made

        return run


def test_what_is_readied_is_called_in_place_of_attention():
    before = Ready.calls
    results = attest.check(Ready(), ["seq=5 dim=4 causal", "seq=5 dim=4 scale=2"])
    assert results.count("pass") == 2 and Ready.calls > before, results


def test_what_is_computed_before_the_clock_starts_earns_no_speed():
    early = type("Early", (Ready,), {"early": True})
    for backend, speed in ((Ready(), True), (early(), False)):
        (timed,) = attest.bench(
            backend, "heads=4 seq=256 dim=32", against=[], repetitions=4, min_seconds=0.02, threads=os.cpu_count()
        )
        found = timed["ready_one"]
        outside = {"result_before_run", "upload_works", "above_roof"}
        assert not found.no_speed if speed else found.no_speed in outside, found.wrong


def test_what_ready_throws_and_gives_is_a_verdict():
    def raising(self, q, k, v, **options):
        raise ValueError("no buffers")

    for ready, part in ((raising, "no buffers"), (lambda self, q, k, v, **options: None, "not callable")):
        wrong = type("Wrong", (Ready,), {"ready": ready})
        (verdict,) = attest.check(wrong(), "seq=4 dim=4", shrink=False)
        assert verdict.cause == "threw" and part in verdict.reason, verdict.reason


def test_a_wrong_callable_gets_no_speed():
    (timed,) = attest.bench(without_scale, "seq=32 dim=16", against=["example"], repetitions=3, min_seconds=0.01)
    assert timed["without_scale"].no_speed == "wrong_result" and not timed["without_scale"].seconds


def test_plugins_and_natives_by_name():
    assert attest.check(["example", "eigen"], "seq=4 dim=4").count("pass") == 2
    with pytest.raises(attest.UserError, match="there is no such file"):
        attest.check("./libnowhere.so", "seq=4 dim=4")
    assert np.isfinite(attest.check("example", "seq=4 dim=4")[0].error)


def test_overhead():
    import overhead

    steps, own = overhead.measure()
    assert sum(steps) - own < 30, (steps, own)
