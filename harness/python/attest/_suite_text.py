"""Case lines with a comment for each, as a suite file holds them."""

from __future__ import annotations

import os
from typing import Iterable

from attest import _attest

_SHOWN = 3  #: comments of a line that many places have


class SuiteText:
    """A suite in the making. The first comment of its file says what it is for, others where its lines come from."""

    def __init__(self, about: str) -> None:
        self.about = about
        self.notes: list[str] = []  #: comments below the first one
        self._comments: dict[str, list[str]] = {}

    def note(self, text: str) -> None:
        """Adds a comment below the first one, once."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, words: str, comment: str) -> None:
        """Adds a case line in attest's canonical form. A line that is there already gets the further comment."""
        (line,) = _attest.cases_of([], [], [words])
        comments = self._comments.setdefault(line, [])
        if comment not in comments:
            comments.append(comment)

    @property
    def lines(self) -> list[str]:
        """The canonical lines, each once."""
        return list(self._comments)

    def __str__(self) -> str:
        text = [f"# {_one_line(self.about)}"] + [f"#   {_one_line(note)}" for note in self.notes]
        width = min(max((len(line) for line in self._comments), default=0), 100)
        for line, comments in self._comments.items():
            more = f"; and {len(comments) - _SHOWN} more" if len(comments) > _SHOWN else ""
            text.append(f"{line:<{width}}  # {_one_line('; '.join(comments[:_SHOWN]))}{more}")
        return "\n".join(text) + "\n"


def write_text(path: str, text: str) -> None:
    """Writes the file complete or not at all. Raises UserError where the path can't be written."""
    part = f"{path}.part{os.getpid()}"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
    except OSError as error:
        if os.path.exists(part):
            os.unlink(part)
        raise _attest.UserError(f"{path}: {error.strerror}; name another file for --out") from None


def joined(parts: Iterable[object]) -> str:
    """Words of a case line; empty ones are left out."""
    return " ".join(str(part) for part in parts if part)


def number(value: float) -> str:
    """A number for a case line, in nine digits."""
    return format(value, ".9g")


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
