"""Gradients from a callable: its own, or those of automatic differentiation."""

import kernels
import numpy as np
import pytest
import recurrence

import attest

LINES = [
    "pass=backward heads=2/1 seq=5x7 dim=4/3",
    "pass=backward seq=7x5 dim=4 causal align=bottom-right",  # the first rows see nothing
    "pass=backward seq=7x5 dim=4 causal align=bottom-right poison=hidden:do",
    "pass=backward batch=2 heads=4/2 seq=6 dim=4 scale=-0.5 softcap=2 causal dlse out=dq,dk,dv",
    "pass=both heads=2 seq=5 dim=4 mask=add:1HQK:neginf(0.3) sinks out=o,dq,dk,dv,dmask,dsinks",
    "pass=both heads=2/1 seq=6 dim=4 mask=add:11QK:normal dlse out=o,lse,dmask,dv",
    "pass=backward dtype=f16 heads=2 seq=5 dim=8 out=dv",
    "pass=backward dtype=f64 heads=2 seq=5 dim=8 mask=add:1H1K:normal sinks dlse out=dsinks,dmask,dq",
]


def gradients(
    q, k, v, *, do=None, dlse=None, saved_o=None, saved_lse=None, pass_="forward", outputs=("o",), scale=None,
    causal=False, align="top-left", bias=None, softcap=None, sinks=None,
):  # fmt: skip
    """As reference/README.md defines them, P and D from the scores and nothing from what was saved."""
    types = {"lse": accumulator(q), "dsinks": accumulator(q), "dmask": None if bias is None else bias.dtype}
    wide_q, wide_k, wide_v = (t.astype(np.float64) for t in (q, k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    found = kernels.attention(
        wide_q, wide_k, wide_v, scale=scale, causal=causal, align=align, bias=bias, softcap=softcap, sinks=sinks,
        outputs=("o", "lse", "weights", "raw"),
    )  # fmt: skip
    if do is not None:
        p, group = found["weights"], q.shape[1] // k.shape[1]
        over_keys = [t.repeat(group, 1) for t in (wide_k, wide_v)]
        dead = ~np.isfinite(found["lse"]) | (p == 0).all(-1, keepdims=True)
        do = np.where(dead, 0, do.astype(np.float64))
        dp = do @ over_keys[1].swapaxes(2, 3)
        delta = (p * dp).sum(-1, keepdims=True)
        dlse = np.zeros_like(delta) if dlse is None else dlse.astype(np.float64)
        ds = p * (dp - delta + dlse)
        dt = ds if softcap is None else ds * (1 - np.tanh(found["raw"] / softcap) ** 2)
        of_group = [scale * dt.swapaxes(2, 3) @ wide_q, p.swapaxes(2, 3) @ do]
        found["dq"] = scale * dt @ over_keys[0]
        found["dk"], found["dv"] = (t.reshape(*k.shape[:2], group, *t.shape[2:]).sum(2) for t in of_group)
        if bias is not None:  # axes of stride 0 are broadcast
            found["dmask"] = ds.sum(tuple(n for n in range(4) if bias.strides[n] == 0), keepdims=True)
        if sinks is not None:
            share = np.exp(sinks[None, :, None, None] - found["lse"])
            found["dsinks"] = (share * (dlse - delta)).sum((0, 2, 3))
    return {name: found[name].astype(types.get(name) or q.dtype) for name in outputs}


def accumulator(q):
    return np.float64 if q.dtype == np.float64 else np.float32


def only_backward(q, k, v, *, do, saved_o, saved_lse):
    """A backward kernel, with what was saved."""
    q, k, v, do, saved_o, saved_lse = (t.astype(np.float64) for t in (q, k, v, do, saved_o, saved_lse))
    p = np.exp(q @ k.swapaxes(2, 3) * q.shape[-1] ** -0.5 - saved_lse.reshape(*q.shape[:3], 1))
    ds = p * (do @ v.swapaxes(2, 3) - (do * saved_o).sum(-1, keepdims=True)) * q.shape[-1] ** -0.5
    return tuple(t.astype(np.float32) for t in (ds @ k, ds.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ do))


STATED = {"kept_weights": True, "delta_from_weights": True}


def without(name):
    """The gradients of a callable that forgets something."""

    def wrong(q, k, v, *, do=None, dlse=None, pass_="forward", outputs=("o",), bias=None, causal=False, softcap=None):
        options = dict(dlse=dlse, bias=bias, causal=causal, softcap=softcap)
        options[name] = {"causal": False}.get(name)
        found = gradients(q, k, v, do=do, outputs=[one for one in outputs if one != "dmask"], **options)
        return found

    return wrong


@pytest.mark.parametrize("line", LINES)
def test_a_callable_gives_gradients_itself(line):
    (found,) = attest.check(gradients, line, arithmetic=STATED, shrink=False)
    assert found.passed, str(found)


@pytest.mark.parametrize("name, options", [("dlse", "dlse"), ("causal", "causal"), ("softcap", "softcap=0.5")])
def test_a_wrong_gradient_is_caught(name, options):
    line = f"pass=backward heads=2 seq=6 dim=4 {options}"
    (found,) = attest.check(without(name), line, arithmetic=STATED, shrink=False)
    assert found.status == "fail", str(found)
    assert found.worst["output"] in ("dq", "dk", "dv")


def test_a_backward_kernel_is_refused_other_passes():
    lines = [f"{which}heads=2 seq=6x5 dim=4" for which in ("pass=backward ", "pass=both ", "")]
    backward, both, forward = attest.check(only_backward, lines, shrink=False)
    assert backward.passed, str(backward)
    assert both.reason.startswith("pass=both: only_backward has no parameter `pass_`")
    assert forward.reason == "pass=forward: only_backward needs `do`, which this pass does not give"


def test_lines_get_another_pass():
    lines = ["heads=2 seq=5 dim=4 causal out=o,lse lse.offset=1", "pass=backward seq=4 dim=4", "op=linear seq=4 dim=4"]
    backward = attest.check(gradients, lines, pass_="backward", arithmetic=STATED)
    linear = "op=linear pass=backward seq=4 dim=4"
    assert [found.case for found in backward] == ["pass=backward heads=2 seq=5 dim=4 causal", lines[1], linear]
    assert backward[2].status == "refused" and "version 6 of the contract" in backward[2].reason, backward[2]
    both = attest.check(gradients, lines, pass_="both", arithmetic=STATED)
    assert both[0].case == "pass=both heads=2 seq=5 dim=4 causal out=o,lse lse.offset=1"
    assert backward.count("pass") == both.count("pass") == 2, (backward, both)
    with pytest.raises(attest.UserError, match="forward, backward or both"):
        attest.check(gradients, lines, pass_="back")


LINEAR = [
    "op=linear pass=backward heads=2/1 seq=5 dim=4/3 state dpresent out=dq,dk,dv,dstate",
    "op=gated pass=backward batch=2 heads=2 seq=6 dim=4 scale=-0.5 decay=head out=dk,ddecay",
    "op=delta pass=both heads=2 seq=6 dim=4 beta=one out=o,dq,dk,dbeta",
    "op=gated_delta pass=both heads=4/2 seq=7 dim=3/2 state dpresent out=o,present,dq,dk,dv,ddecay,dbeta,dstate",
]


def linear_gradients(
    q, k, v, *, op, do=None, dpresent=None, pass_="forward", scale=None, decay=None, beta=None, state=None,
    outputs=("o",),
):  # fmt: skip
    """Of linear attention, in float64."""
    found = {} if pass_ == "backward" else recurrence.attention(
        q, k, v, op=op, scale=scale, decay=decay, beta=beta, state=state
    )  # fmt: skip
    if pass_ != "forward":
        found |= recurrence.gradients(
            q, k, v, op=op, scale=scale, decay=decay, beta=beta, state=state, do=do, dpresent=dpresent
        )  # fmt: skip
    return {name: found[name].astype(q.dtype) for name in outputs}


def test_linear_attention_has_gradients():
    results = attest.check(linear_gradients, LINEAR, arithmetic=STATED)
    assert results.count("pass") == len(LINEAR), results

    def without_last_state(q, k, v, *, op, do=None, dpresent=None, pass_="forward", state=None, outputs=("o",)):
        return linear_gradients(q, k, v, op=op, do=do, pass_=pass_, state=state, outputs=outputs)

    (found,) = attest.check(without_last_state, LINEAR[0], arithmetic=STATED, shrink=False)
    assert found.status == "fail", str(found)

    def of_version_5(q, k, v, *, op=None, do=None, pass_="forward", state=None, outputs=("o",)):
        raise AssertionError("it could not know of them")

    (found,) = attest.check(of_version_5, "op=linear pass=backward seq=5 dim=4", arithmetic=STATED)
    assert found.status == "refused" and "version 6 of the contract" in found.reason, str(found)


def test_a_callable_without_gradients_is_refused():
    (found,) = attest.check(lambda q, k, v: v, "pass=backward seq=4 dim=4")
    assert found.status == "refused"
    assert 'no parameter `do` for it, and no gradients="autodiff" is stated' in found.reason
    with pytest.raises(attest.UserError, match='tensors are "numpy"'):
        attest.check(kernels.attention, "pass=backward seq=4 dim=4", gradients="autodiff")
    with pytest.raises(attest.UserError, match="nearest: autodiff"):
        attest.check(kernels.attention, "pass=backward seq=4 dim=4", gradients="auto")


def attention_of(xp, as_float32):
    """Attention of a library whose arrays are differentiated."""

    def attention(
        q, k, v, *, scale=None, causal=False, bias=None, softcap=None, sinks=None, past_k=None, past_v=None,
        outputs=("o",),
    ):  # fmt: skip
        if past_k is not None:
            k, v = xp.concatenate([past_k, k], 2), xp.concatenate([past_v, v], 2)
        by_group = q.reshape(*k.shape[:2], -1, *q.shape[2:])
        s = by_group @ k[:, :, None].swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
        s = s.reshape(*q.shape[:3], k.shape[2])
        s = s if softcap is None else softcap * xp.tanh(s / softcap)
        s = s if bias is None else s + bias
        if causal:
            s = xp.where(xp.tril(xp.ones_like(s), k.shape[2] - q.shape[2]) > 0, s, -xp.inf)
        top = xp.amax(s, -1)[..., None]
        e = xp.exp(s - top)
        total = e.sum(-1)[..., None]
        total = total if sinks is None else total + xp.exp(as_float32(sinks)[None, :, None, None] - top)
        p = (e / total).reshape(*by_group.shape[:-1], k.shape[2])
        o = (p @ v[:, :, None]).reshape(*q.shape[:3], v.shape[3])
        return o if len(outputs) == 1 else {"o": o, "lse": top + xp.log(total)}

    return attention


DIFFERENTIATED = [
    "pass=both heads=2/1 seq=5x7 dim=4/3",
    "pass=both batch=2 heads=4/2 seq=6 dim=4 scale=-0.5 softcap=2 causal dlse",
    "pass=both heads=2 seq=5 dim=4 mask=add:1HQK:normal sinks out=o,dq,dk,dv,dmask,dsinks",
    "pass=both heads=2/1 seq=6 dim=4 mask=add:1H1K:normal dlse out=o,lse,dmask,dv",
    "pass=both heads=2 seq=3x8 dim=4 past=5 causal",
]


def recurrence_of(xp, stack):
    """Linear attention of a library whose arrays are differentiated."""

    def attention(q, k, v, *, op, scale=None, decay=None, beta=None, state=None, outputs=("o",)):
        group = q.shape[1] // k.shape[1]
        memory = k[:, :, 0, :, None] * v[:, :, 0, None, :] * 0 if state is None else state
        rows = []
        for t in range(q.shape[2]):
            key, value = k[:, :, t, :, None], v[:, :, t, None, :]
            if decay is not None:
                memory = memory * xp.exp(decay[:, :, t, :, None])
            if beta is not None:
                value = beta[:, :, t, :, None] * (value - (memory * key).sum(2)[:, :, None])
            memory = memory + key * value
            read = q.reshape(q.shape[0], -1, group, *q.shape[2:])[:, :, :, t, None, :] @ memory[:, :, None]
            rows.append(read.reshape(q.shape[0], q.shape[1], -1) * (q.shape[-1] ** -0.5 if scale is None else scale))
        o = stack(rows, 2)
        return o if len(outputs) == 1 else {"o": o, "present_state": memory}

    return attention


def with_pages(q, k, v, *, page_table=None, page_size=None, key_lengths=None):
    return q


def check_library(attention, detached, tensors, lines):
    results = attest.check(attention, lines, tensors=tensors, gradients="autodiff", arithmetic=STATED)
    assert results.count("pass") == len(lines), results
    (found,) = attest.check(with_pages, "pass=both seq=4 dim=4 paged=2", tensors=tensors, gradients="autodiff")
    assert found.status == "refused" and "autodiff" in found.reason
    (found,) = attest.check(attention, "pass=backward seq=4 dim=4", tensors=tensors, gradients="autodiff")
    assert found.status == "refused" and "saved results" in found.reason
    (found,) = attest.check(attention, DIFFERENTIATED[0], tensors=tensors)
    assert found.status == "refused" and "autodiff" in found.reason
    (found,) = attest.check(detached, DIFFERENTIATED[0], tensors=tensors, gradients="autodiff", shrink=False)
    assert found.status == "fail", str(found)


def test_gradients_of_pytorch():
    torch = pytest.importorskip("torch")
    attention = attention_of(torch, lambda t: t.float())
    check_library(attention, torch.no_grad()(lambda q, k, v: attention(q, k, v)), "torch", DIFFERENTIATED)
    (found,) = attest.check(
        lambda q, k, v, *, causal=False: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal),
        "pass=both heads=2 seq=33 dim=16 causal", tensors="torch", gradients="autodiff",
    )  # fmt: skip
    assert found.passed, str(found)
    results = attest.check(
        recurrence_of(torch, torch.stack), LINEAR, tensors="torch", gradients="autodiff", arithmetic=STATED
    )  # fmt: skip
    assert results.count("pass") == len(LINEAR), results


def test_gradients_of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)  # sinks are float64
    attention = attention_of(jax.numpy, lambda t: t.astype("float32"))
    whole = [line for line in DIFFERENTIATED if "1HQK" not in line and "1H1K" not in line]  # JAX takes no strides of 0
    with_mask = "pass=both batch=2 heads=2 seq=5 dim=4 mask=add:BHQK:normal sinks out=o,dmask,dsinks"
    check_library(
        attention, lambda q, k, v: jax.lax.stop_gradient(attention(q, k, v)), jax.dlpack.from_dlpack,
        [*whole, with_mask],
    )  # fmt: skip
