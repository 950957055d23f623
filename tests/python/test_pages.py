"""The pages for Python are programs. A page whose library isn't installed is skipped, which says so."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(os.environ.get("ATTEST_PAGES", Path(__file__).parent / "../../harness/python"))


def blocks(page):
    path = PAGES / page if (PAGES / page).exists() else PAGES.parent / page  # the tutorial lies one folder up
    found = re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)
    assert found, page
    return found


def run(program, folder):
    (folder / "page.py").write_text(program)
    done = subprocess.run([sys.executable, "page.py"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "page, libraries",
    [("TUTORIAL.md", []), ("CUDA.md", []), ("PYTORCH.md", ["torch"]), ("TRITON.md", ["torch", "triton"])],
)
def test_a_page_runs(page, libraries, tmp_path):
    for library in libraries:
        pytest.importorskip(library, reason=f"{page}: left out, {library} is not installed")
    assert " passed, 0 failed" in run("\n".join(blocks(page)), tmp_path)


@pytest.mark.parametrize(
    "page, languages",
    [
        ("python_callable.md", ["python", "sh", "python"]),
        ("onnx.md", ["sh", "text", "python", "sh"]),
        ("model.md", ["json", "sh", "text", "python", "sh", "python"]),
    ],
)
def test_a_how_to_page(page, languages, tmp_path):
    """From top to bottom: a block behind `NAME`: is a file, the lines of `sh` are commands."""
    folder = PAGES if (PAGES / page).exists() else PAGES.parent / "how-to"
    text = (folder / page).read_text()
    steps = re.findall(r"^([^\n]*)\n\n?```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [language for _, language, _ in steps] == languages
    printed = ""
    for before, language, block in steps:
        if language == "text":
            assert block in printed  # what a command above printed, or wrote
        elif name := re.search(r"`([^`]+)`[^`]*:$", before):
            (tmp_path / name[1]).write_text(block)
        elif language == "python":
            assert " passed, 0 failed" in run(block, tmp_path)
        for command in block.splitlines() if language == "sh" else []:
            words, _, comment = command.partition("    # exit code ")
            words = words.replace("python ", f"{shlex.quote(sys.executable)} ", 1)
            done = subprocess.run(words, shell=True, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == int(comment.partition(":")[0] or 0), command + done.stdout + done.stderr
            printed += done.stdout


def test_the_first_five_lines(tmp_path):
    pytest.importorskip("torch", reason="README.md: left out, torch is not installed")
    program = blocks("README.md")[0]
    assert program.count("\n") == 5
    told = run(program, tmp_path)
    assert "27 passed, 1 failed" in told, told  # NaN in hidden keys


def test_the_gradients_of_the_guide(tmp_path):
    pytest.importorskip("torch", reason="README.md: left out, torch is not installed")
    five_lines, _, gradients = blocks("README.md")[:3]
    told = run("\n".join([*five_lines.splitlines()[:2], gradients]), tmp_path)
    assert "1 pass, 0 fail" in told, told


def test_the_cache_of_the_guide(tmp_path):
    told = run(f"import attest\nimport numpy as np\n{blocks('README.md')[1]}", tmp_path)
    assert "1 pass, 0 fail" in told, told


def test_the_readme_at_the_top_has_the_same_five_lines():
    top = PAGES / "top.md"
    text = (top if top.exists() else Path(__file__).parent / "../../README.md").read_text()
    assert blocks("README.md")[0] in text


def test_the_class_of_the_guide(tmp_path):
    program = blocks("README.md")[3]
    told = run(f"import attest\n{program}\nprint(attest.check(Mine(), 'seq=4 dim=4').verdicts[0].reason)", tmp_path)
    assert told == "head size: a multiple of 16 is wanted\n"
