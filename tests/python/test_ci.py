"""The action for GitHub and the template for GitLab: their commands, run in a project with a base and a change."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(os.environ.get("ATTEST_CI", Path(__file__).parent / "../.."))
RIGHT = """import numpy as np

def attention(q, k, v, *, causal=False):
    scores = q @ k.swapaxes(2, 3) * q.dtype.type(q.shape[3] ** -0.5)
    if causal:
        scores = np.where(np.tri(q.shape[2], k.shape[2], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(3, keepdims=True))
    return weights @ v / weights.sum(3, keepdims=True)
"""
WRONG = RIGHT.replace("if causal:", "if causal and q.shape[2] != 33:")
CASES = "# mine\nseq=4 dim=4\nheads=2 seq=33 dim=16 causal\nseq=5x9 dim=4\nseq=9 dim=4 causal\n"


@pytest.fixture
def project(tmp_path):
    """A repository with a right kernel, and behind it a wrong one."""
    made = tmp_path / "project"
    made.mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)

    def git(*words):
        said = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        return subprocess.run(["git", *said, *words], cwd=made, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (made / "mine.cases").write_text(CASES)
    for text in (RIGHT, WRONG):
        (made / "kernel.py").write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", "kernel")
    made_python = os.path.dirname(sys.executable)
    # The environment's own folder first: a link to an interpreter outside of it would lose what is installed there.
    return made, git("rev-parse", "HEAD~1"), f"{made_python}:{os.environ['PATH']}"


class GitHub:
    """Runs the steps of the action as a runner does, as far as they are used here."""

    def __init__(self, folder, path, **inputs):
        action = yaml.safe_load((ROOT / ".github/actions/attest/action.yml").read_text())
        self.folder, self.path, self.temp = folder, path, folder.parent
        self.inputs = {name: one["default"] for name, one in action["inputs"].items()}
        assert set(inputs) <= set(self.inputs)
        self.inputs.update(inputs)
        self.steps = action["runs"]["steps"]
        self.outputs, self.log, self.failed, self.kept = {}, "", [], []

    def value(self, text):
        known = {f"inputs.{name}": value for name, value in self.inputs.items()}
        known.update({f"steps.check.outputs.{name}": value for name, value in self.outputs.items()})
        known["github.action_path"] = str(ROOT / ".github/actions/attest")
        known["github.event.pull_request.base.sha"] = ""
        return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: known[found[1]], text)

    def run(self):
        for step in self.steps:
            wanted = step.get("if", "success()")
            assert wanted in ("success()", "always()", "inputs.base != ''"), wanted
            if wanted == "inputs.base != ''" and not self.value(self.inputs["base"]):
                continue
            if self.failed and wanted != "always()":
                continue
            if "uses" in step:
                assert step["uses"].startswith("actions/upload-artifact@")
                self.kept = [one for one in step["with"]["path"].split() if (self.folder / one).exists()]
                continue
            assert step["shell"] == "bash" and "${{" not in step["run"], "inputs come in variables, never into a script"
            environment = {name: self.value(value) for name, value in step.get("env", {}).items()}
            places = {name: str(self.temp / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=self.folder,
                capture_output=True, text=True,
                env={**os.environ, **environment, **places, "PATH": self.path, "RUNNER_TEMP": str(self.temp), "PIP_NO_INDEX": "1"},
            )  # fmt: skip
            self.log += done.stdout + done.stderr
            if done.returncode:
                self.failed.append((step["name"], done.returncode))
            output = Path(places["GITHUB_OUTPUT"])
            if output.exists():
                self.outputs.update(line.split("=", 1) for line in output.read_text().splitlines())
        summary = self.temp / "GITHUB_STEP_SUMMARY"
        self.summary = summary.read_text() if summary.exists() else ""
        return self


def test_a_change_that_breaks_the_kernel(project):
    folder, base, path = project
    run = GitHub(folder, path, python="kernel.py:attention", suite="mine.cases", base=base).run()
    assert run.failed == [("verdict", 1)], run.log
    assert "::error" in run.log and "heads=2 seq=33 dim=16 causal" in run.log, run.log
    assert "**Against the base:** 1 newly failing" in run.summary, run.summary + run.log
    assert re.search(r"\| pass \| fail \| attention \| heads=2 seq=33 dim=16 causal \|", run.summary), run.summary
    assert sorted(run.kept) == ["attest-base.jsonl", "attest.html", "attest.jsonl", "attest.xml"]
    assert not (folder.parent / "attest-base").exists()


def test_a_change_that_leaves_all_right(project):
    folder, base, path = project
    (folder / "kernel.py").write_text(RIGHT)
    run = GitHub(folder, path, python="kernel.py:attention", suite="mine.cases", base=base).run()
    assert run.failed == [] and "no verdict differs" in run.summary, run.log
    run = GitHub(folder, path, python="kernel.py:attention", suite="mine.cases", options="--filter seq=5").run()
    assert run.failed == [] and "1 passed, 0 failed" in run.log, run.log


def test_a_kernel_that_is_not_there(project):
    folder, base, path = project
    run = GitHub(folder, path, python="nowhere.py:attention", base=base).run()
    assert run.failed == [("verdict", 2)] and "nowhere.py" in run.log, run.log
    assert "the base could not be checked" in run.summary


def test_a_library_is_built_here_and_for_the_base(project):
    folder, base, path = project
    run = GitHub(folder, path, python="built.py:attention", suite="mine.cases", base=base,
                 build="cp kernel.py built.py").run()  # fmt: skip
    assert run.failed == [("verdict", 1)] and "1 newly failing" in run.summary, run.log


def gitlab(folder, path, **variables):
    job = yaml.safe_load((ROOT / ".gitlab/attest.yml").read_text())[".attest"]
    assert set(variables) <= set(job["variables"]) | {"CI_MERGE_REQUEST_DIFF_BASE_SHA"}
    done = subprocess.run(["sh", "-ec", "\n".join(job["script"])], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PATH": path, **job["variables"], **variables})  # fmt: skip
    kept = [one for one in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]) if (folder / one).exists()]
    return done.returncode, done.stdout + done.stderr, kept


def test_the_template_for_gitlab(project):
    folder, base, path = project
    said = dict(ATTEST_PYTHON="kernel.py:attention", ATTEST_SUITE="mine.cases")
    code, text, kept = gitlab(folder, path, CI_MERGE_REQUEST_DIFF_BASE_SHA=base, **said)
    assert code == 1 and "pass -> fail  attention  heads=2 seq=33 dim=16 causal" in text, text
    assert len(kept) == 4
    (folder / "kernel.py").write_text(RIGHT)
    code, text, _ = gitlab(folder, path, **said)
    assert code == 0 and "4 passed, 0 failed" in text, text


def test_files_that_are_none(tmp_path):
    for name, content in (("text", "no JSON"), ("other", '{"kind":"bench"}\n')):
        (tmp_path / name).write_text(content)
        done = subprocess.run([sys.executable, "-m", "attest", "changes", name, name], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "no file of verdicts" in done.stderr
