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
import functools
import gzip
import json
import math
import re
import sys
import textwrap
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Iterable, Iterator

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent.parent / "results"
SUITES = ("smoke", "bugs", "onnx", "matrix", "linear", "codes")
GRADIENTS = "backward"  #: the suite that has a table of its own
KINDS = ("bug", "convention", "arithmetic", "limit", "unexplained")
PLURAL = {"bug": "bugs", "convention": "conventions", "arithmetic": "loose arithmetic", "limit": "limits"}
RED = ("fail", "flaky", "suspect", "crashed", "timeout")

Finding = dict[str, Any]
Verdict = dict[str, Any]


def lines_of(peer: str, suite: str) -> list[dict[str, Any]]:
    """The result file's lines; none where it wasn't run."""
    path = RESULTS / "peers" / f"{peer}.{suite}.jsonl.gz"
    return read(path, path.stat().st_mtime_ns) if path.exists() else []


@functools.lru_cache(maxsize=None)
def read(path: Path, _time: int) -> list[dict[str, Any]]:
    """A file as it was at a time."""
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


def by_statement(verdict: Verdict, findings: list[Finding]) -> Finding | None:
    """Of a verdict that is right by what the peer states: the convention that says so."""
    if verdict["status"] != "convention":
        return None
    said = str(verdict.get("reason") or "")
    return next((found for found in findings if "stated" in found and re.search(found["stated"], said)), None)


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


def refusals(peer: str, suite: str) -> collections.Counter[str]:
    """How many cases were refused, by the reason. run.py writes large suites with one line for each reason."""
    counts: collections.Counter[str] = collections.Counter()
    for line in lines_of(peer, suite):
        if line["kind"] == "refused":
            counts[str(line["reason"])] += line["count"]
        elif line.get("status") == "refused":
            counts[str(line.get("reason"))] += 1
    return counts


def cases_of(peer: str, suite: str) -> int:
    answered = sum(line["status"] != "refused" for line in verdicts_of(peer, suite))
    return answered + sum(refusals(peer, suite).values())


def cell(peer: str, suite: str, findings: list[Finding]) -> str:
    """What passed or proves little, what failed by kind, what is inconclusive. The rest of a suite is refused."""
    verdicts = verdicts_of(peer, suite)
    if not cases_of(peer, suite):
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
    cases = {suite: {cases_of(peer, suite) for peer in peers} - {0} for suite in SUITES}
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
        if cases := cases_of(peer, GRADIENTS):
            refused = sum(refusals(peer, GRADIENTS).values())
            rows.append([f"`{peer}`", cell(peer, GRADIENTS, findings), str(refused), str(cases)])
    return table(["peer", "verdicts", "refused", "lines"], rows) if rows else ["Nothing."]


def share(peer: str) -> str:
    """How much of `matrix` is not refused."""
    cases = cases_of(peer, "matrix")
    return f"{100 * (cases - sum(refusals(peer, 'matrix').values())) // cases}%" if cases else "-"


def ran_on(peer: str, suite: str) -> str:
    """Processor, instruction sets and device of a run, as its file says; empty where there is none."""
    for line in lines_of(peer, suite)[:1]:
        machine = line.get("machine", {})
        sets = ", ".join(machine["instructions"]) if "instructions" in machine else "instruction sets not recorded"
        device = line["backends"][0].get("device") or "CPU"
        processor = machine.get("cpu", "processor not recorded")
        return f"{processor} ({sets}), {device}, {machine.get('system', '')}".rstrip(", ")
    return ""


def environment(peers: list[str], suites: Iterable[str]) -> list[str]:
    """The environment of a table's results: a line for each that there is."""
    where: dict[str, list[str]] = collections.defaultdict(list)
    for suite in suites:
        for peer in peers:
            if (place := ran_on(peer, suite)) and peer not in where[re.sub(r"-fc-\S+", "", place)]:
                where[re.sub(r"-fc-\S+", "", place)].append(peer)
    most = max(where, key=lambda place: len(where[place]), default="")
    said = [f"Environment: {most}."] if most else []
    for place in sorted(set(where) - {most}):
        said.append(f"{', '.join(f'`{peer}`' for peer in where[place])}: {place}.")
    return [*textwrap.wrap(" ".join(said), 118, break_on_hyphens=False), ""] if said else []


def options_of() -> list[dict[str, str]]:
    return tomllib.loads((HERE / "support.toml").read_text())["option"]


def bugs_by_option(peer: str, findings: list[Finding]) -> dict[str, list[Finding]]:
    """Findings that a verdict on the peer, or a program, shows, by the options that they name."""
    by_option: dict[str, list[Finding]] = collections.defaultdict(list)
    for found in findings:
        if found["kind"] == "bug" and any(fnmatch(peer, pattern) for pattern in found["peers"]):
            for option in found.get("options", []):
                by_option[option].append(found)
    return by_option


def answers(peer: str, findings: list[Finding]) -> tuple[str, str]:
    """What a query that sees nothing gives, and what a NaN in a hidden key does, by all verdicts on the peer."""
    empty, leaks = set(), False
    for suite in (*SUITES, GRADIENTS):
        for line in verdicts_of(peer, suite):
            said = str(line.get("reason") or "") if line["status"] == "convention" else ""
            found = next((each for each in findings if fits(each, peer, line)), None) if line["status"] in RED else None
            name = found["name"] if found else ""
            if re.search("empty_row=(nan|mean of v, or nan)", said) or name in ("empty_row_nan", "paddle_empty_row"):
                empty.add("NaN")
            if re.search("empty_row=(mean of v|nan, or mean)", said) or name in ("empty_row_mean", "paddle_empty_row"):
                empty.add("mean")
            leaks |= "hidden_nan=leaks" in said or name == "hidden_nan"
    return " or ".join(sorted(empty)) or "0", "leaks" if leaks else "stays out"


def support(peers: list[str], findings: list[Finding]) -> list[str]:
    """A row for each option and a column for each peer: right, wrong with a link to the report, or refused."""
    wrong = {peer: bugs_by_option(peer, findings) for peer in peers}
    answered = {peer: list(kinds_of_answers(peer, findings)) for peer in peers}

    def reports(peer: str, option: str) -> list[str]:
        names = dict.fromkeys(found.get("part_of", found["name"]) for found in wrong[peer][option])
        return [f"[wrong](peers/posts/{name}.md)" for name in names]

    rows = []
    for option in options_of():
        row = [option["name"] + (f" ({option['says']})" if "says" in option else "")]
        for peer in peers:
            kinds = collections.Counter(kind for case, kind in answered[peer] if re.search(option["line"], case))
            unasked = not kinds and not cases_of(peer, "matrix")
            row.append(", ".join(reports(peer, option["name"])) or ("-" if unasked else support_cell(kinds)))
        rows.append(row)
    said = {peer: answers(peer, findings) for peer in peers}
    for place, title in enumerate(("a query that sees nothing", "NaN in hidden keys and values")):
        rows.append([title, *(", ".join([said[peer][place], *reports(peer, title)]) for peer in peers)])
    return table(["option", *(f"`{peer}`" for peer in peers)], rows)


def kinds_of_answers(peer: str, findings: list[Finding]) -> Iterator[tuple[str, str]]:
    """Of each case that the peer answered: right, inconclusive, or the kind of its failure."""
    for suite in (*SUITES, GRADIENTS):
        for verdict in verdicts_of(peer, suite):
            if verdict["status"] in RED:
                found = next((each for each in findings if fits(each, peer, verdict)), None)
                kind = found["kind"] if found else "unexplained"
                yield verdict["case"], "right" if kind == "convention" else kind
            elif verdict["status"] != "refused":
                yield verdict["case"], "inconclusive" if verdict["status"] == "inconclusive" else "right"


def support_cell(kinds: collections.Counter[str]) -> str:
    """What most answers are; a bug of another option doesn't make this one wrong."""
    counts = {kind: n for kind, n in kinds.items() if kind != "bug"}
    most = max(counts, key=lambda kind: counts[kind], default="no" if not kinds else "right")
    others = {"limit": "[limit](#limits)", "arithmetic": "[loose](#loose-arithmetic)", "right": "yes", "no": "no"}
    return others.get(most, "?")


def refused_table(peers: list[str]) -> list[str]:
    """The reasons why cases of `matrix` were refused, by peer: those that an adapter gives with a place in the source."""
    rows = []
    for peer in peers:
        counts = refusals(peer, "matrix")
        total = cases_of(peer, "matrix")
        if not total:
            continue
        classes = [(reason, count) for reason, count in counts.most_common() if "attention has no parameter" not in reason]
        without = sum(counts.values()) - sum(count for _, count in classes)
        cells = [f"{reason.replace('|', '/')} ({count})" for reason, count in classes if count * 100 >= total]
        cells.append(f"the interface has no such option ({without})")
        rows.append([f"`{peer}`", f"{100 * sum(counts.values()) // total}%", "; ".join(cells)])
    return table(["peer", "refused", "reasons of 1% of the cases and more"], rows)


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
    programs = json.loads((RESULTS / "peers" / "programs.json").read_text())
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
    out += ["", "## Not explained yet", ""]
    out += table(["peer", "line", "cause"], unexplained) if unexplained else ["Nothing."]
    return "\n".join(out) + "\n"


#: What a finding says that nobody reported.
NOT_REPORTED = "A search of the tracker found no report of it."


def post(found: Finding, run: dict[str, Any], whole: bool = False) -> str:
    """A report of one bug. As a `whole` it has the program in it, for the library's own tracker; else a link."""
    program = (HERE / "bugs" / f"{found['name']}.py").read_text()
    subject, _, title = re.sub(r"\s+", " ", program.split('"""')[1]).strip().partition(": ")
    name = f"{found['name']}.py"
    lines = [f"# {title[0].upper()}{title[1:]}" if title[0] != "`" else f"# {title}", ""]
    lines += [f"{subject}: {', '.join(run['versions'])}." if "versions" in run else f"{subject}."]
    if "machine" in run:
        machine = re.sub(r"-fc-\S+", "", run["machine"])
        lines += ["", f"System and processor: {machine}."]
    lines += [""]
    if whole:
        lines += ["This program needs the library alone:", ""]
        lines += ["```python", program.split('"""', 2)[2].strip(), "```", ""]
    else:
        lines += [f"The program [{name}](../../../backends/peers/bugs/{name}) needs the library alone.", ""]
    lines += [f"Its output, in {run['wrong']} of {run['runs']} fresh processes:", "", "```text", run["says"], "```", ""]
    lines += [f"On AVX2: {found['avx2'][0].lower()}{found['avx2'][1:]}", ""] if "avx2" in found else []
    lines += [f"**Expected:** {found['wanted']}", "", f"**Cause:** {found['where']}", ""]
    lines += [f"**Who is hit:** {found['who']}", "", f"**Related:** {found['upstream']}"]
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
