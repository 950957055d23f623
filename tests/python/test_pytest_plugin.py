"""pytest's plug-in: what a project with tests of its own gets."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import attest

HERE = Path(__file__).parent
MINE = """
import attest, kernels, pytest

LINES = ["seq=4 dim=4", "heads=2 seq=33 dim=16 causal", "seq=5x9 dim=4", "seq=4 dim=4 dropout=0.5"]

def right(q, k, v, *, causal=False):
    return kernels.attention(q, k, v, causal=causal)

def wrong_diagonal(q, k, v, *, causal=False):
    return kernels.attention(q, k, v)

@pytest.mark.attest(LINES)
def test_right(attest_case):
    attest_case.check(right)

@pytest.mark.attest(LINES, filter="causal|5x9")
def test_wrong(attest_case):
    attest_case.check(wrong_diagonal)
"""


@pytest.fixture
def project(tmp_path):
    for name in ("kernels.py", "recurrence.py"):
        (tmp_path / name).write_text((HERE / name).read_text())
    (tmp_path / "test_mine.py").write_text(MINE)

    def run(*words):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-rs", *words, "."],
            cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ, PYTEST_ADDOPTS=""),
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    run.folder = tmp_path
    return run


def test_markers_and_filters(project):
    code, text = project()
    assert code == 1 and "1 failed, 4 passed, 1 skipped" in text, text
    code, text = project("--attest-filter", "^seq=5x9")
    assert code == 0 and "2 passed" in text, text
    code, text = project("--attest-filter", "(")
    assert code != 0 and "--attest-filter (" in text, text


def test_failures_show_the_smallest_line_and_the_worst_element(project):
    code, text = project("-k", "wrong")
    assert code == 1 and "seq=1x2 dim=1 causal align=top-left" in text, text  # the smallest
    assert "the bound, term by term" in text, text
    code, text = project("-k", "wrong", "--attest-no-explain")
    assert code == 1 and "seq=1x2 dim=1 causal align=top-left" in text and "the bound, term by term" not in text, text


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_the_file_of_verdicts(project, workers):
    if workers:
        pytest.importorskip("xdist")
    code, text = project("--attest-json", "run.jsonl", *workers)
    assert code == 1 and "1 failed, 4 passed, 1 skipped" in text, text
    assert not list(project.folder.glob("run.jsonl.*"))
    lines = [json.loads(line) for line in (project.folder / "run.jsonl").read_text().splitlines()]
    assert [one["kind"] for one in lines].count("run") == 1 and lines[-1]["kind"] == "summary"
    verdicts = [one for one in lines if one["kind"] == "verdict"]
    assert sorted((one["backend"], one["status"]) for one in verdicts) == [
        ("right", "pass"), ("right", "pass"), ("right", "pass"), ("right", "refused"),
        ("wrong_diagonal", "fail"), ("wrong_diagonal", "pass"),
    ]  # fmt: skip
    assert (lines[-1]["pass"], lines[-1]["fail"], lines[-1]["refused"]) == (4, 1, 1)
    assert {one["name"] for one in lines[0]["backends"]} == {"right", "wrong_diagonal"}
    page = subprocess.run([sys.executable, "-m", "attest", "report", "run.jsonl", "--out", "page.html"],
                          cwd=project.folder, capture_output=True, text=True)  # fmt: skip
    assert page.returncode == 0, page.stderr


def test_a_folder_that_is_missing_is_one_line(project):
    code, text = project("--attest-json", "nowhere/run.jsonl")
    assert code == 4 and "--attest-json nowhere/run.jsonl: there is no folder" in text, text


def test_what_failed_last_runs_alone(project):
    project()
    code, text = project("--attest-last-failed")
    assert code == 1 and "1 failed, 5 deselected" in text, text
    mine = project.folder / "test_mine.py"
    mine.write_text(MINE.replace("    return kernels.attention(q, k, v)\n", "    return right(q, k, v, causal=causal)\n"))
    code, text = project("--attest-last-failed")
    assert code == 0 and "1 passed, 5 deselected" in text, text
    code, text = project("--attest-last-failed")
    assert code == 0 and "5 passed, 1 skipped" in text, text  # nothing failed: all of them


def test_a_failure_that_a_run_leaves_out_is_remembered(project):
    project()
    project("-k", "right")
    code, text = project("--attest-last-failed")
    assert code == 1 and "1 failed, 5 deselected" in text, text
