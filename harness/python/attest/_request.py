"""What a call asks for, as arrays: in a form that libraries with one mask and one bias can take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Sequence

import numpy as np

Lengths = Optional[Sequence[int]]

#: What one boolean mask can say.
HIDING = frozenset(
    ["causal", "align=bottom-right", "window", "prefix", "lengths", "lengths of queries", "segments", "mask=bool",
     "blocks"]
)  # fmt: skip
#: What one additive mask can say besides.
ADDING = frozenset(["mask=add", "mask.dtype", "alibi"])
#: Sizes and how tensors lie; types are each library's own.
SHAPES = frozenset(
    ["op=attention", "batch", "heads", "grouped heads", "seq=LqxLk", "dim=Dqk/Dv", "a size 0", "scale", "strides"]
)
#: Keys and values that were computed before: they are put before the new ones.
CACHE = frozenset(["past"])


@dataclass
class Request:
    """One call beside its q, k and v. Keys are counted with the cached ones, which come first."""

    batch: int
    heads: int  # of queries
    queries: int
    keys: int
    scale: Optional[float] = None  # None: 1/sqrt(features)
    causal: bool = False
    align: str = "top-left"
    window: tuple[Optional[int], Optional[int]] = (None, None)
    prefix: int = 0
    key_lengths: Lengths = None
    query_lengths: Lengths = None
    segments: Optional[tuple[Sequence[int], Sequence[int]]] = None
    mask: Any = None  # bool, B,H,L,S
    bias: Any = None  # float, B,H,L,S
    blocks: Any = None
    block_size: Optional[tuple[int, int]] = None
    softcap: Optional[float] = None
    alibi_slopes: Any = None
    sinks: Any = None
    past_k: Any = None  # B,Hkv,P,D
    past_v: Any = None
    outputs: tuple[str, ...] = ("o",)
    saved_o: Any = None  # of an earlier forward pass, where the call is of gradients alone
    saved_lse: Any = None
    k_scales: Any = None  # B,Hkv,S,blocks: a number for each run of columns of k, whose codes it multiplies
    v_scales: Any = None

    @property
    def past(self) -> int:
        """How many keys are cached."""
        return 0 if self.past_k is None else int(self.past_k.shape[2])

    @property
    def diagonal_at_corner(self) -> bool:
        """Whether query 0 stands at key 0, as where a library's own `causal` counts from the first of both."""
        at_end = self.align == "bottom-right"
        return not (self.past or self.segments or (at_end and (self.queries != self.keys or self.lengths_given)))

    @property
    def lengths_given(self) -> bool:
        return self.key_lengths is not None or self.query_lengths is not None

    @property
    def hides_by_position(self) -> bool:
        """Whether anything but `causal` and a boolean mask hides keys."""
        places = self.window != (None, None) or self.prefix or self.lengths_given or self.segments
        return bool(places or self.blocks is not None)

    def causal_alone(self) -> bool:
        """Whether `causal` from the first query and key is all that is hidden by place."""
        return self.causal and self.diagonal_at_corner and not self.hides_by_position

    def only_causal(self) -> bool:
        """Whether that is all beside q, k and v: many libraries have a way of its own for it, and only for it."""
        return self.causal_alone() and self.mask is None and not self.adds

    def visible(self) -> Any:
        """All that hides but the bias: True where a query sees a key, B,H,L,S or 1; None where all is seen."""
        if not (self.causal or self.hides_by_position):
            return None if self.mask is None else compact(self.mask)
        difference = self._keys_beyond_diagonal()
        in_band = np.ones_like(difference, bool)
        if self.causal:
            in_band &= difference <= 0
        left, right = self.window
        if left is not None:
            in_band &= difference >= -left
        if right is not None:
            in_band &= difference <= right
        if self.prefix:
            in_band |= self._places_of_keys()[None, None, None, :] < self.prefix
        seen = in_band & self._documents() & self._within_lengths()
        if self.blocks is not None:
            seen = seen & self._blocks()
        return seen if self.mask is None else seen & np.asarray(self.mask)

    def alibi(self) -> Any:
        """What ALiBi adds, float64, B,H,L,S."""
        if self.alibi_slopes is None:
            return None
        slopes = np.asarray(self.alibi_slopes, np.float64)[None, :, None, None]
        return -slopes * np.abs(self._keys_beyond_diagonal())

    @property
    def adds(self) -> bool:
        """Whether anything is added to scores."""
        return self.bias is not None or self.alibi_slopes is not None

    def bias_with(self, visible: Any, dtype: Any) -> Any:
        """All that is added, with -inf where `visible` is False, as `dtype`; None where nothing is added."""
        if not self.adds:
            return None
        alibi = self.alibi()
        if alibi is None and visible is None:
            return compact(self.bias).astype(dtype)
        total = np.zeros((1, 1, 1, 1)) if self.bias is None else compact(self.bias).astype(np.float64)
        if alibi is not None:
            total = total + alibi
        return (total if visible is None else np.where(visible, total, -np.inf)).astype(dtype)

    def one_mask(self, visible: Any, dtype: Any) -> Any:
        """For a library with one mask: what is added and what hides as `dtype`, or `visible` where nothing is added."""
        return self.bias_with(visible, dtype) if self.adds else visible

    def with_cached(self, k: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
        """All keys and values, cached ones first."""
        if self.past_k is None:
            return k, v
        return np.concatenate([self.past_k, k], 2), np.concatenate([self.past_v, v], 2)

    def _counts(self, lengths: Lengths, full: int) -> np.ndarray:
        return np.full(1, full) if lengths is None else np.asarray(lengths)

    def _keys_beyond_diagonal(self) -> Any:
        """How far right of the query's diagonal a key lies, B or 1,1,L,S."""
        if self.segments is not None:
            places = _places(self.segments[0])
            if self.align == "bottom-right":
                places = places + np.repeat(np.subtract(self.segments[1], self.segments[0]), self.segments[0])
            diagonal = places[None, :]
        else:
            offset = np.full(1, self.past)
            if self.align == "bottom-right" and not self.past:
                offset = self._counts(self.key_lengths, self.keys) - self._counts(self.query_lengths, self.queries)
            diagonal = np.arange(self.queries)[None, :] + offset[:, None]
        return self._places_of_keys()[None, None, None, :] - diagonal[:, None, :, None]

    def _places_of_keys(self) -> np.ndarray:
        return np.arange(self.keys) if self.segments is None else _places(self.segments[1])

    def _documents(self) -> Any:
        if self.segments is None:
            return True
        of_query, of_key = (np.repeat(np.arange(len(part)), part) for part in self.segments)
        return (of_query[:, None] == of_key[None, :])[None, None]

    def _within_lengths(self) -> Any:
        if not self.lengths_given:
            return True
        queries = np.arange(self.queries)[None, :] < self._counts(self.query_lengths, self.queries)[:, None]
        keys = np.arange(self.keys)[None, :] < self._counts(self.key_lengths, self.keys)[:, None]
        return queries[:, None, :, None] & keys[:, None, None, :]

    def _blocks(self) -> np.ndarray:
        rows, columns = self.block_size  # type: ignore[misc]
        wide = np.repeat(np.repeat(np.asarray(self.blocks), rows, axis=2), columns, axis=3)
        return wide[:, :, : self.queries, : self.keys]


def compact(array: Any) -> Any:
    """The array with length 1 along the axes that repeat it, as its owner stored it."""
    array = np.asarray(array)
    return array[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)]


def _places(lengths: Sequence[int]) -> np.ndarray:
    """Of consecutive documents: the place of each token in its own."""
    return np.concatenate([np.arange(length) for length in lengths]) if len(lengths) else np.arange(0)
