"""The table of harness/python/README.md: no example takes or passes less of the matrix than it says there."""

import re

import pytest
import shares

ROWS = {
    name: (int(accepted), int(passed))
    for name, accepted, passed in re.findall(
        r"^\| (\w+) \|.*\| (\d+) % \| (\d+) % \|.*$", (shares.PAGES / "README.md").read_text(), re.MULTILINE
    )
}


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
