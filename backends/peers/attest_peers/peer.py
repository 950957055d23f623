"""What adapters share: all options of a call at once, and what a library can't do."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from attest._attest import Call, all_features

import attest
from attest_peers.request import ADDING, CACHE, HIDING, SHAPES, Request


class Refusing(attest.Backend):
    """Says of each feature that it doesn't take what the library lacks."""

    takes: frozenset[str] = frozenset()
    cannot: Mapping[str, str] = {}  #: of a feature not taken: why, as a sentence that names what the library lacks

    @property
    def refuses(self) -> list[str]:  # type: ignore[override]
        return [word for word in all_features() if word not in self.takes]

    def _refusal(self, call: Call) -> Optional[str]:
        lacking = next((word for word in call.features if word not in self.takes), None)
        if lacking is not None and lacking in self.cannot:
            return f"{lacking}: {self.cannot[lacking]}"
        return super()._refusal(call)


class Peer(Refusing):
    """Another library's attention. A subclass says what it takes, and computes."""

    takes: frozenset[str] = SHAPES | HIDING | ADDING | CACHE
    conventions: Mapping[str, str] = {}  # type: ignore[assignment]

    def attention(
        self, q: Any, k: Any, v: Any, *, scale: Any = None, causal: bool = False, align: str = "top-left",
        window: Any = (None, None), prefix: int = 0, key_lengths: Any = None, query_lengths: Any = None,
        segments: Any = None, mask: Any = None, bias: Any = None, blocks: Any = None, block_size: Any = None,
        softcap: Any = None, alibi_slopes: Any = None, sinks: Any = None, past_k: Any = None, past_v: Any = None,
        outputs: Any = ("o",), do: Any = None, dlse: Any = None, pass_: str = "forward",
        saved_o: Any = None, saved_lse: Any = None, output_types: Any = None, k_scale: Any = None, k_scales: Any = None,
        v_scale: Any = None, v_scales: Any = None,
    ) -> Any:  # fmt: skip
        request = Request(
            q.shape[0], q.shape[1], q.shape[2], k.shape[2] + (0 if past_k is None else past_k.shape[2]), scale, causal,
            align, window, prefix, key_lengths, query_lengths, segments, mask, bias, blocks, block_size, softcap,
            alibi_slopes, sinks, past_k, past_v, outputs, saved_o, saved_lse, k_scales, v_scales,
        )  # fmt: skip
        found = self.compute(q, k, v, request) if do is None else self.compute_gradients(q, k, v, request, do, dlse)
        if isinstance(found, dict):
            return {name: self.to_host(array) for name, array in found.items()}
        return self.to_host(found)

    def compute(self, q: Any, k: Any, v: Any, request: Request) -> Any:
        """The outputs, as attention() of attest.Backend returns them, but for to_host()."""
        raise NotImplementedError

    def compute_gradients(self, q: Any, k: Any, v: Any, request: Request, do: Any, dlse: Any) -> Any:
        """Outputs and gradients, where a subclass takes `pass=both` (gradients.py)."""
        raise NotImplementedError

    def to_host(self, array: Any) -> Any:
        """What attest reads, of an array that compute() or compute_gradients() made."""
        return array

    def cannot_do(self, call: Call) -> Optional[str]:
        """Why it doesn't do a call whose features it takes."""
        return None

    def refuse(self, call: Call) -> Optional[str]:
        if call.past and 0 in (call.batch, call.query_heads):
            return "past: a cache without elements is not handed over, so that its length is unknown"
        return self.cannot_do(call)
