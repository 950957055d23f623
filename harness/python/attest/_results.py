"""What a run of check came to: verdicts that show themselves."""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, Optional, Sequence, overload

FAILURES = ("fail", "crashed", "timeout", "flaky", "suspect")


@dataclass(frozen=True)
class Verdict:
    """The outcome of one case on one backend. harness/VERDICTS.md says what each status means."""

    case: str  #: the case line, or a file's name
    backend: str
    #: "pass", "weak", "convention", "fail", "flaky", "refused", "inconclusive", "suspect", "crashed", "timeout"
    status: str
    reason: str = ""  #: one sentence; "" for a pass
    cause: str = ""  #: a short name by which failures are grouped
    error: Optional[float] = None  #: the largest, as a fraction of its bound; up to 1 is right
    sigma: Optional[float] = None  #: the largest of the sampled ones, in standard deviations
    #: by result: how accurate it is, whatever its bound allows: "ulps" and "relative" with "median", "p99" and
    #: "largest", "normwise", and how many elements were "compared" and "unproven"
    accuracy: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: by result: its mean errors, up and away from zero, over what independent roundings give (about 1)
    bias: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    worst: Optional[Mapping[str, Any]] = None  #: the element with the largest error: index, got, expected, bound
    seconds: Mapping[str, float] = field(default_factory=dict)  #: of prepare, upload, run and download
    suite: str = ""
    mistakes: tuple[str, ...] = ()  #: the known ones that give exactly this, by name; in words they end the reason
    waiver: str = ""  #: why a suspect result counts as no failure
    repro: str = ""  #: the command that repeats it

    @property
    def passed(self) -> bool:
        """Right, by attest or by the conventions that the implementation states."""
        return self.status in ("pass", "weak", "convention")

    @property
    def proved(self) -> bool:
        """Right, within bounds that prove it: not "weak"."""
        return self.passed and self.status != "weak"

    @property
    def failed(self) -> bool:
        """Whether it turns a run red."""
        return self.status in FAILURES and not (self.status == "suspect" and self.waiver)

    def __str__(self) -> str:
        error = "" if self.error is None else f"  error/bound {self.error:.3g}"
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.status:<10} {self.backend}  {self.case}{error}{reason}"

    def _repr_html_(self) -> str:
        return _table_of([self])


@dataclass(frozen=True)
class Shrunk:
    """The smallest case that was found to fail like another."""

    case: str
    backend: str
    smallest: str
    reason: str = ""  #: why the smallest fails
    repro: str = ""  #: the command that repeats it


@dataclass(frozen=True)
class RightIf:
    """A statement of arithmetic under which every failing case of a backend would be right."""

    backend: str
    statement: str  #: "stored_weights=bf16 for calls in bf16"
    code: str  #: how it is written: arithmetic={...}

    def __str__(self) -> str:
        return f"{self.backend} would be right if it states {self.statement}: {self.code}"


class Results(Sequence[Verdict]):
    """The verdicts of a run, in order, and what was found about the run as a whole."""

    def __init__(
        self,
        verdicts: Sequence[Verdict],
        *,
        problems: Sequence[str] = (),
        notes: Sequence[str] = (),
        shrunk: Sequence[Shrunk] = (),
        right_if: Sequence[RightIf] = (),
        interrupted: bool = False,
        answer: str = "",
        text: str = "",
    ) -> None:
        self.verdicts = tuple(verdicts)
        self.problems = tuple(problems)  #: statements that don't hold, refusals that aren't listed; each turns it red
        self.notes = tuple(notes)  #: what could not be made smaller, and why
        self.shrunk = tuple(shrunk)  #: the smallest cases of the first failures
        self.right_if = tuple(right_if)  #: what would make all failing cases of a backend right, where there is such
        self.answer = answer  #: the command's, "wrong: mine; 3 pass, ..."
        self.text = text  #: what `attest check` prints of this run
        self.interrupted = interrupted  #: ended by Ctrl-C: there would be more

    def __len__(self) -> int:
        return len(self.verdicts)

    @overload
    def __getitem__(self, index: int) -> Verdict: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Verdict]: ...

    def __getitem__(self, index: Any) -> Any:
        return self.verdicts[index]

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """Verdicts that turn the run red."""
        return tuple(v for v in self.verdicts if v.failed)

    @property
    def ok(self) -> bool:
        """Something is proved, nothing failed, and all that was stated holds: exit code 0 of `attest check`."""
        return any(v.proved for v in self.verdicts) and not self.failures and not self.problems and not self.interrupted

    def count(self, status: Any) -> int:
        """How many verdicts have this status."""
        return sum(v.status == status for v in self.verdicts)

    def summary(self) -> str:
        """The last line of `attest check`."""
        failed = len(self.failures)
        passed = sum(v.passed for v in self.verdicts)
        return f"{passed} passed, {failed} failed, {len(self) - passed - failed} skipped"

    def require_ok(self) -> "Results":
        """Itself; raises AssertionError with what is wrong where it isn't ok."""
        if self.ok:
            return self
        raise AssertionError("\n" + str(self))

    def _causes(self) -> list[tuple[str, Verdict, int]]:
        count = Counter(v.cause or v.reason for v in self.failures)
        first: dict[str, Verdict] = {}
        for verdict in self.failures:
            first.setdefault(verdict.cause or verdict.reason, verdict)
        return [(cause, first[cause], number) for cause, number in count.most_common()]

    def __str__(self) -> str:
        return self.text.strip("\n") or self.summary()

    def __repr__(self) -> str:
        return f"<attest.Results: {self.summary()}>"

    def _repr_html_(self) -> str:
        shown = [v for v in self.verdicts if v.failed][:50]
        problems = "".join(f"<li>{html.escape(str(one))}</li>" for one in (*self.right_if, *self.problems))
        causes = "".join(self._cause_html(*cause) for cause in self._causes())
        return (
            f"<p>{html.escape(self.answer or self.summary())}</p>"
            + (f"<ul>{causes}</ul>{_table_of(shown)}" if shown else "")
            + (f"<ul>{problems}</ul>" if problems else "")
        )

    def _cause_html(self, cause: str, verdict: Verdict, number: int) -> str:
        """A way of failing: the smallest case that was found to fail so, and the command that repeats it."""
        small = [s for s in self.shrunk if (s.case, s.backend) == (verdict.case, verdict.backend)]
        text = f"{number} x {html.escape(cause)}: <code>{html.escape(verdict.case)}</code>"
        for one in small:
            text += f"<br>smallest: <code>{html.escape(one.smallest)}</code> {html.escape(one.reason)}"
        repro = next((one.repro for one in small if one.repro), verdict.repro)
        return f"<li>{text}<br>repeat: <code>{html.escape(repro)}</code></li>"


def _table_of(verdicts: Sequence[Verdict]) -> str:
    """Cells hold text that anyone may have written: every one is escaped."""
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells_of(verdict)) + "</tr>" for verdict in verdicts
    )
    heads = "".join(f"<th>{head}</th>" for head in ("status", "backend", "case", "error/bound", "reason"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _cells_of(verdict: Verdict) -> tuple[str, ...]:
    error = "" if verdict.error is None else f"{verdict.error:.3g}"
    return verdict.status, verdict.backend, verdict.case, error, verdict.reason


def verdict_from(line: Mapping[str, Any]) -> Verdict:
    """Of a line of JSON as `attest check --json` writes it. NaN and infinities are words there."""

    def number(value: Any) -> Optional[float]:
        return None if value is None else float(value)

    return Verdict(
        case=line["case"],
        backend=line["backend"],
        status=line["status"],
        reason=line.get("reason") or "",
        cause=line.get("cause") or "",
        error=number(line.get("error_over_bound")),
        sigma=number(line.get("error_over_sigma")),
        accuracy={one["output"]: one for one in line.get("accuracy") or ()},
        bias={one["output"]: (one["up"], one["outward"]) for one in line.get("bias") or ()},
        worst=line.get("worst"),
        seconds=line.get("seconds") or {},
        suite=line.get("suite") or "",
        mistakes=tuple(line.get("mistakes") or ()),
        waiver=line.get("waiver") or "",
        repro=line.get("repro") or "",
    )
