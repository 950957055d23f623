"""Lengths and page tables that are data of a run, which a callable gets as arrays: dynamic."""

import functools

import kernels
import numpy as np
import pytest

import attest

LINE = "batch=3 heads=4/2 seq=3x20 dim=8 causal align=bottom-right dynamic lengths=q:3,1,2/k:20,4,9"
PAGES = LINE + " paged=4"
LINES = [
    LINE, PAGES, PAGES + " layout=thd out=o,lse", LINE + " layout=thd", LINE + " append", PAGES + " append layout=thd",
    "batch=2 seq=5 dim=8 dynamic", "batch=2 seq=4x9 dim=8 dynamic lengths=q:0,0/k:0,0", "seq=1x9 dim=8 dynamic paged=16",
    "batch=2 heads=2 seq=3x9 dim=8 dynamic alibi mask=add:BHQK:normal causal align=bottom-right lengths=9,4",
]  # fmt: skip


def judged(implementation, line, **statements):
    (found,) = attest.check(implementation, line, shrink=False, **statements)
    return found


@pytest.mark.parametrize("line", LINES)
def test_each_run_has_its_own_lengths(line):
    found = judged(kernels.Exact(), line)
    assert found.passed, str(found)


def test_the_lines_of_the_suite_of_launches():
    lines = [line for line in attest.cases("launches") if " dynamic" in line]
    results = attest.check(kernels.Exact(), lines, shrink=False)
    assert len(results) >= 6 and results.count("pass") == len(results), str(results)


def test_lengths_are_arrays_of_a_run_and_the_largest_are_the_plan_s():
    runs = []

    def attention(q, k, v, *, dynamic=False, query_lengths=None, key_lengths=None, page_table=None, page_size=None,
                  max_query_length=None, max_key_length=None, causal=False, align="top-left"):  # fmt: skip
        if dynamic:
            assert query_lengths.dtype == key_lengths.dtype == page_table.dtype == np.int32
            assert not query_lengths.flags.writeable and not key_lengths.flags.writeable
            told = query_lengths.tolist(), key_lengths.tolist(), max_query_length, max_key_length
            if q.shape == (3, 4, 3, 8):
                runs.append(told)
        return kernels.attention(
            q, k, v, query_lengths=query_lengths, key_lengths=key_lengths, page_table=page_table, page_size=page_size,
            causal=causal, align=align,
        )  # fmt: skip

    found = judged(attention, PAGES)
    assert found.passed, str(found)
    assert ([3, 1, 2], [20, 4, 9], 3, 20) in runs
    assert len({str(told[:2]) for told in runs}) > 1 and {told[2:] for told in runs} == {(3, 20)}, runs


class Keeps:
    """What a plan's first run was given, for all others: by the sizes that a captured graph would have."""

    def __init__(self, *names):
        self.names = names
        self.kept = {}

    def __call__(self, q, k, options):
        first = self.kept.setdefault((q.shape, k.shape), {name: options[name].copy() for name in self.names})
        return {**options, **first}


def keep_table():
    """Entries of the first run where both runs have one; pages of any run are there in every other."""
    kept = {}

    def change(q, k, options):
        table = options["page_table"]
        if table is None:
            return options
        first = kept.setdefault(table.shape, table.copy())
        mixed = np.where((first >= 0) & (table >= 0), first, table)
        return {**options, "page_table": mixed % max(len(k), 1)}

    return change


WRONG = {
    "first key lengths": (Keeps("key_lengths"), LINE),
    "first query lengths": (Keeps("query_lengths"), LINE + " out=o,lse"),
    "first table": (keep_table(), PAGES),
    "longest": (lambda q, k, o: {**o, "key_lengths": np.full_like(o["key_lengths"], 20)}, LINE),
    "empty as one": (lambda q, k, o: {**o, "key_lengths": np.maximum(o["key_lengths"], 1)}, "batch=2 seq=2x9 dim=8 dynamic lengths=9,0"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_what_is_kept_of_another_run_is_a_failure(mistake):
    change, line = WRONG[mistake]
    found = judged(kernels.around(lambda q, k, v, o: (q, k, v, change(q, k, o)), where="dynamic"), line)
    assert found.failed and "elements are wrong" in found.reason, str(found)


def test_an_object_that_keeps_the_first_lengths_in_a_member_is_a_failure():
    class Member(attest.Backend):
        name = "member"
        lengths = None

        def attention(self, q, k, v, *, dynamic=False, query_lengths=None, key_lengths=None):
            if dynamic:
                if self.lengths is None:
                    self.lengths = query_lengths.copy(), key_lengths.copy()
                if len(self.lengths[0]) == len(q):
                    query_lengths, key_lengths = self.lengths
            return kernels.attention(q, k, v, query_lengths=query_lengths, key_lengths=key_lengths)

    found = judged(Member(), "batch=3 heads=2 seq=3x20 dim=8 dynamic lengths=q:3,1,2/k:20,4,9")
    assert found.failed and "elements are wrong" in found.reason, str(found)


def test_what_is_hidden_and_added_follows_the_lengths():
    def hidden(q, k, v, *, visible=None, dynamic=False, query_lengths=None, key_lengths=None):
        assert not dynamic or key_lengths is not None
        return kernels.attention(q, k, v, mask=visible)

    def added(q, k, v, *, added=None, causal=False, align="top-left", dynamic=False, query_lengths=None, key_lengths=None):
        return kernels.attention(
            q, k, v, bias=added, causal=causal, align=align, query_lengths=query_lengths, key_lengths=key_lengths
        )

    # Behind the diagonal the distances to all keys change alike where it moves: a key in front of it tells.
    for attention, line in (hidden, LINE), (added, LINE.replace(" causal", "") + " alibi"):
        found = judged(attention, line)
        assert found.passed, str(found)


def test_set_up_before_the_clock_gets_the_lengths_of_the_next_run():
    class Ready(kernels.Exact):
        name = "ready"

        def ready(self, q, k, v, **options):
            return functools.partial(kernels.attention, q, k, v, **options)

    found = judged(Ready(), PAGES)
    assert found.passed, str(found)


def test_lengths_are_what_the_other_tensors_are():
    found = judged(kernels.from_dlpack(np.asarray), LINE, tensors="dlpack")
    assert found.passed, str(found)


def test_lengths_as_tensors_of_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    found = judged(kernels.from_dlpack(torch.from_numpy), LINE, tensors="torch")
    assert found.passed, str(found)


def test_lists_of_lengths_are_no_lengths_of_a_run():
    def lists(q, k, v, *, query_lengths=None, key_lengths=None, causal=False, align=None):
        raise AssertionError("is never asked")

    def alone(q, k, v, *, dynamic=False, key_lengths=None):
        raise AssertionError("is never asked")

    found = judged(lists, LINE)
    assert found.status == "refused" and found.reason.startswith("dynamic: "), str(found)
    with pytest.raises(TypeError, match="takes `dynamic` without `query_lengths`"):
        attest.check(alone, LINE)


def test_a_call_says_what_is_data():
    said = []

    class Asked(kernels.Exact):
        name = "asked"

        def refuse(self, call):
            said.append((call.dynamic, call.append, call.query_lengths, call.key_lengths))
            return "all of them"

    assert judged(Asked(), LINE).status == "refused" and said[-1] == (True, False, None, None)
    assert judged(Asked(), "seq=2x9 dim=8 append lengths=7").status == "refused" and said[-1] == (False, True, None, [7])


def test_it_gets_a_speed():
    (timed,) = attest.bench(kernels.Exact(), PAGES, against=[], repetitions=2, min_seconds=0.01, threads=1)
    assert not timed["exact"].wrong and timed["exact"].median > 0, str(timed)
