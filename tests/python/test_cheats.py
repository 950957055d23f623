"""Callables that look fast by not doing their work where it is timed: none gets a speed, and each is told why."""

import threading

import numpy as np
import pytest

import attest

LINE = "heads=2 seq=48 dim=16"
LONG = "heads=8 seq=128 dim=64"  # milliseconds of work to be seen elsewhere
OUTSIDE_RUN = {"result_before_run", "first_download_works", "download_works", "upload_works", "above_roof"}


def attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ v / weights.sum(-1, keepdims=True)


def kept_by_shape():
    kept = {}

    def cheat(q, k, v):
        if q.shape not in kept:
            kept[q.shape] = attention(q, k, v)
        return kept[q.shape]

    return cheat


def kept_by_address():
    """The data are written over in place, and the array's address stays."""
    kept = {}

    def cheat(q, k, v):
        key = (q.ctypes.data, k.ctypes.data, v.ctypes.data)
        if key not in kept:
            kept[key] = attention(q, k, v)
        return kept[key]

    return cheat


def kept_by_first_numbers():
    kept = {}

    def cheat(q, k, v):
        key = (q.shape, q[..., :1, :2].tobytes())
        if key not in kept:
            kept[key] = attention(q, k, v)
        return kept[key]

    return cheat


def computed_when_asked_for():
    class Later:
        """An array in name: computed when somebody reads it."""

        def __init__(self, *tensors):
            self.tensors = tensors

        def __dlpack__(self, **options):
            return attention(*self.tensors).__dlpack__()

        def __dlpack_device__(self):
            return 1, 0

    return Later


def left_to_a_thread():
    """Gives back memory that a thread is still writing."""

    def cheat(q, k, v):
        out = np.empty_like(q)
        threading.Thread(target=lambda: np.copyto(out, attention(q, k, v))).start()
        return out

    return cheat


def asks_the_reference():
    def cheat(q, k, v):
        return attest.reference(LINE).expected["o"].astype(np.float32)

    return cheat


@pytest.mark.parametrize(
    "cheat, line, reasons",
    [
        (kept_by_shape, LINE, {"earlier_result"}),
        (kept_by_address, LINE, {"earlier_result"}),
        (kept_by_first_numbers, LINE, {"cached"}),  # every number is new in a run: only the same data are found again
        (computed_when_asked_for, LONG, OUTSIDE_RUN),
        (left_to_a_thread, LONG, {"wrong_result", "wrong_while_timed", "earlier_result", "result_after_run"}),  # by when the thread ends
        (asks_the_reference, LINE, {"uses_reference"}),
    ],
)
def test_a_cheat_gets_no_speed(cheat, line, reasons):
    (timed,) = attest.bench(cheat(), line, against=[], repetitions=2, min_seconds=0.01, threads=1)
    (found,) = timed.timings
    assert not found.seconds and found.no_speed in reasons, str(timed)


def test_the_honest_one_gets_its_speed():
    (timed,) = attest.bench(attention, LINE, against=[], repetitions=2, min_seconds=0.01, threads=1)
    assert not timed["attention"].wrong and timed["attention"].median > 0, str(timed)


GRADIENTS = "pass=backward heads=2 seq=48 dim=16"


def gradients(q, k, v, *, pass_, saved_o, saved_lse, do, outputs):
    scale = np.float32(q.shape[-1] ** -0.5)
    weights = np.exp(q @ k.swapaxes(-1, -2) * scale - saved_lse.reshape(*q.shape[:-1], 1))
    by_weights = do @ v.swapaxes(-1, -2)
    by_scores = weights * (by_weights - (do * saved_o).sum(-1, keepdims=True)) * scale
    return {"dq": by_scores @ k, "dk": by_scores.swapaxes(-1, -2) @ q, "dv": weights.swapaxes(-1, -2) @ do}


def first_gradients():
    kept = []

    def cheat(q, k, v, *, pass_, saved_o, saved_lse, do, outputs):
        if not kept:
            kept.append(gradients(q, k, v, pass_=pass_, saved_o=saved_o, saved_lse=saved_lse, do=do, outputs=outputs))
        return kept[0]

    return cheat


def gradients_of_first_keys():
    kept = []

    def cheat(q, k, v, *, pass_, saved_o, saved_lse, do, outputs):
        kept.append(k.copy())
        return gradients(q, kept[0], v, pass_=pass_, saved_o=saved_o, saved_lse=saved_lse, do=do, outputs=outputs)

    return cheat


@pytest.mark.parametrize("cheat, reason", [(first_gradients, "earlier_result"), (gradients_of_first_keys, "wrong_while_timed")])
def test_what_is_kept_of_the_first_gradients_earns_no_speed(cheat, reason):
    (timed,) = attest.bench(cheat(), GRADIENTS, against=[], repetitions=2, min_seconds=0.01, threads=1)
    (found,) = timed.timings
    assert not found.seconds and found.no_speed == reason, str(timed)


def test_honest_gradients_get_their_speed():
    (timed,) = attest.bench(gradients, GRADIENTS, against=[], repetitions=2, min_seconds=0.01, threads=1)
    assert not timed["gradients"].wrong and timed["gradients"].median > 0, str(timed)
