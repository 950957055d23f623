"""What attest does with an implementation: check it, and what belongs to that."""

from __future__ import annotations

import contextlib
import inspect
import json as json_lines
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

from attest import _attest, _progress
from attest._backend import Backend, Tensors, backend_of
from attest._load import command_words, options_for, words_for
from attest._results import Results, RightIf, Shrunk, Verdict, verdict_from

Cases = Union[str, Iterable[str]]


@dataclass
class Request:
    """What the module is asked to do. Its members are read there by name."""

    backends: list[tuple[str, Optional[Backend], str]] = field(default_factory=list)
    threads: int = 1
    run_words: list[str] = field(default_factory=list)  # options that printed commands repeat
    device: str = ""
    isolate: bool = False
    isolate_own: bool = True  # attest's own backends, too, where the others are isolated
    timeout: float = 60
    memory_gib: float = 0
    suites: list[str] = field(default_factory=list)
    suite_files: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    filter: str = ""
    shard: str = ""
    json: str = ""
    junit: str = ""
    fail_fast: bool = False
    once: bool = False
    shrink: bool = True
    compare_refusals: bool = False
    seconds: float = 60
    count: int = 0
    seed: Optional[int] = None
    repetitions: int = 9
    min_seconds: float = 0.1
    cold: bool = False
    relations: str = ""
    always: list[str] = field(default_factory=list)  # options of every case that fuzz draws

    def add_cases(self, cases: Cases) -> None:
        """A word is a suite, a path of .cases a file of lines; a line or a .safetensors file is a case."""
        for one in [cases] if isinstance(cases, str) else cases:
            if one.endswith(".cases"):
                self.suite_files.append(one)
            elif "=" in one or one.endswith(".safetensors"):
                self.lines.append(one)
            else:
                self.suites.append(one)


def check(
    implementation: Any,
    suite: Cases = "smoke",
    *,
    name: str = "",
    library: str = "",
    device: str = "",
    tensors: Optional[Tensors] = None,
    keywords: Optional[Mapping[str, str]] = None,
    refuses: Iterable[str] = (),
    arithmetic: Optional[Mapping[str, Any]] = None,
    conventions: Optional[Mapping[str, str]] = None,
    gradients: str = "",
    pass_: str = "",
    against: Iterable[str] = (),
    isolate: Optional[bool] = None,
    timeout: float = 60,
    memory_gib: float = 0,
    threads: int = 0,
    filter: str = "",
    shard: str = "",
    json: str = "",
    junit: str = "",
    fail_fast: bool = False,
    once: bool = False,
    shrink: bool = True,
    compare_refusals: bool = False,
    progress: Union[None, bool, _progress.Progress] = None,
) -> Results:
    """Holds an implementation against the reference.

    `implementation` is a callable ``fn(q, k, v, **options)``, a Backend or a subclass of it, the path of a plug-in, or
    the name of a native backend. `suite` is the name of a suite, a case line, a file of either, or a list of these.

    >>> import numpy as np
    >>> import attest
    >>> def attention(q, k, v, *, scale=None):
    ...     scores = q @ k.swapaxes(-1, -2) * q.dtype.type(scale or q.shape[-1] ** -0.5)
    ...     weights = np.exp(scores - scores.max(-1, keepdims=True))
    ...     return weights @ v / weights.sum(-1, keepdims=True)
    >>> results = attest.check(attention, ["seq=5 dim=4", "seq=5 dim=4 scale=2", "seq=5 dim=4 causal"])
    >>> [verdict.status for verdict in results]
    ['pass', 'pass', 'refused']
    >>> print(results[2].reason)
    causal: attention has no parameter `causal` for it

    Of a callable, `tensors`, `keywords`, `refuses`, `arithmetic`, `conventions` and `gradients` state what a Backend
    states itself. It runs in a process of its own where such a process can import it (`isolate=None`): what a module
    has at its top. Then a step may take `timeout` seconds, and the process `memory_gib` beyond what it starts with; 0 is most
    of what is free. What only this interpreter has, such as a lambda or what a script or a notebook defines, runs here;
    `isolate=True` refuses that, and with `isolate=False` everything runs here. With `pass_`, "backward" or "both", each
    case line runs with that pass, and without the results that it doesn't have.
    `against` are native backends beside it.
    Ctrl-C ends the run at the next case: files are complete, and KeyboardInterrupt is raised with the results so far
    as its argument. Raises UserError for a request that can't be carried out.
    """
    stated = dict(
        name=name, library=library, tensors=tensors, keywords=keywords, refuses=tuple(refuses),
        arithmetic=arithmetic, conventions=conventions, gradients=gradients,
    )  # fmt: skip
    isolate = isolated(implementation, isolate, stated)
    request = Request(
        threads=threads_for(threads), run_words=run_words(threads, device, timeout, memory_gib, isolate),
        device=device, isolate=isolate, timeout=timeout, memory_gib=memory_gib,
        filter=filter, shard=shard, json=os.fspath(json), junit=os.fspath(junit), fail_fast=fail_fast, once=once,
        shrink=shrink, compare_refusals=compare_refusals,
    )  # fmt: skip
    run = dict(threads=threads, device=device, once=once)
    request.backends = rows_for(implementation, against, isolate, stated, run)
    request.add_cases(suite if not pass_ else _with_pass(suite, pass_))
    if not (request.suites or request.suite_files or request.lines):
        raise _attest.UserError("nothing to check: name a suite, a case line or a file")
    verdicts: list[Verdict] = []
    shrunk: list[Shrunk] = []
    right_if: list[RightIf] = []
    show = _progress.wanted(progress)
    total, answer = 0, ""

    def listen(kind: str, text: str) -> None:
        nonlocal total, answer
        told = json_lines.loads(text)
        if kind == "begin":
            total = told["cases"] * len(told["backends"])
        elif kind == "shrunk":
            shrunk.append(Shrunk(told["case"], told["backend"], told["smallest"], told["reason"], told["repro"]))
        elif kind == "answer":
            answer = told
        elif kind == "right_if":
            right_if.append(RightIf(told["backend"], told["statement"], told["code"]))
        else:
            verdicts.append(verdict_from(told))
            if show:
                show(verdicts[-1], len(verdicts), max(total, len(verdicts)))

    with worker_path():
        outcome = _attest.check(request, listen)
    results = Results(
        verdicts,
        problems=outcome["problems"] + outcome["unwritten"],
        notes=outcome["notes"],
        shrunk=shrunk,
        right_if=right_if,
        interrupted=outcome["interrupted"],
        answer=answer,
        text=outcome["text"],
    )
    if results.interrupted:
        raise KeyboardInterrupt(results)
    return results


def _with_pass(suite: Cases, pass_: str) -> list[str]:
    """The same case lines, but for their pass."""
    lines: dict[str, None] = {}
    for one in cases(suite):
        if one.endswith(".safetensors"):
            raise _attest.UserError(f"pass_: {one} says its pass itself, in its metadata")
        changed = _attest.with_pass(one, pass_)
        if changed is not None:
            lines[changed] = None
    return list(lines)


def suites() -> dict[str, str]:
    """The committed suites, each with what it is for.

    >>> import attest
    >>> "smoke" in attest.suites()
    True
    """
    return {name: about for name, about, path in _attest.suites()}


def cases(suite: Cases) -> list[str]:
    """The cases of suites, lines and files, in order: canonical lines, and names of files.

    >>> import attest
    >>> attest.cases("dim=4 seq=8")
    ['seq=8 dim=4']
    """
    request = Request()
    request.add_cases(suite)
    return _attest.cases_of(request.suites, request.suite_files, request.lines)


def threads_for(asked: int) -> int:
    """As many as asked for; 0: every core."""
    return asked or os.cpu_count() or 1


def run_words(threads: int, device: str, timeout: float, memory_gib: float, isolate: bool) -> list[str]:
    """Options of the command line for what a run was told."""
    words = ["--threads", str(threads)] if threads else []
    words += ["--device", device] if device else []
    if isolate and timeout != Request.timeout:
        words += ["--timeout", f"{timeout:g}"]
    if isolate and memory_gib != Request.memory_gib:
        words += ["--memory", f"{memory_gib:g}"]
    return words


def isolated(implementation: Any, asked: Optional[bool], stated: Mapping[str, Any]) -> bool:
    """As asked; where nothing is, whether all of it can run in processes of its own."""
    if asked is not None:
        return asked
    every = implementation if isinstance(implementation, (list, tuple)) else [implementation]
    return all(isinstance(one, str) or (_is_found_again(words_for(one)) and _goes_over(stated)) for one in every)


def _is_found_again(words: str) -> bool:
    """Whether a search for the object's module, as another process makes it, ends in the file that was loaded here."""
    package = words.partition(":")[0].partition(".")[0]
    loaded = getattr(sys.modules.get(package), "__file__", None)
    for finder in sys.meta_path if package else []:
        find = getattr(finder, "find_spec", None)
        spec = find(package, None) if find else None
        if spec is not None:
            return loaded is None or spec.origin == loaded
    return False


def _goes_over(stated: Mapping[str, Any]) -> bool:
    """Whether another process can be told it."""
    try:
        options_for(stated)
    except _attest.UserError:
        return False
    return True


def rows_for(
    implementation: Any,
    against: Iterable[str],
    isolate: bool,
    stated: Mapping[str, Any],
    run: Optional[Mapping[str, Any]] = None,
) -> list[tuple[str, Optional[Backend], str]]:
    """Rows for the module: a name, the object where it runs in this process, and where it comes from otherwise."""
    rows: list[tuple[str, Optional[Backend], str]] = []
    for one in implementation if isinstance(implementation, (list, tuple)) else [implementation]:
        rows.append(_row(one, isolate, stated, run or {}))
    rows += [(native, None, "") for native in against]
    return rows


def _row(
    one: Any, isolate: bool, stated: Mapping[str, Any], run: Mapping[str, Any]
) -> tuple[str, Optional[Backend], str]:
    said = [key for key, value in stated.items() if value]
    if isinstance(one, str):
        if said:
            raise TypeError(f"{said[0]}: {one} states this itself")
        is_native = one in {name for name, unavailable in _attest.backends()}
        return (one, None, "") if is_native else ("", None, one)
    backend = backend_of(one, **stated)
    backend._made_for(1, "")  # what is wrong with its signature is told here
    if not isolate:
        return backend.name, backend, _source_of(one, backend, stated, run)
    words = command_words(one)  # a worker imports by what the printed commands say, too
    if not words:
        raise TypeError(
            f"isolate: {backend.name} can't be imported by another process: define it at the top of a module's file"
        )
    return backend.name, None, "\n".join([f"python:{words}", *options_for(stated)])


def _made_without_arguments(kind: type) -> bool:
    parameters = inspect.signature(kind).parameters.values()
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _source_of(one: Any, backend: Backend, stated: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Where an object of this process comes from, for commands: "python:" with words that another process imports, or
    "here:" with what stands in the brackets of a call."""
    words = command_words(one)
    try:
        if words:
            return "\n".join([f"python:{words}", *options_for(stated)])
    except _attest.UserError:
        pass  # no text says it
    name = getattr(one, "__name__", "")
    if isinstance(one, Backend):
        name = type(one).__name__ + "()" if _made_without_arguments(type(one)) else ""
    said = {key: value for key, value in (*stated.items(), *run.items()) if value}
    texts = [f"{key}={getattr(value, '__name__', None) or repr(value)}" for key, value in said.items()]
    return "here:" + ", ".join([name if name.rstrip("()").isidentifier() else "implementation", *texts])


@contextlib.contextmanager
def worker_path() -> Iterator[None]:
    """Workers import from where this interpreter does."""
    os.environ["ATTEST_PYTHON_PATH"] = os.pathsep.join(sys.path)
    try:
        yield
    finally:
        os.environ.pop("ATTEST_PYTHON_PATH", None)
