"""attest.relate: an implementation held against itself."""

import json

import kernels
import numpy as np
import pytest

import attest

LINE = "batch=3 heads=4/2 seq=9 dim=8 causal"


def larger_in_batches(q, k, v, *, causal=False):
    """Right alone, and a little too large beside other sequences."""
    return (kernels.attention(q, k, v, causal=causal) * (1.01 if len(q) > 1 else 1)).astype(q.dtype)


def own(q, k, v, *, causal=False):
    """Right within its bounds, and another number in the last place beside other sequences."""
    out = kernels.attention(q, k, v, causal=causal)
    return np.nextafter(out, np.float32(4)) if len(q) > 1 else out


def test_a_right_one_keeps_its_relations():
    found = attest.relate(kernels.Exact(), LINE)
    assert found.ok and not found.failures, str(found)
    assert {"batch", "head", "repeat", "threads"} <= {one.relation for one in found}
    assert all(one.calls > 0 and one.elements > 0 for one in found if one.status in ("bits", "bound")), str(found)
    assert f"{found.count('bits')} with the same bits" in str(found) and "<pre>" in found._repr_html_()
    assert isinstance(found[:2], tuple) and found[0] in found


def test_a_wrong_one_breaks_one_and_says_which():
    found = attest.relate(larger_in_batches, LINE, relations=["batch", "repeat"])
    assert not found.ok
    [failed] = found.failures
    assert failed.relation == "batch" and failed.backend == "larger_in_batches" and failed.largest > 1
    assert failed.element["whole"] != failed.element["other"] and failed.other_bits > 0
    assert failed.other_call.startswith("heads=4/2 seq=9") and "--relation batch" in failed.repro
    assert "FAIL larger_in_batches: batch" in str(found) and "1 failed" in str(found)


def test_other_bits_within_the_bounds_and_the_promise_of_the_same():
    [within] = attest.relate(own, LINE, relations="batch")
    assert within.status == "bound" and 0 < within.largest <= 1 and not within.promised, str(within)
    found = attest.relate(own, LINE, relations="batch", conventions={"same_bits": "batch"})
    assert found[0].promised and found[0].failed, str(found)


def test_an_object_of_this_process_is_told_as_a_call():
    [failed] = attest.relate(lambda q, k, v: larger_in_batches(q, k, v), "batch=2 seq=5 dim=4", relations="batch").failures
    assert failed.repro.startswith("attest.relate(") and failed.repro.endswith("relations='batch')"), failed.repro


def test_what_is_refused_is_no_success():
    found = attest.relate(lambda q, k, v: kernels.attention(q, k, v), LINE, relations="batch")
    assert [one.status for one in found] == ["refused"] and "causal" in found[0].reason and not found.ok


def test_the_file_is_that_of_the_command(tmp_path):
    place = tmp_path / "relations.jsonl"
    found = attest.relate("example", [LINE, "seq=4 dim=4"], relations=("head", "repeat"), json=place)
    lines = [json.loads(line) for line in place.read_text().splitlines()]
    assert [(one["relation"], one["status"]) for one in lines[:-1]] == [(one.relation, one.status) for one in found]
    assert lines[-1] == {"kind": "summary", "bits": found.count("bits"), "bound": found.count("bound"), "fail": 0, "refused": 0}


def test_cases_are_those_of_the_suite_where_none_are_named():
    found = attest.relate("example", relations="repeat")
    assert [one.case for one in found] == attest.cases("relations") and {one.suite for one in found} == {"relations"}


def test_what_can_not_be_asked_for():
    with pytest.raises(attest.UserError, match="batch"):
        attest.relate("example", LINE, relations="bach")
    with pytest.raises(attest.UserError, match="one implementation"):
        attest.relate(["example", "eigen"], LINE)
    with pytest.raises(attest.UserError, match="nothing to relate"):
        attest.relate("example", [])


def test_an_interrupt_hands_over_what_there_is():
    asked = []

    def attention(q, k, v):
        asked.append(1)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return kernels.attention(q, k, v)

    with pytest.raises(KeyboardInterrupt) as raised:
        attest.relate(attention, ["seq=4 dim=4", "seq=5 dim=4"], isolate=False)
    assert raised.value.args[0].interrupted and not raised.value.args[0].ok
