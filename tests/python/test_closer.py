"""explain, shrink, fuzz, statements, bench and reference."""

import json

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


def test_statements():
    told = attest.statements(without_scale)
    assert any(not s.holds for s in told.arithmetic)
    assert "FALSE" in str(told)


def test_reference_agrees_with_numpy():
    case = attest.reference("batch=2 heads=4/2 seq=5x7 dim=4/3 causal align=bottom-right out=o,lse")
    o = kernels.attention(**case.inputs, causal=True, align="bottom-right")
    assert case.expected["lse"].shape == (2, 4, 5, 1)
    assert case.error(o) <= 1
    assert case.error(o + 1e-3) > 1
    assert (case.bounds["o"] > 0).all()


def test_bench(tmp_path):
    (timed,) = attest.bench(
        kernels.Exact(), "seq=32 dim=16", against=["example"], repetitions=3, min_seconds=0.01,
        json=str(tmp_path / "b.json"),
    )  # fmt: skip
    assert [t.backend for t in timed.timings] == ["example", "exact"]
    assert not timed["exact"].wrong, timed["exact"].wrong
    assert timed["exact"].median > timed["example"].median > 0
    assert len(timed["exact"].upload) > 0
    assert "exact" in str(timed)
    assert json.loads((tmp_path / "b.json").read_text())["benchmarks"]


def test_a_wrong_callable_gets_no_speed():
    (timed,) = attest.bench(without_scale, "seq=32 dim=16", against=["example"], repetitions=3, min_seconds=0.01)
    assert timed["without_scale"].wrong and not timed["without_scale"].seconds


def test_plugins_and_natives_by_name():
    assert attest.check(["example", "eigen"], "seq=4 dim=4").count("pass") == 2
    with pytest.raises(attest.UserError, match="there is no such file"):
        attest.check("./libnowhere.so", "seq=4 dim=4")
    assert np.isfinite(attest.check("example", "seq=4 dim=4")[0].error)


def test_overhead():
    import overhead

    steps, own = overhead.measure()
    assert sum(steps) - own < 30, (steps, own)
