"""attest.capture: what a program asks of its attention."""

import numpy as np
import pytest

import attest
import kernels

RANDOM = np.random.default_rng(7)


def tensors(q, k, v=None, dtype=np.float32):
    return [RANDOM.standard_normal(shape).astype(dtype) for shape in (q, k, v or k)]


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """The signature of PyTorch's."""
    return value


def flash(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None):
    """The signature of FlashAttention's."""
    return v


Q, K = (2, 8, 5, 16), (2, 4, 9, 16)
SIZES = "batch=2 heads=8/4 seq=5x9 dim=16"


@pytest.mark.parametrize(
    "options, line",
    [
        ({}, SIZES),
        (dict(enable_gqa=True, scale=0.25), SIZES),
        (dict(scale=0.5), f"{SIZES} scale=0.5"),
        (dict(is_causal=True), f"{SIZES} causal align=top-left"),
        (dict(attn_mask=np.tri(5, 9, 4, dtype=bool)), f"{SIZES} causal align=bottom-right"),
        (dict(attn_mask=np.where(np.tri(5, 9), 0, -np.inf)), f"{SIZES} causal align=top-left"),
        (dict(attn_mask=np.arange(9) < np.full((2, 1, 1, 1), 6)), f"{SIZES} mask=bool:B11K:random(0.67)"),
        (dict(attn_mask=np.ones((8, 5, 9), np.float32)), f"{SIZES} mask=add:1HQK:normal"),
        (dict(attn_mask=np.where(np.arange(9) < 6, 0, -np.inf)), f"{SIZES} mask=add:111K:neginf(0.33)"),
        (dict(attn_mask=np.where(np.arange(9) < 6, 0, np.finfo(np.float32).min)), f"{SIZES} mask=add:111K:finitemin(0.33)"),
        (dict(dropout_p=0.1), f"{SIZES} dropout=0.1"),
    ],
)
def test_calls_as_of_pytorch(options, line):
    captured = attest.capture(sdpa)
    q, k, v = tensors(Q, K)
    assert captured(q, k, v, **options) is v
    assert captured.lines == attest.cases(line), captured.unrecorded


def test_calls_as_of_flash_attention():
    captured = attest.capture(flash, layout="blhd", align="bottom-right")
    q, k, v = tensors((2, 5, 8, 16), (2, 9, 4, 16))
    captured(q, k, v, causal=True, window_size=(3, 0), softcap=20.0)
    captured(q, k, v, alibi_slopes=np.ones(8))
    captured(q, k, v, 0.0, 0.25)
    assert captured.lines == attest.cases([
        f"{SIZES} causal align=bottom-right window=3:0 softcap=20 layout=blhd",
        f"{SIZES} align=bottom-right alibi layout=blhd", f"{SIZES} layout=blhd",
    ]), captured.unrecorded  # fmt: skip


def test_storage():
    captured = attest.capture(sdpa)
    rows = RANDOM.standard_normal((2, 9, 8, 16)).astype(np.float32).transpose(0, 2, 1, 3)  # heads beside one another
    captured(rows, rows, rows)
    packed = RANDOM.standard_normal((2, 9, 3, 8, 16)).astype(np.float32)
    captured(*(packed[:, :, part].transpose(0, 2, 1, 3) for part in range(3)))
    strides = "".join(f" {name}.strides=3456,16,384,1" for name in "qkv")
    assert captured.lines == attest.cases(["batch=2 heads=8 seq=9 dim=16 layout=blhd", f"batch=2 heads=8 seq=9 dim=16{strides}"])
    captured(*tensors((3, 5, 8), (3, 5, 8), dtype=np.float64))
    assert captured.lines[2:] == ["dtype=f64 batch=3 seq=5 dim=8"]


def test_counts_statistics_and_fills():
    captured = attest.capture(sdpa)
    q, k, v = tensors(Q, K)
    for _ in range(3):
        captured(q, k, v)
    captured(q * 40, k, v)  # the same words, so the first call's data stand for it
    captured(10 * q, 10 * k, v, scale=1.0)
    first, second = captured.calls
    assert first.count == 4 and first.line == SIZES
    assert abs(first.statistics["q"]["std"] - 1) < 0.1 and first.statistics["v"]["non_finite"] == 0
    assert 0.7 < first.score_std < 1.4
    assert second.score_std > 200 and "fill=spread(" in second.line
    v[0, 0, 0, 0] = np.nan
    captured(q, k, v, scale=0.5)
    assert "some NaN or infinite" in captured.calls[2].comment


def test_as_a_decorator_with_options_of_other_names(tmp_path):
    @attest.capture(keywords={"softcap": "cap"})
    def attention(q, k, v, *, cap=None, verbose=False):
        """My attention."""
        return kernels.attention(q, k, v)

    assert attention.__name__ == "attention" and attention.__doc__ == "My attention."
    q, k, v = tensors(Q, K)
    attention(q, k, v, cap=5.0)
    attention(q, k, v, verbose=True)
    assert attention.lines == attest.cases(f"{SIZES} softcap=5")
    assert attention.unrecorded == {"what verbose=True means isn't known; say keywords={...}": 1}
    attention.write(tmp_path / "mine.cases")
    text = (tmp_path / "mine.cases").read_text()
    assert text.startswith("# Calls of attention, recorded by attest.capture.\n") and "1 calls are left out" in text
    assert attest.check("example", str(tmp_path / "mine.cases")).ok


def test_budgets():
    captured = attest.capture(sdpa, lines=2)
    for rows in range(1, 6):
        captured(*tensors((1, 1, rows, 8), (1, 1, rows, 8)))
    assert len(captured.lines) == 2 and captured.unrecorded == {"more than 2 different calls": 3}
    captured = attest.capture(sdpa, seconds=0)
    for _ in range(3):
        captured(*tensors(Q, K))
    assert len(captured.lines) == 1 and sum(captured.unrecorded.values()) == 2


def test_tensors_are_files_that_run(tmp_path):
    captured = attest.capture(sdpa, tensors=2)
    for rows in (3, 4, 5):
        captured(*tensors((2, 4, rows, 8), (2, 2, 9, 8)), is_causal=True)
    paths = captured.save(tmp_path)
    assert len(paths) == 2
    results = attest.check("example", paths)
    assert results.ok and len(results) == 2, str(results)
    inputs = attest.reference(paths[0])
    assert np.array_equal(inputs.inputs["q"], captured.calls[0].tensors["q"])


def test_a_call_that_is_not_recorded_goes_through():
    captured = attest.capture(lambda q, k, v: 5)
    assert captured(1, 2, 3) == 5 and captured.unrecorded == {"it got fewer than three tensors": 1}
    with pytest.raises(attest.UserError, match="nothing was recorded"):
        captured.write("x.cases")
    with pytest.raises(attest.UserError, match="tensors=N"):
        captured.save("x")
    with pytest.raises(ZeroDivisionError):
        attest.capture(lambda q, k, v: 1 / 0)(*tensors(Q, K))
    with pytest.raises(attest.UserError, match="bhld or blhd"):
        attest.capture(sdpa, layout="thd")


def test_methods():
    class Layer:
        @attest.capture
        def attention(self, q, k, v):
            return v

    Layer().attention(*tensors(Q, K))
    assert Layer.attention.lines == [SIZES]
