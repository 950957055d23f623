"""Adapters for timing: what a program does once, or before it calls its library, is done before the clock starts."""

from __future__ import annotations

from typing import Any, Callable, Hashable, Optional

import numpy as np

from attest_peers.peer import Peer
from attest_peers.request import Request


class Readied(Peer):
    """Beside an adapter to a library: `readied` returns the library's call, with all that it is given laid out."""

    _kept: dict[Hashable, Any] = {}

    def ready(self, q: Any, k: Any, v: Any, **options: Any) -> Callable[[], Any]:
        request = Request(q.shape[0], q.shape[1], q.shape[2], k.shape[2], **options)
        return self.readied(q, k, v, request, key_of(q, k, v, request))

    def readied(self, q: Any, k: Any, v: Any, request: Request, key: Optional[Hashable]) -> Callable[[], Any]:
        """What is called under the clock. With the same `key` masks are the same, so that they are made once."""
        raise NotImplementedError

    def keep(self, key: Optional[Hashable], make: Callable[[], Any]) -> Any:
        """What `make()` gave for this key; without a key it is made anew."""
        if key is None:
            return make()
        if key not in self._kept:
            self._kept = {key: make()}  # cases come one after another
        return self._kept[key]

    def buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Memory that stays: a run that wrote to fresh pages each time would wait for the system."""
        held: dict[str, np.ndarray] = self.__dict__.setdefault("_buffers", {})
        if name not in held or (held[name].shape, held[name].dtype) != (shape, dtype):
            held[name] = np.zeros(shape, dtype)
        return held[name]

    def refuse(self, call: Any) -> Optional[str]:
        if call.pass_ != "forward":
            return f"pass={call.pass_}: the forward pass alone is timed"
        if call.past:
            return "past: cached keys are not laid out for timing"
        return super().refuse(call)


def key_of(q: Any, k: Any, v: Any, request: Request) -> Optional[Hashable]:
    """All that a call says but for data; None where a mask is among the data."""
    r = request
    if r.mask is not None or r.bias is not None or r.blocks is not None:
        return None
    slopes = None if r.alibi_slopes is None else np.asarray(r.alibi_slopes).tobytes()
    sizes = tuple(q.shape), tuple(k.shape), tuple(v.shape), str(q.dtype)
    said = (r.scale, r.causal, r.align, r.window, r.prefix, r.key_lengths, r.query_lengths, r.segments, r.softcap)
    return sizes, repr(said), slopes
