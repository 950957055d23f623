"""What hides keys, as transformers/masking_utils.py can be asked for it: without Transformers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import numpy as np

from attest_peers.request import Request, compact


@dataclass
class Masking:
    """Arguments of its functions, and how many keys are put into a cache before it is asked."""

    padding: Optional[np.ndarray]  # B,S: True is seen, the mask that a tokenizer returns
    cached: int
    causal: bool
    window: Optional[int] = None  # sliding_window: with the query's own key; without `causal` keys on each side
    chunk: Optional[int] = None  # attention_chunk_size
    positions: Optional[np.ndarray] = None  # position_ids of documents side by side


def masking_of(request: Request) -> Optional[Masking]:
    """None where its functions can't say it, so that a 4D mask must: "a 4D mask is returned as-is"."""
    left, right = request.window
    causal = request.causal or right == 0
    if causal:
        window_fits = right in (None, 0)
    else:
        window_fits = left == right
    row = request.mask is None or compact(request.mask).shape[1:3] == (1, 1)
    if not window_fits or not row or request.blocks is not None or request.query_lengths is not None:
        return None
    if request.segments is not None:
        return _of_documents(request, left) if causal else None
    cached = request.past
    if cached and request.keys - cached != request.queries:
        return None  # get_mask_sizes(query_length): as many keys come as queries
    if request.align == "bottom-right" and not cached and (causal or left is not None):
        cached = request.keys - request.queries
        if cached < 0 or request.key_lengths is not None:
            return None
    if causal and not cached and (request.queries == 1 < request.keys or request.queries > request.keys):
        return None  # no model asks so: one query sees all that is there, and there is a key for each query
    window = left if left is None or not causal else left + 1
    return Masking(_padding(request), cached, causal, window)


def _of_documents(request: Request, left: Optional[int]) -> Optional[Masking]:
    """Documents of one length are chunks; others are told apart by positions that start anew."""
    of_queries, of_keys = (list(lengths) for lengths in request.segments or ())
    if of_queries != of_keys or 0 in of_queries or request.past or request.lengths_given or request.mask is not None:
        return None
    of_one_length = len(set(of_queries[:-1])) == 1 and of_queries[-1] <= of_queries[0]
    if of_one_length and left is None and not request.prefix:
        return Masking(None, 0, True, chunk=of_queries[0])
    positions = np.concatenate([np.arange(length) for length in of_queries]) if of_queries else np.arange(0)
    return Masking(None, 0, True, None if left is None else left + 1, positions=positions)


def _padding(request: Request) -> Optional[np.ndarray]:
    if request.key_lengths is None and request.mask is None:
        return None
    seen = np.ones((request.batch, request.keys), bool)
    if request.key_lengths is not None:
        seen &= np.arange(request.keys)[None, :] < np.asarray(request.key_lengths)[:, None]
    if request.mask is not None and request.heads:
        seen &= np.asarray(request.mask)[:, 0, 0, :]
    return seen
