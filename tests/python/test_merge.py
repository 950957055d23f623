"""Merges of partial results by a callable: it takes the parts by keyword, and has no q, k and v."""

import numpy as np

import attest

LINES = [
    "op=merge heads=4 seq=8 dim=16 parts=3 out=o,lse",
    "op=merge batch=2 heads=2 seq=5 dim=4 parts=4:empty(0.5) poison=empty:o out=o,lse",
    "op=merge dtype=f16 heads=2 seq=9 dim=8 fill=spread(300) out=o,lse",
    "op=merge dtype=f64 seq=3 dim=2 parts=2:empty(1) out=lse",
    "op=merge batch=2 heads=3 seq=5 dim=4 layout=blhd part_lse.strides=15,1,3,1",
]
IN_BASE_2 = "op=merge heads=2 seq=9 dim=8 parts=5 base=2 out=o,lse"


def merged(part_o, part_lse, power, log):
    """As reference/README.md defines it, in float64: n,B,H,L,D and n,B,H,L."""
    wide = part_lse.astype(np.float64)
    top = wide.max(0)
    weights = power(wide - np.where(np.isinf(top), 0, top))
    values = np.where(weights[..., None] > 0, part_o.astype(np.float64), 0)
    total = weights.sum(0)
    o = (weights[..., None] * values).sum(0) / np.maximum(total, 1e-300)[..., None]
    with np.errstate(divide="ignore"):
        lse = np.where(np.isinf(top), -np.inf, top + log(total))
    return {"o": o.astype(part_o.dtype), "lse": lse[..., None].astype(np.float64 if part_o.dtype == np.float64 else np.float32)}


def merge(*, part_o, part_lse, base=None, outputs=("o",)):
    power, log = (np.exp2, np.log2) if base == 2 else (np.exp, np.log)
    found = merged(part_o, part_lse, power, log)
    return tuple(found[name] for name in outputs)


def test_a_callable_merges():
    assert attest.check(merge, [*LINES, IN_BASE_2], isolate=False).count("pass") == len(LINES) + 1


def test_it_is_told_the_base():
    def natural(part_o, part_lse, outputs=("o",)):
        return merge(part_o=part_o, part_lse=part_lse, outputs=outputs)

    (verdict,) = attest.check(natural, IN_BASE_2, isolate=False)
    assert verdict.status == "refused" and "base" in verdict.reason, str(verdict)

    def deaf(part_o, part_lse, base=None, outputs=("o",)):
        return natural(part_o, part_lse, outputs)

    (verdict,) = attest.check(deaf, IN_BASE_2, isolate=False)
    assert verdict.status == "fail", str(verdict)


def test_attention_is_refused():
    (verdict,) = attest.check(merge, "seq=4 dim=4", isolate=False)
    assert verdict.status == "refused" and "op=attention" in verdict.reason, str(verdict)

    def attention(q, k, v):
        return q

    (verdict,) = attest.check(attention, LINES[0], isolate=False)
    assert verdict.status == "refused" and "op: came with version 7" in verdict.reason, str(verdict)


def test_two_parts_alone_by_names_of_its_own():
    def merge_states(v, s):
        assert v.shape == (2, 1, 2, 5, 8) and s.shape == (2, 1, 2, 5)
        return merge(part_o=v, part_lse=s)[0]

    backend = attest.Backend
    mine = type("Mine", (backend,), {
        "attention": staticmethod(merge_states), "keywords": {"part_o": "v", "part_lse": "s"}, "refuses": ["parts"],
    })  # fmt: skip
    right, refused = attest.check(mine(), ["op=merge heads=2 seq=5 dim=8", "op=merge heads=2 seq=5 dim=8 parts=3"], isolate=False)
    assert right.status == "pass", str(right)
    assert refused.status == "refused" and "parts" in refused.reason, str(refused)


def test_the_reference_is_that_of_the_definition():
    (inputs, expected, bounds, *_) = attest._attest.reference(LINES[0], {}, 1)
    shape = (3, 1, 4, 8)
    found = merged(inputs["part_o"].reshape(*shape, 16), inputs["part_lse"].reshape(shape), np.exp, np.log)
    assert (abs(found["o"] - expected["o"]) <= bounds["o"]).all()
