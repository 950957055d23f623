#!/usr/bin/env python3
"""Writes results/peers.md, and reports of bugs, from the result files in results/peers/ and from findings.toml.

    python3 backends/peers/report.py [--check] [--rerun FOLDER] [--posts FOLDER]

With --check nothing is written, and a file that differs from what stands there is an error. With --rerun the verdicts
in FOLDER, which `run.py --results FOLDER` writes, are compared with those of the same peers and suites. With --posts
the reports are written into FOLDER with their programs in them, ready to be sent.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import peer_results
from peer_results import GRADIENTS, HERE, KINDS, SUITES, Finding
from peer_results import all_findings, all_programs, by_statement, classified, library, verdicts_of
from peer_tables import environment, fuzzing, gradients_table, refused_table, suites_table, support, table
from posts import NOT_REPORTED, post

PLURAL = {"bug": "bugs", "convention": "conventions", "arithmetic": "loose arithmetic", "limit": "limits"}


def code(text: str) -> str:
    return text if text.startswith("none") else f"`{text}`"


def report_of(found: Finding, run: dict[str, Any] | None) -> str:
    """The link to a bug's report, what others reported, and how often it was seen, if not always."""
    if not run:
        return "-"
    others = [f"part of `{found['part_of']}`"] if "part_of" in found else []
    others += [found["upstream"].rstrip(".")] if found.get("upstream", NOT_REPORTED) != NOT_REPORTED else []
    others += [f"program {run['wrong']} of {run['runs']}"] * (run["wrong"] != run["runs"])
    if not found["line"].startswith("none") and run["line_wrong"] != run["runs"]:
        others.append(f"line {run['line_wrong']} of {run['runs']}")
    return "; ".join([f"[report](peers/posts/{found.get('part_of', found['name'])}.md)", *others])


def certain_of(found: Finding, findings: list[Finding]) -> bool:
    """Whether a text of the library, or its plain meaning, says that a bug is one. A sign is as certain as its bug."""
    whole = next((each for each in findings if each["name"] == found.get("part_of")), found)
    return bool(whole.get("certain", True))


def machines_of(programs: dict[str, Any]) -> list[str]:
    """Where programs ran: a line for each environment, with those that differ from the most."""
    where: dict[str, list[str]] = collections.defaultdict(list)
    for name, run in programs.items():
        where[re.sub(r"-fc-\S+", "", run.get("machine", "a machine that was not recorded"))].append(name)
    ordered = sorted(where, key=lambda place: -len(where[place]))
    return [f"- {place}" + (f": {', '.join(where[place])}" if n else "") for n, place in enumerate(ordered)]


def page() -> str:
    peers = [peer for peer in tomllib.loads((HERE / "peers.toml").read_text()) if library(peer) != "-"]
    findings = all_findings()
    seen: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    unexplained: list[list[str]] = []
    for peer in peers:
        for suite in (*SUITES, GRADIENTS, "fuzz"):
            for verdict, found in classified(peer, suite, findings):
                if found:
                    seen[found["name"]][peer] += 1
                else:
                    unexplained.append([peer, f"`{verdict['case']}`", str(verdict["cause"])])
            for verdict in verdicts_of(peer, suite):
                if found := by_statement(verdict, findings):
                    seen[found["name"]][peer] += 1
    out = (HERE / "peers_head.txt").read_text().splitlines()
    groups = tomllib.loads((HERE / "peers.toml").read_text())
    for group in ("frameworks", "runtimes"):
        columns = [peer for peer in peers if groups[peer].get("group") == group]
        out += [f"### {group.capitalize()}", "", *environment(columns, (*SUITES, GRADIENTS)), *support(columns, findings), ""]
    out += ["## Verdicts", "", *(HERE / "verdicts_head.txt").read_text().splitlines(), ""]
    out += environment(peers, SUITES)
    out += suites_table(peers, findings)
    out += ["", "## Refused", "", "Cases of `matrix` that an adapter refused, by its reason.", ""]
    out += [*environment(peers, ["matrix"]), *refused_table(peers)]
    out += ["", "## Gradients", "", *(HERE / "gradients_head.txt").read_text().splitlines()]
    out += [*environment(peers, [GRADIENTS]), *gradients_table(peers, findings)]
    bugs = [found for found in findings if found["kind"] == "bug" and "part_of" not in found]
    signs = sum("part_of" in found for found in findings)
    out += ["", "## Fuzzing", "", *fuzzing(peers, findings), ""]
    arguable = sum(not certain_of(found, findings) for found in bugs)
    out += [f"The tables hold {len(bugs)} bugs, {arguable} of them arguable, {signs} by two signs."]
    return "\n".join([*out, *findings_tables(findings, seen), *not_explained(unexplained)]) + "\n"


def findings_tables(findings: list[Finding], seen: dict[str, collections.Counter[str]]) -> list[str]:
    """A section for each kind: what was found, `seen` on how many verdicts of each peer, and the smallest line."""
    out: list[str] = []
    programs = all_programs()
    tables = [("bug", True), ("bug", False), *((kind, True) for kind in KINDS[1:-1])]
    for kind, certain in tables:
        rows = []
        for found in (f for f in findings if f["kind"] == kind and certain_of(f, findings) == certain):
            who = ", ".join(f"`{peer}` {count}" for peer, count in seen[found["name"]].items()) or (
                f"{', '.join(f'`{each}`' for each in found['peers'])}: its program" if kind == "bug" else "none"
            )
            row = [f"{found['says']}", who, code(found["line"])]
            if kind == "bug":
                row.append(report_of(found, programs.get(found.get("part_of", found["name"]))))
            elif kind == "convention":
                row.append(found["wanted"] + (f". {found['upstream']}" if "upstream" in found else ""))
            elif kind == "arithmetic":
                row += [found["where"], f"{found['at_most']:g}"]
            rows.append(row)
        more = {
            "bug": ["report"],
            "convention": ["what attest says"],
            "arithmetic": ["place", "error/bound up to"],
        }
        out += ["", f"## {PLURAL[kind].capitalize() if certain else 'Arguable bugs'}", ""]
        if kind == "bug" and certain:
            out += ["A report has the program, its output, what was expected and why, the place in the source, who is hit,"]
            out += ["and reports by others. Programs ran on:", "", *machines_of(programs), ""]
        elif kind == "bug":
            out += ["The library contradicts itself or another path of its own, and no text of it promises otherwise.", ""]
        out += table(["what", "verdicts", "smallest line", *more.get(kind, [])], rows)
    return out


def not_explained(rows: list[list[str]]) -> list[str]:
    return ["", "## Not explained yet", "", *(table(["peer", "line", "cause"], rows) if rows else ["Nothing."])]


def files(whole_posts: Path | None = None) -> dict[Path, str]:
    """All that is written: the page, and a report for each bug. Or whole reports, into a folder."""
    programs = all_programs()
    findings = all_findings()
    made = {} if whole_posts else {peer_results.RESULTS / "peers.md": page()}
    folder = whole_posts or peer_results.RESULTS / "peers" / "posts"
    for found in findings:
        if found["kind"] == "bug" and found["name"] in programs:
            made[folder / f"{found['name']}.md"] = post(found, programs[found["name"]], bool(whole_posts))
    return made


def told(path: Path) -> dict[str, tuple[str, str]]:
    """By case: its verdict and what it comes from."""
    with gzip.open(path, "rt") as file:
        lines = [json.loads(line) for line in file]
    return {line["case"]: (line["status"], line.get("cause") or "") for line in lines if line["kind"] == "verdict"}


def rerun(folder: Path) -> None:
    """Fails where a verdict differs from the one that is written down. What was read as a convention then may be judged
    as one that is stated now."""
    findings = all_findings()
    differ = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        before, now = told(peer_results.RESULTS / "peers" / path.name), told(path)
        peer, suite = path.name.split(".")[:2]
        conventions = {
            verdict["case"]
            for verdict, found in classified(peer, suite, findings)
            if found and found["kind"] == "convention"
        }
        for case in sorted(before.keys() | now.keys()):
            if now.get(case, ("",))[0] == "convention" and case in conventions:
                continue
            if before.get(case) != now.get(case):
                differ.append(f"{path.name}: {case}: {before.get(case, 'no verdict')}, now {now.get(case, 'none')}")
        print(f"{path.name}: {len(now)} verdicts")
    if differ:
        sys.exit("\n".join(differ))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rerun", type=Path, metavar="FOLDER")
    parser.add_argument("--posts", type=Path, metavar="FOLDER", help="whole reports, with their programs, to this folder")
    asked = parser.parse_args()
    if asked.rerun:
        return rerun(asked.rerun)
    made = files(asked.posts)
    stale = [] if asked.posts else [path for path in (peer_results.RESULTS / "peers" / "posts").glob("*.md") if path not in made]
    if asked.check and stale:
        sys.exit(f"{stale[0].name} is of no bug any more; python3 backends/peers/report.py takes it away")
    for path in stale:
        path.unlink()
    for path, text in made.items():
        if not asked.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path.name} is not what the result files say; python3 backends/peers/report.py writes it")


if __name__ == "__main__":
    main()
