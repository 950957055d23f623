"""Gradients of a library's attention, by the library's own differentiation of what the adapter computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from attest_peers.peer import Peer
from attest_peers.request import Request, compact

#: What a library that differentiates takes besides: it runs forward itself.
GRADIENTS = frozenset(["pass=both", "out=dq", "out=dk", "out=dv", "out=dmask", "strides of other tensors"])
# The inputs whose gradients each result holds, one behind the other along the keys.
INPUTS = {"dq": ("q",), "dk": ("past_k", "k"), "dv": ("past_v", "v"), "dmask": ("bias",)}


class Differentiated(Peer):
    """A subclass computes with its library's arrays, and pulls derivatives back through what it computed."""

    def compute_gradients(self, q: Any, k: Any, v: Any, request: Request, do: Any, dlse: Any) -> Any:
        given = {"q": q, "k": k, "v": v, "past_k": request.past_k, "past_v": request.past_v, "bias": request.bias}
        if request.bias is not None:
            given["bias"] = self.as_stored(request.bias)
        wanted = [name for name in request.outputs if name in INPUTS]
        names = [name for result in wanted for name in INPUTS[result] if given[name] is not None]
        derivatives = {"o": do} if dlse is None else {"o": do, "lse": dlse}
        results = tuple({**derivatives, **{name: None for name in request.outputs if name not in INPUTS}})

        def forward(*inputs: Any) -> dict[str, Any]:
            now = {**given, **dict(zip(names, inputs))}
            cached = {name: now[name] for name in ("past_k", "past_v", "bias")}
            made = self.compute(now["q"], now["k"], now["v"], replace(request, **cached, outputs=results))
            return made if isinstance(made, dict) else {"o": made}

        found, pulled = self.pull(forward, [given[name] for name in names], derivatives)
        by_input = dict(zip(names, pulled))
        for result in wanted:
            parts = [by_input[name] for name in INPUTS[result] if name in by_input]
            found[result] = parts[0] if len(parts) == 1 else self.joined(parts)
        return {name: found[name] for name in request.outputs}

    def refuse(self, call: Any) -> Optional[str]:
        if "out=dmask" in call.features and 0 in (call.batch, call.query_heads, call.query_length, call.key_length):
            return "out=dmask: strides of an empty mask do not show which axes repeat it"
        return super().refuse(call)

    def as_stored(self, bias: Any) -> Any:
        """The mask with length 1 along axes that repeat it: a gradient has its shape."""
        raise NotImplementedError

    def pull(
        self, forward: Callable[..., dict[str, Any]], inputs: Sequence[Any], derivatives: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        """What `forward` gives, and the loss's derivatives by each input, given those by some of the results."""
        raise NotImplementedError

    def joined(self, parts: Sequence[Any]) -> Any:
        """Gradients of cached and new keys, one behind the other along the keys."""
        raise NotImplementedError


def with_jax(forward: Callable[..., dict[str, Any]], inputs: Sequence[Any], derivatives: Mapping[str, Any]) -> Any:
    """pull() of what JAX differentiates."""
    import jax
    import jax.numpy as jnp

    def roots(*leaves: Any) -> tuple[list[Any], dict[str, Any]]:
        found = forward(*leaves)
        return [found[name] for name in derivatives], found

    at_roots, pull, found = jax.vjp(roots, *(jnp.asarray(array) for array in inputs), has_aux=True)
    given = [jnp.asarray(np.array(array)).reshape(root.shape) for array, root in zip(derivatives.values(), at_roots)]
    return found, pull(given)


class OfNumpy(Differentiated):
    """For libraries that are given arrays of NumPy."""

    def as_stored(self, bias: Any) -> Any:
        return compact(bias)

    def to_host(self, array: Any) -> Any:
        return np.asarray(array)

    def joined(self, parts: Sequence[Any]) -> Any:
        return np.concatenate([self.to_host(part) for part in parts], 2)
