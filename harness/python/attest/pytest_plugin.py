"""A test suite of one's own gets attest's cases: each is a test of its own.

    import pytest

    @pytest.mark.attest("smoke")
    def test_attention(attest_case):
        attest_case.check(my_attention)
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from typing import Any, Generator, Optional, TextIO

import pytest

import attest

_FAILED = "attest/failed"  # in pytest's cache: node ids of tests that failed
_LINE = "attest_case"


@dataclass(frozen=True)
class AttestCase:
    """One case of a suite."""

    line: str
    _explains: bool = field(default=True, repr=False, compare=False)
    _record: Any = field(default=None, repr=False, compare=False)

    def check(self, implementation: Any, **stated: Any) -> attest.Verdict:
        """The verdict on this case. Fails the test for a wrong result, with the smallest line that fails and the error
        of its worst element term by term; skips it where the case is refused, or proves nothing. What is stated is as
        in attest.check."""
        stated.setdefault("isolate", False)  # a process for each case would take longer than the case
        path = self._record.next_path() if self._record and not stated.get("json") else None
        if path:
            stated["json"] = path
        results = attest.check(implementation, self.line, progress=False, **stated)
        if path:
            self._record.take(path)
        if not results.failures and not results.problems and not any(v.passed for v in results):
            pytest.skip("; ".join(f"{v.status}: {v.reason}" for v in results))
        if results.failures or results.problems:
            explained = self._explained(results, implementation, stated) if self._explains else ""
            pytest.fail(str(results) + explained, pytrace=False)
        return results[0]

    def _explained(self, results: attest.Results, implementation: Any, stated: dict[str, Any]) -> str:
        """The worst element of the smallest case that fails."""
        wrong = [v for v in results.failures if v.status in ("fail", "suspect") and v.worst]
        if not wrong:
            return ""
        line = next((one.smallest for one in results.shrunk), wrong[0].case)
        options = ("name", "library", "device", "tensors", "keywords", "refuses", "arithmetic", "conventions", "gradients")
        given = {key: stated[key] for key in options if key in stated}
        try:
            return f"\n\n{attest.explain(implementation, line, elements=1, isolate=False, **given)}"
        except (attest.UserError, TypeError, ValueError) as error:
            return f"\n\nnot explained: {error}"


class _Record:
    """The file of --attest-json: verdicts of this process, which the first process puts together at the end."""

    def __init__(self, path: str, worker: str) -> None:
        self.path, self.parts = path, f"{path}.part-{worker}"
        self.next = 0
        self.file: Optional[TextIO] = None

    def next_path(self) -> str:
        self.next += 1
        return f"{self.parts}-{self.next}"

    def take(self, path: str) -> None:
        """Appends what a check wrote, without its summary."""
        if self.file is None:
            self.file = open(self.parts, "w", encoding="utf-8")
        with open(path, encoding="utf-8") as run:
            for line in run:
                if not line.startswith('{"kind":"summary"'):
                    self.file.write(line)
        self.file.flush()
        os.unlink(path)

    def finish(self, first: bool) -> None:
        """Of the first process: writes the file, with one header and one summary."""
        if self.file is not None:
            self.file.close()
        if not first:
            return
        folder, name = os.path.split(os.path.abspath(self.path))
        found = sorted(one for one in os.listdir(folder) if re.fullmatch(re.escape(name) + r"\.part-\w+", one))
        headers: list[str] = []
        others: list[str] = []
        for part in found:
            with open(os.path.join(folder, part), encoding="utf-8") as file:
                for line in file:
                    (headers if line.startswith('{"kind":"run"') else others).append(line)
            os.unlink(os.path.join(folder, part))
        if not headers:
            return
        ready = f"{self.path}.part{os.getpid()}"
        with open(ready, "w", encoding="utf-8") as file:
            file.write(_header_of_all(headers) + "".join(others) + _summary_of(others))
        os.replace(ready, self.path)


def _header_of_all(lines: list[str]) -> str:
    """A header for verdicts of many tests: with all their backends, and not of one selection of cases."""
    header = json.loads(lines[0])
    header.pop("selection", None)
    header["command"] = ["pytest"]
    backends = {backend["name"]: backend for line in lines for backend in json.loads(line)["backends"]}
    header["backends"] = list(backends.values())
    return json.dumps(header, separators=(",", ":")) + "\n"


def _summary_of(lines: list[str]) -> str:
    names = "pass fail refused inconclusive suspect waived crashed timeout convention weak flaky".split()
    counts: dict[str, Any] = dict.fromkeys(names, 0)
    for line in lines:
        verdict = json.loads(line)
        if verdict.get("kind") == "verdict":
            counts["waived" if verdict["status"] == "suspect" and verdict.get("waiver") else verdict["status"]] += 1
    return json.dumps({"kind": "summary", **counts, "seconds": 0.0}, separators=(",", ":")) + "\n"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("attest", "cases of attest")
    group.addoption("--attest-suite", default="smoke", help="cases of tests that name none: a suite or a case line")
    group.addoption("--attest-filter", default="", metavar="REGEX", help="only cases whose line this is found in")
    group.addoption("--attest-json", default="", metavar="FILE", help="write all verdicts to this file, as attest check")
    group.addoption("--attest-last-failed", action="store_true", help="only cases that failed in the last run, if any")
    group.addoption("--attest-no-explain", action="store_true", help="failures without the table of the worst element")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "attest(suite, filter=None): the cases of attest_case: a suite, a case line, or a list, and a regular "
        "expression that is found in a line",
    )
    path = config.getoption("--attest-json")
    folder = os.path.dirname(os.path.abspath(path)) if path else ""
    if folder and not os.path.isdir(folder):
        raise pytest.UsageError(f"--attest-json {path}: there is no folder {folder}")
    worker = getattr(config, "workerinput", {}).get("workerid", "main")
    config.stash[_RECORD] = _Record(os.path.abspath(path), worker) if path else None


_RECORD = pytest.StashKey[Optional[_Record]]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if _LINE not in metafunc.fixturenames:
        return
    config = metafunc.config
    marker = metafunc.definition.get_closest_marker("attest")
    suite = marker.args[0] if marker and marker.args else config.getoption("--attest-suite")
    filters = [marker.kwargs.get("filter") if marker else None, config.getoption("--attest-filter")]
    lines = [line for line in attest.cases(suite) if all(_found(one, line) for one in filters if one)]
    explains = not config.getoption("--attest-no-explain")
    cases = [AttestCase(line, explains, config.stash[_RECORD]) for line in lines]
    metafunc.parametrize(_LINE, cases, ids=lines)


def _found(expression: str, line: str) -> bool:
    try:
        return re.search(expression, line) is not None
    except re.error as error:
        raise pytest.UsageError(f"--attest-filter {expression}: {error}") from None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cache = getattr(config, "cache", None)  # not there with -p no:cacheprovider
    if not config.getoption("--attest-last-failed") or cache is None:
        return
    failed = set(cache.get(_FAILED, []))
    kept = [item for item in items if item.nodeid in failed]
    if kept:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in failed])
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    report = yield
    if _LINE in getattr(item, "fixturenames", ()):
        report.user_properties.append((_LINE, item.nodeid))
    return report


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_OUTCOMES] = {}


_OUTCOMES = pytest.StashKey[dict[str, bool]]()


def pytest_report_teststatus(report: Any, config: pytest.Config) -> None:
    if any(name == _LINE for name, _ in getattr(report, "user_properties", ())):
        outcomes = config.stash.get(_OUTCOMES, None)
        if outcomes is not None:
            outcomes[report.nodeid] = outcomes.get(report.nodeid, False) or report.failed


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    first = not hasattr(config, "workerinput")
    record = config.stash[_RECORD]
    if record is not None:
        record.finish(first)
    outcomes = config.stash.get(_OUTCOMES, {})
    cache = getattr(config, "cache", None)
    if first and outcomes and cache is not None:
        before = [node for node in cache.get(_FAILED, []) if node not in outcomes]
        cache.set(_FAILED, sorted(before + [node for node, failed in outcomes.items() if failed]))
