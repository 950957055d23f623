"""One verdict on a file of somebody else, found by a process that this interpreter has no part in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Optional, Union

from attest._attest import UserError

#: Whatever lies in the current folder is not imported: it may be a stranger's.
_PROGRAM = (
    "import os, sys; sys.path[:] = [p for p in sys.path if p and p != os.getcwd()]; "
    "from attest.__main__ import main; sys.exit(main())"
)


def judge(
    submission: Union[str, os.PathLike[str]],
    task: Union[str, os.PathLike[str]],
    *,
    seed: Union[None, int, str] = None,
    budget: float = 60,
    language: str = "py",
    baseline: str = "",
    threads: int = 0,
    timeout: float = 60,
    memory_gib: float = 0,
    trust: bool = False,
    progress: Optional[Callable[[str], None]] = None,
) -> dict[str, Any]:
    """Judges what somebody else wrote on a task, as `attest judge` does: in a sandbox, on cases that it can't know.

    `submission` is the path of a file or a folder, or a source with line feeds, which is in `language`: "py", "c" or
    "cpp". A file of Python has a function ``attention(q, k, v, ...)`` or one subclass of Backend. `task` is one of
    attest's by its name, or the path of a file .task.

    >>> import attest
    >>> source = '''
    ... import numpy as np
    ... def attention(q, k, v):
    ...     return np.zeros_like(q)
    ... '''
    >>> judged = attest.judge(source, "decode", seed=7, budget=10, threads=1)
    >>> judged["verdict"]
    'fail'

    Returns the judgement, whose members are those of the command's JSON (harness/FILES.md). `seed` draws cases and
    data: a number or a text that no author knows; None draws what nobody knows. `budget` is how many seconds it may
    take, about; one step may take `timeout`, and the process `memory_gib` beyond what it starts with, where 0 is most
    of what is free. `threads` 0 is every core. `trust` runs it where the system lacks parts of the sandbox, too.
    `progress` is called with what is done at the moment. Raises UserError for a request that can't be carried out;
    what is wrong with a submission is a judgement.
    """
    text = os.fspath(submission)
    if "\n" not in text:
        return _judged(text, task, seed, budget, baseline, threads, timeout, memory_gib, trust, progress)
    if language not in ("py", "c", "cpp"):
        raise UserError(f'language: there is no "{language}"; py, c or cpp')
    with tempfile.TemporaryDirectory(prefix="attest.") as folder:
        file = Path(folder) / f"submission.{language}"
        file.write_text(text, encoding="utf-8")
        return _judged(str(file), task, seed, budget, baseline, threads, timeout, memory_gib, trust, progress)


def _judged(
    path: str,
    task: Union[str, os.PathLike[str]],
    seed: Union[None, int, str],
    budget: float,
    baseline: str,
    threads: int,
    timeout: float,
    memory_gib: float,
    trust: bool,
    progress: Optional[Callable[[str], None]],
) -> dict[str, Any]:
    words = [sys.executable, "-c", _PROGRAM, "judge", path, "--task", os.fspath(task), "--json", "-", "--one-line",
             "--budget", f"{budget:g}s", "--timeout", f"{timeout:g}"]  # fmt: skip
    for option, value in (("--baseline", baseline), ("--threads", threads), ("--memory", memory_gib)):
        words += [option, str(value)] if value else []
    words += ["--trust"] if trust else []
    words += ["--secret-seed", "-"] if seed is not None else []  # on no command line
    with tempfile.TemporaryFile("w+") as answer, subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=answer, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        assert process.stdin and process.stderr
        try:
            process.stdin.write("" if seed is None else str(seed))
            process.stdin.close()
            last = ""
            for line in process.stderr:
                last = line.strip() or last
                if progress:
                    progress(line.rstrip("\n"))
            process.wait()
            answer.seek(0)
            output = answer.read()
        except BaseException:
            process.terminate()
            raise
    try:
        judged = json.loads(output)
    except ValueError:
        raise UserError(last.removeprefix("attest: ") or f"judging ended with exit code {process.returncode}") from None
    if not isinstance(judged, dict) or "verdict" not in judged:
        raise UserError(f"{path}: holds several submissions; `attest judge` judges each of them")
    return judged
