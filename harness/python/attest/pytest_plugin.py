"""A test suite of one's own gets attest's cases: each is a test of its own.

    import pytest

    @pytest.mark.attest("smoke")
    def test_attention(attest_case):
        attest_case.check(my_attention)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import attest


@dataclass(frozen=True)
class AttestCase:
    """One case of a suite."""

    line: str

    def check(self, implementation: Any, **stated: Any) -> attest.Verdict:
        """The verdict on this case. Fails the test for a wrong result; skips it where the case is refused, or proves
        nothing. What is stated is as in attest.check."""
        stated.setdefault("isolate", False)  # a process for each case would take longer than the case
        results = attest.check(implementation, self.line, progress=False, **stated)
        if not results.failures and not results.problems and not any(v.passed for v in results):
            pytest.skip("; ".join(f"{v.status}: {v.reason}" for v in results))
        if results.failures or results.problems:
            pytest.fail(str(results), pytrace=False)
        return results[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attest-suite", default="smoke", help="cases of tests that name none: a suite or a case line")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "attest(suite): the cases of attest_case: a suite, a case line, or a list")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "attest_case" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("attest")
    suite = marker.args[0] if marker and marker.args else metafunc.config.getoption("--attest-suite")
    lines = attest.cases(suite)
    metafunc.parametrize("attest_case", [AttestCase(line) for line in lines], ids=lines)
