"""`python -m attest changes`: which verdicts differ between two runs, as of a base branch and of a change to it."""

from __future__ import annotations

import json
import sys
from typing import Any, Sequence

from attest import _attest
from attest._parser import Parser
from attest._results import Verdict, verdict_from

_SHOWN = 50  #: rows of the table

Key = tuple[str, str, str]


def main(words: Sequence[str]) -> int:
    """Runs the command and returns its exit code: 1 where something fails that did not fail before."""
    parser = Parser(
        prog="python -m attest changes",
        description="Tells which verdicts differ between two files of `check --json`. Exit code 1: something fails now "
        "that did not fail before.",
        epilog="Example: python -m attest changes base.jsonl head.jsonl --format markdown",
    )
    parser.add_argument("before", metavar="BEFORE", help="file of verdicts of the base")
    parser.add_argument("now", metavar="NOW", help="file of verdicts of the change")
    parser.add_argument("--format", choices=("text", "markdown"), default="text")
    try:
        asked = parser.parse_args(words)
        before, now = read_verdicts(asked.before), read_verdicts(asked.now)
    except _attest.UserError as error:
        print(f"attest: {error}", file=sys.stderr)
        return 2
    text, fails = changes(before, now, markdown=asked.format == "markdown")
    sys.stdout.write(text)
    return 1 if fails else 0


def read_verdicts(path: str) -> dict[Key, Verdict]:
    """The verdicts of a file by suite, case and backend. Raises UserError where it is none."""
    found: dict[Key, Verdict] = {}
    header = False
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                told: Any = json.loads(line)
                header = header or told["kind"] == "run"
                if told["kind"] == "verdict":
                    verdict = verdict_from(told)
                    found[(verdict.suite, verdict.case, verdict.backend)] = verdict
    except OSError as error:
        raise _attest.UserError(f"{path}: {error.strerror}; name a file of `attest check --json`") from None
    except (ValueError, KeyError, TypeError):
        header = False
    if not header:
        raise _attest.UserError(f"{path}: is no file of verdicts; name one of `attest check --json`")
    return found


def changes(before: dict[Key, Verdict], now: dict[Key, Verdict], markdown: bool = False) -> tuple[str, int]:
    """A text about what differs, and how many verdicts fail now that did not before."""
    fails = [key for key, one in now.items() if one.failed and not (key in before and before[key].failed)]
    mended = [key for key, one in now.items() if key in before and before[key].failed and not one.failed]
    others = [
        key for key, one in now.items()
        if key in before and before[key].status != one.status and key not in fails and key not in mended
    ]  # fmt: skip
    lost = [key for key in before if key not in now]
    counts = [(len(fails), "newly failing"), (len(mended), "no longer failing"), (len(others), "changed otherwise"),
              (sum(key not in before for key in now), "new"), (len(lost), "no longer there")]  # fmt: skip
    said = ", ".join(f"{count} {what}" for count, what in counts if count)
    text = (f"**Against the base:** {said or 'no verdict differs'}\n" if markdown else f"{said or 'no verdict differs'}\n")
    keys = [*fails, *mended, *others]
    rows = [(before[key].status if key in before else "-", now[key].status, key[2], key[1]) for key in keys[:_SHOWN]]
    if rows and markdown:
        text += "\n| before | now | backend | case |\n|---|---|---|---|\n"
        text += "".join("| " + " | ".join(_cell(one) for one in row) + " |\n" for row in rows)
    else:
        text += "".join(f"{was} -> {is_now}  {backend}  {case}\n" for was, is_now, backend, case in rows)
    if len(keys) > _SHOWN:
        text += f"\nand {len(keys) - _SHOWN} more\n"
    return text, len(fails)


def _cell(text: str) -> str:
    for mark in "\\|`*_<>[]":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())
