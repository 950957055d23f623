"""Result files in results/peers/, and which finding of findings.toml a verdict is of."""

from __future__ import annotations

import collections
import functools
import gzip
import json
import math
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Iterator

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent.parent / "results"
SUITES = ("smoke", "bugs", "onnx", "matrix", "linear", "codes")
GRADIENTS = "backward"  #: the suite that has a table of its own
KINDS = ("bug", "convention", "arithmetic", "limit", "unexplained")
RED = ("fail", "flaky", "suspect", "crashed", "timeout")

Finding = dict[str, Any]
Verdict = dict[str, Any]


def all_findings() -> list[Finding]:
    return tomllib.loads((HERE / "findings.toml").read_text())["finding"]


def all_programs() -> dict[str, Any]:
    """Of each program of bugs: how often it went wrong, where, and what it printed; prove.py writes it."""
    return json.loads((RESULTS / "peers" / "programs.json").read_text())


def lines_of(peer: str, suite: str) -> list[dict[str, Any]]:
    """The result file's lines; none where it wasn't run."""
    path = RESULTS / "peers" / f"{peer}.{suite}.jsonl.gz"
    return read(path, path.stat().st_mtime_ns) if path.exists() else []


@functools.lru_cache(maxsize=None)
def read(path: Path, _time: int) -> list[dict[str, Any]]:
    """A file as it was at a time."""
    with gzip.open(path, "rt") as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        if line.get("status") == "mistrusted":  # what version 0.1.0 called it
            line["status"] = "inconclusive"
    return [line for line in lines if line.get("backend") != "reference"]  # which files of values are held against, too


def verdicts_of(peer: str, suite: str) -> list[Verdict]:
    return [line for line in lines_of(peer, suite) if line["kind"] == "verdict"]


def refusals(peer: str, suite: str) -> collections.Counter[str]:
    """How many cases were refused, by the reason. run.py writes large suites with one line for each reason."""
    counts: collections.Counter[str] = collections.Counter()
    for line in lines_of(peer, suite):
        if line["kind"] == "refused":
            counts[str(line["reason"])] += line["count"]
        elif line.get("status") == "refused":
            counts[str(line.get("reason"))] += 1
    return counts


def cases_of(peer: str, suite: str) -> int:
    answered = sum(line["status"] != "refused" for line in verdicts_of(peer, suite))
    return answered + sum(refusals(peer, suite).values())


def library(peer: str) -> str:
    for suite in (*SUITES, GRADIENTS):
        for line in lines_of(peer, suite)[:1]:
            return re.sub(r"( on CPU|, CPU|, CPUExecutionProvider)(?=,|$)", "", str(line["backends"][0]["library"]))
    return "-"


def number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float, str)) else math.nan


def queries_of(case: str) -> int:
    """How many queries a line or a golden file has; -1 where neither says."""
    said = re.search(r"seq=(\d+)", case)
    if said:
        return int(said[1])
    path = HERE.parent.parent / "tests" / case
    if not path.exists():
        return -1
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return int(header["q"]["shape"][-2]) if "q" in header else -1  # B,H,L,D, or B,L,H*D


def of_last_query(verdict: Verdict) -> bool:
    index = (verdict.get("worst") or {}).get("index", [])
    return len(index) > 2 and index[2] == queries_of(str(verdict["case"])) - 1


def fits(finding: Finding, peer: str, verdict: Verdict) -> bool:
    """Whether the verdict is one of the finding's."""
    if not any(fnmatch(peer, pattern) for pattern in finding["peers"]):
        return False
    for key in ("cause", "case", "reason"):
        if key in finding and not re.search(finding[key], str(verdict.get(key) or "")):
            return False
    worst = verdict.get("worst") or {}
    if finding.get("empty_row") and not (number(worst.get("expected")) == 0 and number(worst.get("bound")) == 0):
        return False
    if finding.get("last_query") and not of_last_query(verdict):
        return False
    if "off_by_less" in finding:
        if not abs(number(worst.get("got")) - number(worst.get("expected"))) < finding["off_by_less"]:
            return False
    ratio = verdict.get("error_over_bound")
    return "at_most" not in finding or (ratio is not None and number(ratio) <= finding["at_most"])


def finding_of(peer: str, verdict: Verdict, findings: list[Finding]) -> Finding | None:
    """Of a verdict that is no pass: the first finding that it fits."""
    return next((found for found in findings if fits(found, peer, verdict)), None) if verdict["status"] in RED else None


def classified(peer: str, suite: str, findings: list[Finding]) -> Iterator[tuple[Verdict, Finding | None]]:
    for line in lines_of(peer, suite):
        if line["kind"] == "verdict" and line["status"] in RED:
            yield line, finding_of(peer, line, findings)


def by_statement(verdict: Verdict, findings: list[Finding]) -> Finding | None:
    """Of a verdict that is right by what the peer states: the convention that says so."""
    if verdict["status"] != "convention":
        return None
    said = str(verdict.get("reason") or "")
    return next((found for found in findings if "stated" in found and re.search(found["stated"], said)), None)


def kinds_of(peer: str, suite: str, findings: list[Finding]) -> str:
    """What failed, by kind: ", 2 bug, 1 convention"."""
    kinds = collections.Counter(
        found["kind"] if found else "unexplained" for _, found in classified(peer, suite, findings)
    )
    # Those that a peer states are no failures any more.
    kinds["convention"] += sum(
        line["kind"] == "verdict" and line["status"] == "convention" for line in lines_of(peer, suite)
    )
    return "".join(f", {kinds[kind]} {kind}" for kind in KINDS if kinds[kind])
