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
import math
import re
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Iterator

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent.parent / "results"
SUITES = ("smoke", "bugs", "onnx", "matrix", "linear")
GRADIENTS = "backward"  #: the suite that has a table of its own
KINDS = ("bug", "convention", "arithmetic", "limit", "unexplained")
PLURAL = {"bug": "bugs", "convention": "conventions", "arithmetic": "loose arithmetic", "limit": "limits"}
RED = ("fail", "flaky", "suspect", "crashed", "timeout")

Finding = dict[str, Any]
Verdict = dict[str, Any]


def lines_of(peer: str, suite: str) -> list[dict[str, Any]]:
    """The result file's lines; none where it wasn't run."""
    path = RESULTS / "peers" / f"{peer}.{suite}.jsonl.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt") as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        if line.get("status") == "mistrusted":  # what version 0.1.0 called it
            line["status"] = "inconclusive"
    return [line for line in lines if line.get("backend") != "reference"]  # which files of values are held against, too


def number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float, str)) else math.nan


def queries_of(case: str) -> int:
    """How many queries a line or a golden file has; -1 where neither says."""
    said = re.search(r"seq=(\d+)", case)
    if said:
        return int(said[1])
    path = HERE.parent.parent / "tests" / case
    if not path.exists():
        return -1
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return int(header["q"]["shape"][-2]) if "q" in header else -1  # B,H,L,D, or B,L,H*D


def of_last_query(verdict: Verdict) -> bool:
    index = (verdict.get("worst") or {}).get("index", [])
    return len(index) > 2 and index[2] == queries_of(str(verdict["case"])) - 1


def fits(finding: Finding, peer: str, verdict: Verdict) -> bool:
    """Whether the verdict is one of the finding's."""
    if not any(fnmatch(peer, pattern) for pattern in finding["peers"]):
        return False
    for key in ("cause", "case", "reason"):
        if key in finding and not re.search(finding[key], str(verdict.get(key) or "")):
            return False
    worst = verdict.get("worst") or {}
    if finding.get("empty_row") and not (number(worst.get("expected")) == 0 and number(worst.get("bound")) == 0):
        return False
    if finding.get("last_query") and not of_last_query(verdict):
        return False
    if "off_by_less" in finding:
        if not abs(number(worst.get("got")) - number(worst.get("expected"))) < finding["off_by_less"]:
            return False
    ratio = verdict.get("error_over_bound")
    return "at_most" not in finding or (ratio is not None and number(ratio) <= finding["at_most"])


def classified(peer: str, suite: str, findings: list[Finding]) -> Iterator[tuple[Verdict, Finding | None]]:
    for line in lines_of(peer, suite):
        if line["kind"] == "verdict" and line["status"] in RED:
            yield line, next((finding for finding in findings if fits(finding, peer, line)), None)


def kinds_of(peer: str, suite: str, findings: list[Finding]) -> str:
    """What failed, by kind: ", 2 bug, 1 convention"."""
    kinds = collections.Counter(
        found["kind"] if found else "unexplained" for _, found in classified(peer, suite, findings)
    )
    # Those that a peer states are no failures any more.
    kinds["convention"] += sum(
        line["kind"] == "verdict" and line["status"] == "convention" for line in lines_of(peer, suite)
    )
    return "".join(f", {kinds[kind]} {kind}" for kind in KINDS if kinds[kind])


def verdicts_of(peer: str, suite: str) -> list[Verdict]:
    return [line for line in lines_of(peer, suite) if line["kind"] == "verdict"]


def cell(peer: str, suite: str, findings: list[Finding]) -> str:
    """What passed or proves little, what failed by kind, what is inconclusive. The rest of a suite is refused."""
    verdicts = verdicts_of(peer, suite)
    if not verdicts:
        return "-"
    count = collections.Counter(line["status"] for line in verdicts)
    text = f"{count['pass']} pass" + f", {count['weak']} weak" * bool(count["weak"]) + kinds_of(peer, suite, findings)
    return text + f", {count['inconclusive']} inconclusive" * bool(count["inconclusive"])


def stated(peer: str) -> int:
    """How many verdicts are right by what the peer states, in all suites."""
    lines = [line for suite in SUITES for line in lines_of(peer, suite)]
    return sum(line["kind"] == "verdict" and line["status"] == "convention" for line in lines)


def suites_table(peers: list[str], findings: list[Finding]) -> list[str]:
    """A row for each peer, for several where all is the same, and a column for each suite that one of them ran. How
    many of its conventions a peer states has a column where one states any."""
    cases = {suite: {len(verdicts_of(peer, suite)) for peer in peers} - {0} for suite in SUITES}
    ran = [suite for suite in SUITES if cases[suite]]
    header = ["peer", "library", *(f"{suite} ({', '.join(map(str, sorted(cases[suite])))})" for suite in ran), "taken"]
    counts = {p: stated(p) for p in peers}
    if any(counts.values()):
        header.append("`convention`: as the peer states")
    alike: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
    for p in peers:
        row = [library(p), *(cell(p, suite, findings) for suite in ran), share(p)]
        row += [str(counts[p])] if any(counts.values()) else []
        alike[tuple(row)].append(f"`{p}`")
    return table(header, [[", ".join(names), *same] for same, names in alike.items()])


def gradients_table(peers: list[str], findings: list[Finding]) -> list[str]:
    """A row for each peer that gives gradients."""
    rows = []
    for peer in peers:
        verdicts = verdicts_of(peer, GRADIENTS)
        if verdicts:
            refused = sum(line["status"] == "refused" for line in verdicts)
            rows.append([f"`{peer}`", cell(peer, GRADIENTS, findings), str(refused), str(len(verdicts))])
    return table(["peer", "verdicts", "refused", "lines"], rows) if rows else ["Nothing."]


def share(peer: str) -> str:
    """How much of `matrix` is not refused."""
    verdicts = verdicts_of(peer, "matrix")
    if not verdicts:
        return "-"
    return f"{100 * sum(line['status'] != 'refused' for line in verdicts) // len(verdicts)}%"


def library(peer: str) -> str:
    for suite in (*SUITES, GRADIENTS):
        for line in lines_of(peer, suite)[:1]:
            return re.sub(r"( on CPU|, CPU|, CPUExecutionProvider)(?=,|$)", "", str(line["backends"][0]["library"]))
    return "-"


def fuzzing(peers: list[str], findings: list[Finding]) -> list[str]:
    """How many cases of a fuzzer passed, and of what kind are the failures, made small."""
    path = RESULTS / "peers" / "fuzz.json"
    counts = json.loads(path.read_text()) if path.exists() else {}
    ran = [peer for peer in peers if peer in counts]
    if not ran:
        return ["Nothing."]
    seconds = collections.Counter(f"{counts[peer]['seconds']:g}" for peer in ran).most_common(1)[0][0]
    others = [(peer, counts[peer]["seconds"]) for peer in ran if f"{counts[peer]['seconds']:g}" != seconds]
    keys = ["cases", "passed", "failed"]
    rows = [
        [f"`{peer}`", *(f"{counts[peer][key]:g}" for key in keys),
         kinds_of(peer, "fuzz", findings).removeprefix(", ") or "none"]
        for peer in ran
    ]  # fmt: skip
    seeds = ", ".join(sorted({f"{counts[peer]['seed']:g}" for peer in ran}))
    says = "Fuzzing draws cases that the adapter takes and shrinks failures to one line for each cause. A line that\n"
    says += f"shrinks to a known finding hides what else failed in the same way. Seed {seeds}, {seconds} seconds"
    says += "".join(f"; `{peer}` {time:g}" for peer, time in others) + "."
    return [says, "", *table(["peer", *keys, "smallest failing lines"], rows)]


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    rule = "|" + "---|" * len(header)
    header_line, *lines = ("| " + " | ".join(row) + " |" for row in [header, *rows])
    return [header_line, rule, *lines]


def code(text: str) -> str:
    return text if text.startswith("none") else f"`{text}`"


def report_of(found: Finding, run: dict[str, Any] | None) -> str:
    """The link to a bug's report, what others reported, and how often it was seen, if not always."""
    if not run:
        return "-"
    others = [f"part of `{found['part_of']}`"] if "part_of" in found else []
    others += [found["upstream"]] if "upstream" in found else []
    others += [f"program {run['wrong']} of {run['runs']}"] * (run["wrong"] != run["runs"])
    if not found["line"].startswith("none") and run["line_wrong"] != run["runs"]:
        others.append(f"line {run['line_wrong']} of {run['runs']}")
    return "; ".join([f"[report](peers/posts/{found['name']}.md)", *others])


def page() -> str:
    peers = [peer for peer in tomllib.loads((HERE / "peers.toml").read_text()) if library(peer) != "-"]
    findings = tomllib.loads((HERE / "findings.toml").read_text())["finding"]
    seen: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    unexplained: list[list[str]] = []
    for peer in peers:
        for suite in (*SUITES, GRADIENTS, "fuzz"):
            for verdict, found in classified(peer, suite, findings):
                if found:
                    seen[found["name"]][peer] += 1
                else:
                    unexplained.append([peer, f"`{verdict['case']}`", str(verdict["cause"])])
    out = (HERE / "peers_head.txt").read_text().splitlines()
    out += suites_table(peers, findings)
    out += ["", "## Gradients", "", *(HERE / "gradients_head.txt").read_text().splitlines()]
    out += gradients_table(peers, findings)
    bugs = [found for found in findings if found["kind"] == "bug" and "part_of" not in found]
    signs = sum("part_of" in found for found in findings)
    out += ["", "## Fuzzing", "", *fuzzing(peers, findings), ""]
    out += [f"The tables hold {len(bugs)} bugs, {signs} of them by two signs."]
    programs = json.loads((RESULTS / "peers" / "programs.json").read_text())
    for kind in KINDS[:-1]:
        rows = []
        for found in (f for f in findings if f["kind"] == kind):
            who = ", ".join(f"`{peer}` {count}" for peer, count in seen[found["name"]].items()) or (
                f"{', '.join(f'`{each}`' for each in found['peers'])}: its program" if kind == "bug" else "none"
            )
            row = [f"{found['says']}", who, code(found["line"])]
            if kind == "bug":
                row.append(report_of(found, programs.get(found["name"])))
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
        out += ["", f"## {PLURAL[kind].capitalize()}", ""]
        if kind == "bug":
            out += ["A report has the program, its output, what was expected and why, and the place in the source.", ""]
        out += table(["what", "verdicts", "smallest line", *more.get(kind, [])], rows)
    out += ["", "## Not explained yet", ""]
    out += table(["peer", "line", "cause"], unexplained) if unexplained else ["Nothing."]
    return "\n".join(out) + "\n"


def post(found: Finding, run: dict[str, Any], whole: bool = False) -> str:
    """A report of one bug. As a `whole` it has the program in it, for the library's own tracker; else a link."""
    program = (HERE / "bugs" / f"{found['name']}.py").read_text()
    subject, _, title = program.split('"""')[1].strip().partition(": ")
    name = f"{found['name']}.py"
    lines = [f"# {title[0].upper()}{title[1:]}", ""]
    if whole:
        lines += [f"{subject}. This program needs the library alone:", ""]
        lines += ["```python", program.split('"""', 2)[2].strip(), "```", ""]
    else:
        lines += [f"{subject}. The program [{name}](../../../backends/peers/bugs/{name}) needs the library alone.", ""]
    lines += [f"It prints, in {run['wrong']} of {run['runs']} fresh processes:", "", "```text", run["says"], "```", ""]
    lines += [f"**Expected:** {found['wanted']}.", "", f"**Where:** {found['where']}."]
    if "upstream" in found:
        lines += ["", f"**Related:** {found['upstream']}."]
    return "\n".join(lines) + "\n"


def files(whole_posts: Path | None = None) -> dict[Path, str]:
    """All that is written: the page, and a report for each bug. Or whole reports, into a folder."""
    programs = json.loads((RESULTS / "peers" / "programs.json").read_text())
    findings = tomllib.loads((HERE / "findings.toml").read_text())["finding"]
    made = {} if whole_posts else {RESULTS / "peers.md": page()}
    folder = whole_posts or RESULTS / "peers" / "posts"
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
    findings = tomllib.loads((HERE / "findings.toml").read_text())["finding"]
    differ = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        before, now = told(RESULTS / "peers" / path.name), told(path)
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
    stale = [] if asked.posts else [path for path in (RESULTS / "peers" / "posts").glob("*.md") if path not in made]
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
