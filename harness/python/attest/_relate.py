"""An implementation held against itself: the same numbers in a batch and alone, in pieces and at once."""

from __future__ import annotations

import html
import json as json_lines
import os
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence, Union, overload

from attest import _attest
from attest._api import Cases, worker_path
from attest._closer import request_for


@dataclass(frozen=True)
class RelationVerdict:
    """How the results of a case agree with those of other calls that a relation makes from it."""

    case: str  #: the case line, or a file's name
    backend: str
    relation: str  #: as `attest relate --list` names them
    status: str  #: "bits", "bound" (other bits, within the sum of both bounds), "fail" or "refused"
    reason: str = ""  #: of a failure and a refusal
    promised: bool = False  #: the implementation states that bits are kept
    other_call: str = ""  #: the other call that the element or the reason is of, as a case line
    about: str = ""  #: how that call differs, where its line doesn't tell
    calls: int = 0  #: other calls, or runs, that were compared
    elements: int = 0  #: of their results, that were compared
    other_bits: int = 0  #: of these, how many have other bits
    largest: Optional[float] = None  #: the largest difference, as a fraction of what both bounds allow
    element: Optional[Mapping[str, Any]] = None  #: one that differs: output, index, whole, other, expected, allowed
    suite: str = ""
    repro: str = ""  #: the command that repeats it

    @property
    def failed(self) -> bool:
        return self.status == "fail"

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.status:<8} {self.backend}  {self.relation}  {self.case}{reason}"


class Relations(Sequence[RelationVerdict]):
    """The verdicts of a run, in order. Prints as `attest relate` does."""

    def __init__(self, verdicts: Sequence[RelationVerdict], *, text: str = "", interrupted: bool = False) -> None:
        self.verdicts = tuple(verdicts)
        self.text = text  #: what the command prints of this run
        self.interrupted = interrupted  #: ended by Ctrl-C: there would be more

    def __len__(self) -> int:
        return len(self.verdicts)

    @overload
    def __getitem__(self, index: int) -> RelationVerdict: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RelationVerdict]: ...

    def __getitem__(self, index: Any) -> Any:
        return self.verdicts[index]

    def __iter__(self) -> Iterator[RelationVerdict]:
        return iter(self.verdicts)

    @property
    def failures(self) -> tuple[RelationVerdict, ...]:
        return tuple(v for v in self.verdicts if v.failed)

    @property
    def ok(self) -> bool:
        """Something was compared, and nothing failed: exit code 0 of `attest relate`."""
        return self.count("bits") + self.count("bound") > 0 and not self.failures and not self.interrupted

    def count(self, status: Any) -> int:
        """How many verdicts have this status."""
        return sum(v.status == status for v in self.verdicts)

    def __str__(self) -> str:
        return self.text.strip("\n")

    def __repr__(self) -> str:
        return f"<attest.Relations: {len(self)} verdicts, {len(self.failures)} failed>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def relate(
    implementation: Any,
    cases: Cases = "relations",
    *,
    relations: Union[str, Iterable[str]] = (),
    json: str = "",
    isolate: Optional[bool] = None,
    **stated: Any,
) -> Relations:
    """Holds an implementation against itself: results for a call, and for other calls with the same numbers.

    `cases` is what attest.check takes, `relations` are names as `attest relate --list` prints them; all that apply
    where there are none. `json` is a file as `attest relate --json` writes it.

    >>> import attest
    >>> found = attest.relate("example", "batch=2 heads=2 seq=9 dim=4", relations=["batch", "head"])
    >>> [(one.relation, one.status) for one in found]
    [('batch', 'bits'), ('head', 'bits')]
    """
    request = request_for(implementation, isolate, stated)
    request.relations = relations if isinstance(relations, str) else ",".join(relations)
    request.json = os.fspath(json)
    request.add_cases(cases)
    if not (request.suites or request.suite_files or request.lines):
        raise _attest.UserError("nothing to relate: name a suite, a case line or a file")
    verdicts: list[RelationVerdict] = []
    with worker_path():
        text, interrupted = _attest.relate(request, lambda kind, line: verdicts.append(_from(json_lines.loads(line))))
    found = Relations(verdicts, text=text, interrupted=interrupted)
    if interrupted:
        raise KeyboardInterrupt(found)
    return found


def _from(line: Mapping[str, Any]) -> RelationVerdict:
    """Of a line of JSON as `attest relate --json` writes it. NaN and infinities are words there."""
    return RelationVerdict(
        case=line["case"], backend=line["backend"], relation=line["relation"], status=line["status"],
        reason=line["reason"] or "", promised=line["promised"], other_call=line.get("other_call", ""),
        about=line.get("about", ""), calls=line["calls"], elements=line["elements"], other_bits=line["other_bits"],
        largest=None if line.get("largest") is None else float(line["largest"]), element=line.get("element"),
        suite=line["suite"], repro=line["repro"],
    )  # fmt: skip
