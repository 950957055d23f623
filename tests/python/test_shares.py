"""The table of harness/python/README.md: no example takes or passes less of the matrix than it says there."""

import re
import subprocess
import sys
from pathlib import Path

import attest
import pytest
import shares

ROWS = {
    name: (int(accepted), int(passed))
    for name, accepted, passed in re.findall(
        r"^\| (\w+) \|.*\| (\d+) % \| (\d+) % \|.*$", (shares.PAGES / "README.md").read_text(), re.MULTILINE
    )
}


def test_the_command_prints_a_line_for_each_example():
    """`python3 tests/python/shares.py`, of few cases."""
    script = Path(shares.__file__)
    done = subprocess.run(
        [sys.executable, script.name, "--every", "1000", "--reasons"], cwd=script.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("  ")]
    assert [line.split(":")[0] for line in lines] == list(shares.EXAMPLES), done.stdout
    every = len(attest.cases("matrix")[::1000])
    assert all(f"of {every} cases" in line or "is not installed" in line for line in lines), done.stdout


def test_the_table_has_every_example():
    assert set(ROWS) == set(shares.EXAMPLES)


@pytest.mark.parametrize("example", shares.EXAMPLES)
def test_an_example_takes_what_the_table_says(example):
    if library := shares.missing(example):
        pytest.skip(f"{example}: left out, {library} is not installed")
    results = shares.measure(example, every=24)
    assert not shares.unexpected(example, results), str(results)
    accepted, passed = shares.shares(results)
    assert accepted >= ROWS[example][0] and passed >= ROWS[example][1], (accepted, passed, results.summary())
