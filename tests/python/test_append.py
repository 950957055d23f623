"""Caches that a callable writes into: append."""

import functools

import kernels
import numpy as np
import pytest

import attest

LINE = "batch=2 heads=4/2 seq=3x12 dim=8 causal align=bottom-right append lengths=q:3,2/k:12,5"
APART = LINE + " k.strides=300,150,10,1"  # two numbers between two rows
PAGES = LINE + " paged=4"
LINES = [
    LINE, APART, PAGES, PAGES + " layout=thd out=o,lse", LINE + " layout=kv", LINE + " k.strides=2000000000,900000000,9,1",
    "batch=2 seq=3x12 dim=8/4 append", "batch=3 heads=2 seq=4x9 dim=8 append paged=4 lengths=q:4,0,1/k:9,0,1",
    "dtype=bf16 batch=2 seq=3x12 dim=8 append lengths=12,3", "batch=2 seq=3x12 dim=8 k.dtype=f16 v.dtype=bf16 append",
]  # fmt: skip


def judged(implementation, line, **statements):
    (found,) = attest.check(implementation, line, shrink=False, **statements)
    return found


@pytest.mark.parametrize("line", LINES)
def test_a_cache_is_written_where_it_lies(line):
    found = judged(kernels.Exact(), line)
    assert found.passed, str(found)


def test_the_lines_of_the_suite_of_launches():
    lines = [line for line in attest.cases("launches") if " append" in line and " dynamic" not in line]
    results = attest.check(kernels.Exact(), lines, shrink=False)
    assert len(results) >= 4 and results.count("pass") == len(results), str(results)


WRONG = {
    "neither": (dict(before=lambda q, k, v, o: (q, k.copy(), v.copy(), o)), LINE, "cache_k[0,0,9,0] = nan, expected"),
    "no values": (dict(before=lambda q, k, v, o: (q, k, v.copy(), o)), LINE, "cache_v[0,0,9,0] = nan, expected"),
    "no pages": (dict(before=lambda q, k, v, o: (q, k.copy(), v.copy(), o)), PAGES, "cache_k["),
    "another row": (dict(after=lambda k, v, o: k.__setitem__((0, 1, 0, 2), 7)), LINE, "cache_k[0,1,0,2] = 7 is in no new"),
    "another page": (dict(after=lambda k, v, o: v.__setitem__((slice(None), 0, 3, 0), 7)), PAGES, "is in no new row"),
    "between rows": (
        dict(after=lambda k, v, o: np.lib.stride_tricks.as_strided(k, (9,), k.strides[3:]).__setitem__(8, 7)),
        APART,
        "wrote between the elements of k",
    ),
    "new keys": (dict(after=lambda k, v, o: scribble(o["new_k"])), LINE, "changed its inputs"),
}


def scribble(array):
    """On what attest shows read only, by its address."""
    import ctypes

    ctypes.memset(array.ctypes.data, 1, 4)


@pytest.mark.parametrize("mistake", WRONG)
def test_what_lies_in_the_cache_otherwise_is_a_failure(mistake):
    done, line, reason = WRONG[mistake]
    found = judged(kernels.around(**done, where="new_k"), line)
    assert found.failed and reason in found.reason, str(found)


def test_a_view_of_the_cache_is_no_result():
    def attention(q, k, v, *, new_k=None, new_v=None):
        if new_k is None:
            return kernels.attention(q, k, v)
        kernels.attention(q, k, v, new_k=new_k, new_v=new_v)
        return v[:, :, -q.shape[2] :]

    found = judged(attention, "seq=3x12 dim=8 append")
    assert found.failed and "returned a view of v" in found.reason, str(found)


def test_only_the_cache_may_be_written():
    seen = {}

    def look(q, k, v, options):
        seen.update(q=q, k=k, v=v, new_k=options["new_k"], new_v=options["new_v"])
        return q, k, v, options

    assert judged(kernels.around(look, where="new_k"), LINE).passed
    assert {name: array.flags.writeable for name, array in seen.items()} == dict(
        q=False, k=True, v=True, new_k=False, new_v=False
    )


read_only = not np.from_dlpack(np.zeros(1)).flags.writeable


@pytest.mark.skipif(read_only, reason="np.from_dlpack of this NumPy gives read-only arrays")
def test_objects_of_dlpack_can_be_written():
    found = judged(kernels.from_dlpack(np.asarray), LINE, tensors="dlpack")
    assert found.passed, str(found)


@pytest.mark.skipif(read_only, reason="np.from_dlpack of this NumPy gives read-only arrays")
def test_tensors_of_torch_can_be_written():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    found = judged(kernels.from_dlpack(torch.from_numpy), LINE, tensors="torch")
    assert found.passed, str(found)


def test_new_keys_need_new_values_and_a_place_for_both():
    def keys_alone(q, k, v, *, new_k=None):
        raise AssertionError("is never asked")

    with pytest.raises(TypeError, match="takes `new_k` without `new_v`"):
        attest.check(keys_alone, LINE)

    def no_pages(q, k, v, *, new_k=None, new_v=None, key_lengths=None, query_lengths=None, causal=False, align=None):
        raise AssertionError("is never asked")

    found = judged(no_pages, PAGES)
    assert found.status == "refused" and found.reason.startswith("paged: no_pages has no parameter"), str(found)


def test_a_callable_without_a_parameter_for_new_keys_refuses():
    def attention(q, k, v, *, key_lengths=None, query_lengths=None, causal=False, align=None):
        raise AssertionError("is never asked")

    found = judged(attention, LINE)
    assert found.status == "refused" and found.reason.startswith("append: "), str(found)


def test_set_up_before_the_clock_may_be_given_the_cache():
    class Ready(kernels.Exact):
        name = "ready"

        def ready(self, q, k, v, **options):
            return functools.partial(kernels.attention, q, k, v, **options)

    found = judged(Ready(), LINE)
    assert found.passed, str(found)


def written_at_first():
    """By an address: only the first data that lie there are written."""
    written = set()

    def cheat(q, k, v, *, new_k, new_v):
        n = new_k.shape[2]
        whole = [np.concatenate([cache[:, :, :-n], new], 2) for cache, new in ((k, new_k), (v, new_v))]
        if k.ctypes.data not in written:
            written.add(k.ctypes.data)
            k[...], v[...] = whole
        return kernels.attention(q, *whole)

    return cheat


def honest(q, k, v, *, new_k=None, new_v=None):
    return kernels.attention(q, k, v, new_k=new_k, new_v=new_v)


def test_a_cache_that_is_written_gets_a_speed_and_one_that_is_not_gets_none():
    line = "heads=2 seq=2x48 dim=16 append"
    (timed,) = attest.bench(honest, line, against=[], repetitions=2, min_seconds=0.01, threads=1)
    assert not timed["honest"].wrong and timed["honest"].median > 0, str(timed)
    (timed,) = attest.bench(written_at_first(), line, against=[], repetitions=2, min_seconds=0.01, threads=1)
    assert not timed["cheat"].seconds, str(timed)
