"""Tables of results/peers.md: support, suites, refusals, gradients and fuzzing, each a list of lines in Markdown."""

from __future__ import annotations

import collections
import json
import re
import textwrap
import tomllib
from fnmatch import fnmatch
from typing import Iterable, Iterator

import peer_results
from peer_results import GRADIENTS, HERE, RED, SUITES, Finding
from peer_results import cases_of, finding_of, kinds_of, library, lines_of, refusals, verdicts_of


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    rule = "|" + "---|" * len(header)
    header_line, *lines = ("| " + " | ".join(row) + " |" for row in [header, *rows])
    return [header_line, rule, *lines]


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
            found = finding_of(peer, line, findings)
            name = found["name"] if found else ""
            if re.search("empty_row=(nan|mean of v, or nan)", said) or name in ("empty_row_nan", "paddle_empty_row"):
                empty.add("NaN")
            if re.search("empty_row=(mean of v|nan, or mean)", said) or name in ("empty_row_mean", "paddle_empty_row"):
                empty.add("mean")
            leaks |= "hidden_nan=leaks" in said or name == "hidden_nan"
    return " or ".join(sorted(empty)) or "0", "leaks" if leaks else "stays out"


def kinds_of_answers(peer: str, findings: list[Finding]) -> Iterator[tuple[str, str]]:
    """Of each case that the peer answered: right, inconclusive, or the kind of its failure."""
    for suite in (*SUITES, GRADIENTS):
        for verdict in verdicts_of(peer, suite):
            if verdict["status"] in RED:
                found = finding_of(peer, verdict, findings)
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


def share(peer: str) -> str:
    """How much of `matrix` is not refused."""
    cases = cases_of(peer, "matrix")
    return f"{100 * (cases - sum(refusals(peer, 'matrix').values())) // cases}%" if cases else "-"


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


def fuzzing(peers: list[str], findings: list[Finding]) -> list[str]:
    """How many cases of a fuzzer passed, and of what kind are the failures, made small."""
    path = peer_results.RESULTS / "peers" / "fuzz.json"
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
