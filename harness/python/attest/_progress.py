"""How far a run is: one line that writes over itself, in a terminal or a notebook."""

from __future__ import annotations

import sys
import time
from typing import Callable, Optional, Union

from attest._results import Verdict

#: Told after each verdict: which, how many there were and how many there will be.
Progress = Callable[[Verdict, int, int], None]


def line(verdict: Verdict, done: int, total: int) -> None:
    """Writes "12/97 passed so far" over the line before, ten times a second at most."""
    now = time.monotonic()
    _line.failed += verdict.failed
    if done < total and now - _line.last < 0.1:
        return
    _line.last = now
    failed = f", {_line.failed} failed" if _line.failed else ""
    sys.stderr.write(f"\rattest: {done} of {total}{failed}  ")
    if done >= total:
        sys.stderr.write("\n")
        _line.failed = 0
    sys.stderr.flush()


class _State:
    last = 0.0
    failed = 0


_line = _State()


def words(progress: Union[None, bool, Progress]) -> Optional[Callable[[str], None]]:
    """The same for what a benchmark is doing."""
    if not wanted(progress if not callable(progress) else None):
        return None

    def say(what: str) -> None:
        sys.stderr.write(f"\r\x1b[K{what}")
        sys.stderr.flush()

    return say


def wanted(progress: Union[None, bool, Progress]) -> Optional[Progress]:
    """None: a line where someone looks; False: nothing; True: the line anywhere."""
    if callable(progress):
        return progress
    someone = "ipykernel" in sys.modules or sys.stderr.isatty()
    return line if progress or (progress is None and someone) else None
