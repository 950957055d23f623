"""One implementation looked at closely: explain, shrink, fuzz, statements, bench; and the reference itself."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

import numpy as np

from attest import _attest, _progress
from attest._api import Cases, Request, isolated, rows_for, run_words, threads_for, worker_path
from attest._results import Verdict, verdict_from


class Printed:
    """Stands in a notebook as it prints."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True)
class Explanation(Printed):
    """The verdict on a case, and its worst elements with their bounds, term by term."""

    verdict: Verdict
    text: str

    def __str__(self) -> str:
        return self.text


def explain(
    implementation: Any, case: str, *, elements: int = 3, isolate: Optional[bool] = None, **stated: Any
) -> Explanation:
    """The worst elements of a case: got, expected, and where the bound comes from.

    >>> import attest
    >>> print(attest.explain("example", "seq=4 dim=4", elements=1).verdict.status)
    pass
    """
    request = request_for(implementation, isolate, stated)
    with worker_path():
        text, verdict = _attest.explain(request, case, elements, None)
    return Explanation(verdict_from(json.loads(verdict)), text)


@dataclass(frozen=True)
class Shrinking(Printed):
    """The smallest case on which an implementation still fails."""

    before: Verdict  #: of the case as it was
    smallest: Optional[Verdict]  #: None where nothing fails
    tried: int = 0  #: smaller cases that were run
    finished: bool = True  #: False: out of time

    def __str__(self) -> str:
        if self.smallest is None:
            return f"{self.before.case}\n{self.before.status}: there is no failure to shrink"
        return f"{self.before}\nsmallest: {self.smallest.case}\n  {self.smallest.reason}"


def shrink(
    implementation: Any,
    case: str,
    *,
    seconds: float = 10,
    out: str = "smallest.safetensors",
    isolate: Optional[bool] = None,
    **stated: Any,
) -> Shrinking:
    """Looks for the smallest case that fails as `case` does. That of a file is written to `out`.

    >>> import numpy as np
    >>> import attest
    >>> def without_scale(q, k, v, *, causal=False):
    ...     scores = q @ k.swapaxes(-1, -2)
    ...     weights = np.exp(scores - scores.max(-1, keepdims=True))
    ...     return weights @ v / weights.sum(-1, keepdims=True)
    >>> print(attest.shrink(without_scale, "batch=2 heads=3 seq=33x20 dim=8").smallest.status)
    fail
    """
    request = request_for(implementation, isolate, stated)
    with worker_path():
        before, small, tried, finished = _attest.shrink(request, case, seconds, os.fspath(out), None)
    smallest = None if small is None else verdict_from(json.loads(small))
    return Shrinking(verdict_from(json.loads(before)), smallest, tried, finished)


@dataclass(frozen=True)
class Finding:
    """A way in which random cases fail."""

    smallest: Verdict
    cause: str
    count: int  #: failures that look alike


@dataclass(frozen=True)
class Fuzzing(Printed):
    """What random cases came to."""

    cases: int
    passed: int
    refused: int
    inconclusive: int
    failed: int
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        lines = [f"{f.count} x  {f.cause}\n  {f.smallest.case}\n  {f.smallest.reason}" for f in self.findings]
        end = f"{self.cases} cases, {self.refused} refused, {self.inconclusive} inconclusive\n"
        return "\n".join([*lines, f"{end}{self.passed} passed, {self.failed} failed in {len(self.findings)} way(s)"])


def fuzz(
    implementation: Any,
    *,
    seconds: float = 60,
    count: int = 0,
    seed: int = 0,
    always: Sequence[str] = (),
    isolate: Optional[bool] = None,
    **stated: Any,
) -> Fuzzing:
    """Random cases until time or count run out; failures made small and told apart by cause. Every case has the options
    of one text of `always`, as "k.dtype=i8 v.dtype=i8", for implementations that refuse cases without.

    >>> import attest
    >>> attest.fuzz("example", count=5, seed=1).failed
    0
    """
    request = request_for(implementation, isolate, stated)
    request.seconds, request.count, request.seed, request.always = seconds, count, seed, list(always)
    with worker_path():
        found = _attest.fuzz(request, None)
    findings = tuple(Finding(verdict_from(json.loads(text)), cause, n) for text, cause, n in found.pop("findings"))
    return Fuzzing(findings=findings, **found)


@dataclass(frozen=True)
class Statement:
    """What a backend says of itself, and what its answers show."""

    name: str
    stated: str
    observed: str
    holds: bool  #: False also when it is too wide
    refused: bool
    too_wide: bool


@dataclass(frozen=True)
class Statements(Printed):
    arithmetic: tuple[Statement, ...]
    conventions: tuple[Statement, ...]

    def __str__(self) -> str:
        lines = []
        for s in (*self.arithmetic, *self.conventions):
            word = "refused" if s.refused else "holds" if s.holds else "TOO WIDE" if s.too_wide else "FALSE"
            lines.append(f"{s.name:<34} {s.stated:<14} {word:<9} observed {s.observed}")
        return "\n".join(lines)


def statements(implementation: Any, *, isolate: Optional[bool] = None, **stated: Any) -> Statements:
    """Puts to the test what an implementation states of its arithmetic and its conventions: `attest list arithmetic`.

    >>> import attest
    >>> all(s.holds for s in attest.statements("example").arithmetic)
    True
    """
    request = request_for(implementation, isolate, stated)
    with worker_path():
        arithmetic, conventions = _attest.statements(request, None)
    return Statements(tuple(Statement(*row) for row in arithmetic), tuple(Statement(*row) for row in conventions))


@dataclass(frozen=True)
class Timing:
    """The speed of one backend on one case. Seconds are medians; no speed is given for a wrong result."""

    backend: str
    wrong: str  #: why there is no speed; "" where there is one
    no_speed: str  #: the same as one word for programs: "refused", "wrong_result", "more_threads", ...; "" with a speed
    seconds: Sequence[float]  #: of run alone, one for each sample that counts
    upload: Sequence[float]  #: seconds on the way in: a copy to another device, nothing on the host
    download: Sequence[float]  #: and on the way out
    workspace: float  #: bytes that its plan says it holds besides inputs and outputs
    total_seconds: float
    gflops: float
    disturbed: str  #: what disturbed so many samples that it can't be ranked
    apart: bool  #: timed from outside of its process: `seconds` are of the whole call, but on an accelerator
    error: float  #: as a fraction of its bound
    median_ulps: Optional[float]  #: errors of o in units in the last place, in the check before the timing
    largest_ulps: Optional[float]  #: None where no element can tell

    @property
    def median(self) -> float:
        return float(np.median(self.seconds)) if self.seconds else float("nan")


class Timings(Printed, tuple[Timing, ...]):
    """Timings that print as a table."""

    def __str__(self) -> str:
        heads = ("backend", "run ms", "total ms", "GFLOP/s", "error/bound")
        return "\n".join([_row_of(heads), *(_row_of(_cells_of(timing)) for timing in self)])


def _row_of(cells: Sequence[str]) -> str:
    return f"{cells[0]:<14}" + "".join(f"{cell:>12}" for cell in cells[1:5]) + "".join(f"  {c}" for c in cells[5:] if c)


def _cells_of(timing: Timing) -> tuple[str, ...]:
    if timing.wrong:
        return timing.backend, "-", "-", "-", "-", timing.wrong
    return (
        timing.backend, f"{1e3 * timing.median:.4g}", f"{1e3 * timing.total_seconds:.4g}", f"{timing.gflops:.4g}",
        f"{timing.error:.3g}", timing.disturbed,
    )  # fmt: skip


class Benchmarks(list["Benchmark"]):
    """The benchmarks of several cases: a list that prints as the tables of `attest bench`."""

    def __str__(self) -> str:
        return "\n".join(str(one).rstrip("\n") for one in self)

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self)


@dataclass(frozen=True)
class Benchmark(Printed):
    """Timings of backends that took turns on one case."""

    case: str
    timings: Timings
    text: str

    def __getitem__(self, backend: str) -> Timing:
        return next(t for t in self.timings if t.backend == backend)

    def __str__(self) -> str:
        return self.text


def bench(
    implementation: Any,
    cases: Cases,
    *,
    against: Iterable[str] = ("eigen",),
    threads: int = 0,
    repetitions: int = 9,
    min_seconds: float = 0.1,
    cold: bool = False,
    seed: Optional[int] = None,
    json: str = "",
    device: str = "",
    isolate: Optional[bool] = None,
    timeout: float = 60,
    memory_gib: float = 0,
    progress: Union[None, bool, _progress.Progress] = None,
    **stated: Any,
) -> Benchmarks:
    """Times implementations and native backends in turn, on cases whose results were right.

    Each implementation has a process of its own where such a process can import all of them, as in attest.check, and
    is timed from this one, which alone has the clock and what is expected (`Timing.apart`). Who crashes, takes longer
    than `timeout` seconds for a step or more than `memory_gib` has no speed, and the others have theirs. Native
    backends run here; with `isolate=True` they have processes of their own, too, and with `isolate=False` nobody has.

    Of what is timed apart `seconds` are those of the whole call: upload, run and download. On a device that this
    machine is known to have, and of what runs here, they are told apart: `upload` and `download` are the ways there
    and back, `seconds` the call with its wait for the device. `json` is a file as `attest bench --json` writes it.
    """
    alone = isolated(implementation, isolate, stated)
    request = Request(
        threads=threads_for(threads), device=device, json=os.fspath(json), isolate=alone, timeout=timeout,
        memory_gib=memory_gib, isolate_own=bool(isolate),
    )  # fmt: skip
    request.backends = rows_for(implementation, against, alone, stated)
    request.repetitions, request.min_seconds, request.cold, request.seed = repetitions, min_seconds, cold, seed
    request.add_cases(cases)
    say = _progress.words(progress)
    with worker_path():
        rows = _attest.bench(request, lambda kind, text: say(text) if say else None)
    return Benchmarks(Benchmark(case, Timings(Timing(**line) for line in lines), text) for case, lines, text in rows)


@dataclass(frozen=True)
class Reference:
    """A case with what must come out of it. Arrays by attest's names: q, k, v, mask, ...; o, lse, weights, ..."""

    case: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]  #: float64, from the reference
    bounds: Mapping[str, Any] = field(default_factory=dict)  #: how far each element may be off

    def error(self, o: Any) -> float:
        """The largest error of `o` as a fraction of its bound; up to 1 is right. By the comparison of all verdicts."""
        expected, bounds = (np.ascontiguousarray(one["o"], dtype=np.float64) for one in (self.expected, self.bounds))
        got = np.ascontiguousarray(np.broadcast_to(np.asarray(o, dtype=np.float64), expected.shape))
        return _attest.largest_error(got, expected, bounds)


def reference(case: str, *, arithmetic: Optional[Mapping[str, Any]] = None, threads: int = 0) -> Reference:
    """The inputs of a case, the outputs in float64, and the bound of every element for results rounded so.

    >>> import attest
    >>> case = attest.reference("seq=3x5 dim=4")
    >>> case.inputs["k"].shape, case.expected["o"].shape, bool((case.bounds["o"] > 0).all())
    ((1, 1, 5, 4), (1, 1, 3, 4), True)
    """
    inputs, expected, bounds, label = _attest.reference(case, dict(arithmetic or {}), threads_for(threads))
    return Reference(label, inputs, expected, bounds)


def _own(stated: Mapping[str, Any]) -> dict[str, Any]:
    """What is stated of the implementation itself."""
    return {key: value for key, value in stated.items() if key not in ("threads", "timeout", "memory_gib", "device")}


def request_for(implementation: Any, isolate: Optional[bool], stated: Mapping[str, Any]) -> Request:
    """What the module is asked of one implementation. `stated`: of it, and of the run."""
    common = {key: stated[key] for key in ("device", "timeout", "memory_gib") if key in stated}
    own = _own(stated)
    alone = isolated(implementation, isolate, own)
    request = Request(threads=threads_for(stated.get("threads", 0)), isolate=alone, **common)
    request.run_words = run_words(stated.get("threads", 0), request.device, request.timeout, request.memory_gib, alone)
    run = {key: stated[key] for key in ("threads", "device") if key in stated}
    request.backends = rows_for(implementation, (), alone, own, run)
    if len(request.backends) != 1:
        raise _attest.UserError("one implementation is wanted")
    return request
