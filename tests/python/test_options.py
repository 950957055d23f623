"""Options of a call that reach a callable: lines of the matrix that use them pass, and their keywords were given."""

import functools
import re

import kernels
import numpy as np
import pytest
import recurrence

import attest
from attest._attest import all_features
from attest._options import OPTIONS, SHOWN

EMPTY = re.compile(r"(heads|batch|seq)=0|seq=\d+x0\b")  # of no elements there is no array
# What came behind the version that the kernels here were written for.
NEWER = re.compile(r" (latent|select=|qk_heads=|l2norm|rope|norm=|scales=|[qkv]\.scale=)|:unscaled")
MATRIX = [line for line in attest.cases("matrix") if not EMPTY.search(line) and not NEWER.search(line)]

# Keywords that come with what a line says, and what it says.
REACHING = [
    (["past", "past_k", "past_v"], " past=", " paged="),
    (["page_table", "page_size", "key_lengths"], " paged=", " lengths="),
    (["past", "page_table"], " past=", None),
    (["past", "past_lengths"], " past=0,1", None),
    (["query_starts", "key_starts"], " layout=thd", None),
    (["keep", "dropout"], " dropout=", None),
    (["blocks", "block_size"], " blocks=", None),
    (["segments"], " segments=", None),
    (["alibi_slopes"], " alibi", None),
    (["sinks"], " sinks", None),
    (["softcap"], " softcap=", None),
    (["bias"], " mask.dtype=", None),
    (["dynamic", "query_lengths", "key_lengths"], " dynamic", None),
    (["new_k", "new_v"], " append", None),
    (["op"], "op=linear ", None),
    (["op", "decay"], "op=gated ", None),
    (["op", "beta"], "op=delta ", None),
    (["op", "decay", "beta"], "op=gated_delta ", None),
    (["op", "state"], " state", None),
]


def test_every_feature_is_shown_or_told_by_a_keyword():
    told = {word for option in OPTIONS.values() for word in option.features}
    refused = {"qk_heads"}
    assert {*SHOWN, *told, *refused, "op=gated_delta"} == set(all_features())


def lines_with(said, without=None, also="", count=3):
    """Short lines first: they are checked in every build."""
    found = [line for line in MATRIX if said in f" {line} " and also in line and not (without and without in line)]
    return sorted(found, key=len)[:count]


@pytest.mark.parametrize("keywords, said, without", REACHING, ids=["+".join(row[0]) for row in REACHING])
def test_an_option_reaches_a_callable(keywords, said, without):
    lines = lines_with(said, without, also=" paged=" if keywords == ["past", "page_table"] else "")
    assert len(lines) == 3, said
    for line in lines:
        given = {}
        spied = kernels.around(after=lambda k, v, options: given.update(options))
        (found,) = attest.check(spied, line, shrink=False, compare_refusals=False)
        assert found.passed or found.status == "inconclusive", str(found)
        assert set(keywords) <= set(given), (line, sorted(given))


def test_the_norm_of_linear_attention_is_a_number():
    given = []

    def attention(q, k, v, *, op=None, l2norm=None):
        given.append(l2norm)
        q64, k64 = (
            x / np.sqrt(np.square(x).sum(-1, keepdims=True) + l2norm) for x in (t.astype(np.float64) for t in (q, k))
        )
        found = recurrence.attention(q64, k64, v, op=op, scale=None, decay=None, beta=None, state=None)
        return found["o"].astype(q.dtype)

    for line, eps in (("op=linear seq=5 dim=4 l2norm", 1e-6), ("op=linear heads=2 seq=3 dim=4 l2norm=0.5", 0.5)):
        (found,) = attest.check(attention, line, shrink=False)
        assert found.passed, str(found)
        assert eps in given and set(given) <= {eps, None}, given  # probes have no norm, and fail
        given.clear()


@pytest.mark.parametrize("output", ["lse", "weights", "raw", "capped", "biased", "present"])
def test_every_output_may_be_given_back(output):
    lines = [line for line in MATRIX if " out=" in line and output in line.split(" out=")[1].split()[0].split(",")]
    results = attest.check(kernels.Exact(), sorted(lines, key=len)[:3], shrink=False)
    assert len(results) == 3 and results.count("pass") >= 2 and results.ok, str(results)


def test_slopes_of_heads_can_be_read_without_batches():
    given = []

    def attention(q, k, v, *, alibi_slopes=None):
        given.append(alibi_slopes.tolist())
        return np.zeros_like(q)

    (found,) = attest.check(attention, "batch=0 heads=2 seq=4 dim=4 alibi", shrink=False)
    assert found.passed, str(found)
    assert [0, 0] in given  # what is stored nowhere


def test_all_that_is_added_in_one_array_where_other_keywords_can_not_say_it():
    given = []

    def attention(q, k, v, *, added=None, scale=None):
        given.append(None if added is None else added.dtype)
        return kernels.attention(q, k, v, bias=added, scale=scale)

    for line in ("heads=2 seq=5 dim=4 alibi", "heads=2 seq=5 dim=4 mask=add:B11K:neginf(0.4) alibi=0.5,-1",
                 "seq=5x7 dim=4 mask=add:11QK:normal mask.dtype=f16", "dtype=f16 seq=5 dim=4 mask=add:11QK:normal",
                 "dtype=f64 heads=2 seq=5 dim=4 alibi scale=2"):  # fmt: skip
        given.clear()
        (found,) = attest.check(attention, line, shrink=False)
        assert found.passed, str(found)
        assert np.dtype("float64" if "f64" in line else "float32") in given, (line, given)
    (found,) = attest.check(lambda q, k, v, *, added=None: kernels.attention(q, k, v), "heads=2 seq=5 dim=4 alibi")
    assert found.failed, str(found)


def test_where_new_keys_begin_in_pages_must_be_told():
    def attention(q, k, v, *, past_k=None, past_v=None, page_table=None, page_size=None, key_lengths=None):
        raise AssertionError("is never asked")

    (found,) = attest.check(attention, "seq=2x9 dim=4 past=7 paged=4")
    assert (found.status, found.reason.split(" for it")[0]) == ("refused", "past: attention has no parameter `past`")


def test_the_diagonal_behind_cached_keys_is_in_the_mask():
    """`causal` alone doesn't say where it is."""

    def attention(q, k, v, *, causal=False, visible=None, past_k=None, past_v=None):
        if past_k is not None:
            k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
        return kernels.attention(q, k, v, causal=causal, mask=visible)

    (found,) = attest.check(attention, "seq=3x9 dim=4 causal past=6", shrink=False)
    assert found.passed, str(found)


GAP = "batch=3 heads=2 seq=5x7 dim=4 layout=thd gap=2"


@pytest.mark.parametrize("lengths", ["7,7,7", "q:5,3,4/k:7,2,6", "q:5,3,0/k:7,7,7"])
def test_where_each_of_several_sequences_with_a_gap_ends_is_told(lengths):
    between = []  # rows between the sequences of a call, of queries and of keys

    class Noted(kernels.Exact):
        name = "noted"

        def function(self):
            @functools.wraps(kernels.attention)
            def attention(q, k, v, **options):
                if options.get("query_starts") is not None and options.get("query_lengths"):
                    between.append([
                        list(np.diff(options[f"{of}_starts"])[:-1] - options[f"{of}_lengths"][:-1]) for of in ("query", "key")
                    ])  # fmt: skip
                return kernels.attention(q, k, v, **options)

            return attention

    (found,) = attest.check(Noted(), f"{GAP} lengths={lengths} causal align=top-left", shrink=False)
    assert found.passed, str(found)
    assert [[2, 2], [2, 2]] in between, between  # beside calls of other options, which runs are mixed with


def test_a_gap_is_refused_or_read_as_a_gap():
    def ends_at_the_next(q, k, v, *, query_starts=None, key_starts=None, query_lengths=None, key_lengths=None):
        return kernels.attention(q, k, v, query_starts=query_starts, key_starts=key_starts)

    def without_lengths(q, k, v, *, query_starts=None, key_starts=None, key_lengths=None):
        return ends_at_the_next(q, k, v, query_starts=query_starts, key_starts=key_starts)

    packed = GAP.replace(" gap=2", "") + " lengths=7,7,7"
    (found,) = attest.check(ends_at_the_next, packed, shrink=False)
    assert found.passed, str(found)
    (found,) = attest.check(ends_at_the_next, f"{GAP} lengths=7,7,7", shrink=False)
    assert found.failed, str(found)
    (found,) = attest.check(without_lengths, f"{GAP} lengths=7,7,7", shrink=False)
    assert (found.status, found.reason.split(" for it")[0]) == (
        "refused", "gap: without_lengths has no parameter `query_lengths`",
    ), str(found)  # fmt: skip


def test_lengths_come_beside_all_that_is_hidden_where_there_is_a_gap():
    given = []

    def attention(q, k, v, *, visible=None, query_starts=None, key_starts=None, query_lengths=None, key_lengths=None):
        given.append((visible is not None, query_lengths, key_lengths))
        return kernels.attention(q, k, v, mask=visible, query_starts=query_starts, key_starts=key_starts,
                                 query_lengths=query_lengths, key_lengths=key_lengths)  # fmt: skip

    (found,) = attest.check(attention, f"{GAP} lengths=7,3,6 causal align=top-left", shrink=False)
    assert found.passed, str(found)
    assert (True, [5, 5, 5], [7, 3, 6]) in given, given
