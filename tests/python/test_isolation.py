"""What runs in a process of its own: who crashes, hangs or leaks there, and what is told of it."""

import importlib.util
import sys

import hostile
import kernels
import pytest

import attest
from test_command_line import attest_says

LINE = "seq=8 dim=4"
SHORT = dict(repetitions=2, min_seconds=0.01, threads=1, timeout=2, memory_gib=0.7)
ENDS = [
    (hostile.exits, "crashed"),
    (hostile.crashes, "crashed"),
    (hostile.loops, "timeout"),
    (hostile.leaks, "out_of_memory"),
]


@pytest.mark.parametrize("attack, why", ENDS)
def test_a_benchmark_goes_on_without_who_ends_its_process(attack, why, tmp_path):
    result = attest.bench([kernels.attention, attack], LINE, against=["example"], json=tmp_path / "b.json", **SHORT)[0]
    assert result[attack.__name__].no_speed == why
    assert result["attention"].seconds and result["example"].seconds
    assert f'"cause":"{why}"' in (tmp_path / "b.json").read_text()


@pytest.mark.parametrize("attack, why", ENDS)
def test_the_command_line_says_why_there_is_no_speed(attack, why, tmp_path):
    code, text = attest_says(
        "bench", LINE, "--python", f"hostile:{attack.__name__}", "--repetitions", "2", "--min-time", "0.01",
        "--timeout", "2", "--memory", "0.7", "--json", str(tmp_path / "b.json"),
    )  # fmt: skip
    assert code == 1
    assert attack.__name__ in text and "no speed" in text
    assert f'"cause":"{why}"' in (tmp_path / "b.json").read_text()


@pytest.mark.parametrize("attack, status", [(hostile.exits, "crashed"), (hostile.loops, "timeout")])
def test_a_check_has_a_verdict_without_being_asked_to_isolate(attack, status):
    results = attest.check(attack, LINE, timeout=2, shrink=False, once=True)
    assert [v.status for v in results] == [status]


def test_what_takes_too_much_memory_is_told_so():
    results = attest.check(hostile.leaks, LINE, memory_gib=0.7, shrink=False)
    assert [(v.status, v.cause) for v in results] == [("crashed", "killed: out of memory")]


def test_what_no_other_process_can_import_runs_here(tmp_path):
    # As some test runners load modules: known under a name that no search finds.
    (tmp_path / "nowhere.py").write_text("import kernels\ndef f(q, k, v):\n    return kernels.attention(q, k, v)\n")
    spec = importlib.util.spec_from_file_location("nowhere", tmp_path / "nowhere.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["nowhere"] = module
    spec.loader.exec_module(module)
    assert attest.check(module.f, LINE).ok
    assert attest.check(lambda q, k, v: kernels.attention(q, k, v), LINE).ok


def test_what_is_stated_reaches_the_other_process():
    results = attest.check(hostile.exits, LINE, name="another", refuses=["causal"], timeout=5, shrink=False, once=True)
    assert [(v.backend, v.status) for v in results] == [("another", "crashed")]


@pytest.mark.parametrize("text, piece", [("while True: pass", "--timeout"), ("import os; os._exit(0)", "exit code 0")])
@pytest.mark.parametrize("command", ["check", "bench", "explain"])
def test_a_module_that_does_not_come_up_is_told_in_one_line(command, text, piece, tmp_path):
    (tmp_path / "stuck.py").write_text(f"{text}\ndef f(q, k, v): pass\n")
    code, said = attest_says(command, LINE, "--python", f"{tmp_path}/stuck.py:f", "--timeout", "2")
    assert code == 2
    assert piece in said and len(said.strip().splitlines()) == 1
