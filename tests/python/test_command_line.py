"""`python -m attest`, pytest's plug-in, examples in docstrings, and types."""

import doctest
import importlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import attest

HERE = Path(__file__).parent


def attest_says(*words, folder=HERE):
    done = subprocess.run([sys.executable, "-m", "attest", *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_objects_and_files():
    for words in ("kernels:Exact", "kernels:attention", str(HERE / "kernels.py") + ":Exact"):
        code, text = attest_says("check", "seq=4 dim=4", "heads=2 seq=5 dim=4 causal", "--python", words)
        assert code == 0 and "2 passed, 0 failed" in text, text
    code, text = attest_says("check", "seq=4 dim=4", "--python", "kernels:Exact", "--no-isolate", "--once")
    assert code == 0, text


def test_every_command_takes_objects():
    code, text = attest_says("explain", "seq=4 dim=4", "--python", "kernels:Exact")
    assert code == 0 and "the bound, term by term" in text, text
    code, text = attest_says("list", "backends", "--python", "kernels:Exact")
    assert code == 0 and "exact" in text, text
    code, text = attest_says("fuzz", "--count", "20", "--python", "kernels:Exact")
    assert code == 0 and "0 failed" in text, text
    code, text = attest_says("bench", "seq=16 dim=8", "--python", "kernels:Exact", "--repetitions", "2",
                             "--min-time", "0.01")  # fmt: skip
    assert code == 0 and "exact" in text, text


def test_bad_words_are_one_line_with_exit_code_2():
    for words, part in [
        ("kernels", "kernels"),
        ("nowhere:attention", "nowhere"),
        ("kernels:attenton", "attenton"),
        ("nowhere.py:attention", "nowhere.py"),
        ("kernels:np.pi", "kernels:np.pi"),
    ]:
        code, text = attest_says("check", "seq=4 dim=4", "--python", words)
        assert code == 2 and text.count("\n") == 1 and part in text, (words, text)


def test_a_module_that_ends_its_process(tmp_path):
    (tmp_path / "ends.py").write_text("import os\nos._exit(7)\n")
    code, text = attest_says("check", "seq=4 dim=4", "--python", "ends:attention", folder=tmp_path)
    assert code == 2 and "exit code 7" in text, text


def test_three_lines_of_pytest(tmp_path):
    for name in ("kernels.py", "recurrence.py"):
        (tmp_path / name).write_text((HERE / name).read_text())
    (tmp_path / "test_mine.py").write_text(
        textwrap.dedent(
            """
            import attest, kernels, pytest

            @pytest.mark.attest(["seq=4 dim=4", "seq=4 dim=4 dropout=0.5"])
            def test_right(attest_case):
                attest_case.check(lambda q, k, v: kernels.attention(q, k, v))

            @pytest.mark.attest("seq=4 dim=4")
            def test_wrong(attest_case):
                attest_case.check(lambda q, k, v: kernels.attention(q, k, v) * 2)

            def test_suite(attest_case):
                assert attest_case.line
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--attest-suite", "smoke", "."],
        cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ, PYTEST_ADDOPTS=""),
    )  # fmt: skip
    assert f"1 failed, {1 + len(attest.cases('smoke'))} passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "refused: dropout" in done.stdout, done.stdout


@pytest.mark.parametrize("module", ["attest", "attest._api", "attest._backend", "attest._capture", "attest._closer",
                                    "attest._judge", "attest._relate"])  # fmt: skip
def test_examples_in_docstrings(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.failed == 0 and result.attempted > 0


def test_types(tmp_path):
    pytest.importorskip("mypy")
    stems = [path.stem for path in Path(attest.__file__).parent.glob("*.py") if path.stem != "__init__"]
    modules = [word for stem in stems for word in ("-m", f"attest.{stem}")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, *modules],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_is_annotated():
    assert (Path(attest.__file__).parent / "py.typed").exists()
    for name in attest.__all__:
        assert getattr(attest, name).__doc__, name


def test_a_new_backend_passes_its_own_tests(tmp_path):
    code, text = attest_says("new-backend", "my_kernel", "--python", folder=tmp_path)
    assert code == 0, text
    made = tmp_path / "my_kernel"
    files = [path for path in made.rglob("*") if path.is_file()]
    assert {str(path.relative_to(made)) for path in files} == {
        "my_kernel.py", "test_my_kernel.py", "pyproject.toml", "ci.yml", "lists/my_kernel/expected_refusals",
    }  # fmt: skip
    assert not any("example_py" in path.read_text() for path in files)
    built = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path / "site"), str(made)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(made)],
        cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(tmp_path / "site")),
    )  # fmt: skip
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout
    code, text = attest_says("check", "--suite", "smoke", "--python", "my_kernel.py:Kernel", folder=made)
    assert code == 0 and "0 failed" in text, text


def test_the_job_of_a_new_backend_is_green_without_an_index(tmp_path):
    code, text = attest_says("new-backend", "my_kernel", "--python", folder=tmp_path)
    assert code == 0, text
    made = tmp_path / "my_kernel"
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"  # as in the environment that attest was installed into
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    commands = [line.split("run: ", 1)[1] for line in (made / "ci.yml").read_text().splitlines() if "- run: " in line]
    after = [line for line in text.splitlines() if line.startswith(("python", "pip", "pytest"))]
    assert len(commands) >= 2 and after
    environment = dict(os.environ, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}", PIP_NO_INDEX="1")
    for command in commands + after:
        done = subprocess.run(["bash", "-ec", command], cwd=made, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr}"
    # What it refuses from now on is told, with a file of its own to mend.
    kernel = made / "my_kernel.py"
    kernel.write_text(kernel.read_text().replace('refuses = ["grouped heads"]', 'refuses = ["grouped heads", "scale"]'))
    done = subprocess.run(["bash", "-c", commands[-1]], cwd=made, capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "lists/my_kernel/expected_refusals" in done.stdout, done.stdout
