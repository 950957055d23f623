"""Gradients of a callable by the automatic differentiation of its library: PyTorch's or JAX's."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

from attest._attest import Call

# The tensors whose gradients each result holds, one behind the other along the keys.
LEAVES = {
    "dq": ("q",), "dk": ("past_k", "k"), "dv": ("past_v", "v"), "dmask": ("bias", "added"), "dsinks": ("sinks",),
    "ddecay": ("decay",), "dbeta": ("beta",), "dstate": ("state",),
}  # fmt: skip


def features(keywords: Mapping[str, str]) -> set[str]:
    """What a callable with these keywords takes besides, when it is differentiated."""
    taken = {"pass=backward", "pass=both", "out=dq", "out=dk", "out=dv"}
    taken |= {"out=dmask"} if {"bias", "added"} & set(keywords) else set()
    for grad in ("dsinks", "ddecay", "dbeta", "dstate"):
        taken |= {f"out={grad}"} if set(LEAVES[grad]) & set(keywords) else set()
    return taken | ({"dlse", "dpresent"} if "outputs" in keywords else set())


def refusal(call: Call) -> Optional[str]:
    """Why gradients of this call can't be had so."""
    if call.pass_ == "forward":
        return None
    if call.pass_ == "backward" and call.op == "attention":
        return 'pass=backward: saved results are not used by gradients="autodiff", which runs forward; pass=both asks for that'
    if call.page_size is not None:
        return 'paged: gradients of pages are not had by gradients="autodiff"'
    if call.past_lengths is not None:
        return 'past: gradients of as many cached keys as each sequence has are not had by gradients="autodiff"'
    return None


def differentiated(function: Callable[..., Any], call: Call, keywords: Mapping[str, str]) -> Callable[..., Any]:
    """A callable for q, k, v, do, dlse, dpresent and the options of `function` that returns a dict of what the call asks for."""
    wanted = [name for name in call.outputs if name in LEAVES]
    results = ["o", *(name for name in call.outputs if name not in LEAVES and name != "o")]
    for feature, result in (("dlse", "lse"), ("dpresent", "present_state")):
        if feature in call.features and result not in results:
            results.append(result)
    shapes = {
        "dmask": call.mask_shape,
        "ddecay": (0, 0, 0, 1) if "decay=head" in call.features else None,
        "dbeta": (0, 1, 0, 0) if "beta=one" in call.features else None,
    }

    def attention(
        q: Any, k: Any, v: Any, *, do: Any, dlse: Any = None, dpresent: Any = None, **options: Any
    ) -> dict[str, Any]:
        given = {"q": q, "k": k, "v": v}
        given.update({name: options[keyword] for name, keyword in keywords.items() if keyword in options})
        leaves = {name: given[name] for grad in wanted for name in LEAVES[grad] if given.get(name) is not None}

        def forward(*tensors: Any) -> dict[str, Any]:
            now = dict(zip(leaves, tensors))
            said = {**options, **{keywords[name]: tensor for name, tensor in now.items() if name not in "qkv"}}
            if len(results) > 1:
                said[keywords["outputs"]] = tuple(results)
            found = function(now.get("q", q), now.get("k", k), now.get("v", v), **said)
            if isinstance(found, dict):
                return {name: found[name] for name in results}
            return dict(zip(results, found if isinstance(found, (tuple, list)) else (found,)))

        pull = _torch_pull if _library(q) == "torch" else _jax_pull
        losses = {"o": do, "lse": dlse, "present_state": dpresent}
        given_losses = {name: loss for name, loss in losses.items() if loss is not None}
        found, of_leaves = pull(forward, list(leaves.values()), given_losses)
        by_leaf = dict(zip(leaves, of_leaves))
        for grad in wanted:
            parts = [by_leaf[name] for name in LEAVES[grad] if name in by_leaf]
            whole = parts[0] if len(parts) == 1 else _joined(parts)
            for axis, extent in enumerate(shapes.get(grad) or ()):  # 1: the input is broadcast along it
                if extent == 1 and whole.shape[axis] != 1:
                    whole = whole.sum(axis, keepdims=True)
            found[grad] = _as_type(whole, call.output_types[grad])
        return found

    return attention


def _library(tensor: Any) -> str:
    name = type(tensor).__module__.partition(".")[0]
    if name not in ("torch", "jax", "jaxlib"):
        raise TypeError(f'gradients="autodiff" takes tensors of PyTorch or JAX, not {type(tensor).__name__} of {name}')
    return "torch" if name == "torch" else "jax"


def _torch_pull(forward: Callable[..., Any], tensors: list[Any], given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    import torch  # type: ignore[import-not-found, unused-ignore]

    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        found = forward(*leaves)
    for name in given:
        if not found[name].requires_grad:
            raise RuntimeError(f"PyTorch has no gradient of its {name}: it was computed without grad mode, or detached")
    roots = [found[name] for name in given]
    cotangents = [given[name].reshape(root.shape).to(root.dtype) for name, root in zip(given, roots)]
    of_leaves = torch.autograd.grad(roots, leaves, cotangents, allow_unused=True)
    whole = [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, of_leaves)]
    return {name: tensor.detach() for name, tensor in found.items()}, whole


def _jax_pull(forward: Callable[..., Any], tensors: list[Any], given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    import jax  # type: ignore[import-not-found, unused-ignore]

    def roots(*leaves: Any) -> tuple[list[Any], dict[str, Any]]:
        found = forward(*leaves)
        return [found[name] for name in given], found

    at_roots, pull, found = jax.vjp(roots, *tensors, has_aux=True)
    return found, pull([given[name].reshape(root.shape).astype(root.dtype) for name, root in zip(given, at_roots)])


def _joined(parts: list[Any]) -> Any:
    if _library(parts[0]) == "torch":
        import torch  # type: ignore[import-not-found, unused-ignore]

        return torch.cat(parts, 2)
    import jax.numpy  # type: ignore[import-not-found, unused-ignore]

    return jax.numpy.concatenate(parts, 2)


def _as_type(tensor: Any, word: str) -> Any:
    """Of the type that a case line calls so."""
    name = "bfloat16" if word == "bf16" else word.replace("f", "float")
    if _library(tensor) == "jax":
        return tensor.astype(name)
    import torch  # type: ignore[import-not-found, unused-ignore]

    return tensor.to(getattr(torch, name))
