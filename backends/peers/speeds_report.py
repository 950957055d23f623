#!/usr/bin/env python3
"""Writes results/speeds.md from the files that speeds.py leaves in results/peers/speeds/.

    python3 backends/peers/speeds_report.py [--check] [--data FOLDER] [--rerun FOLDER]

With --check nothing is written, and a page that differs from what stands there is an error. With --data the page of
another folder's files is printed. With --rerun the refusals in a folder that
`speeds.py --results FOLDER` wrote are held against those that are written down.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Iterable, Optional

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent.parent / "results"
DATA = RESULTS / "peers" / "speeds"
PAGE = RESULTS / "speeds.md"
SUITES = ("workloads", "shapes", "models")
#: Operators of one library, of which the fastest counts in each case: what stands behind its time.
OPERATORS = {"onnxruntime": "", "onnxruntime_mha": "mha", "onnxruntime_gqa": "gqa"}
COVERED = 0.95

Samples = list[float]


@dataclass
class Ratio:
    """How many times as long the one takes, and an interval."""

    middle: float
    low: float
    high: float
    covered: float


@dataclass
class Measured:
    """One file: a suite, timed with a number of threads."""

    threads: int
    context: dict[str, Any]
    natives: list[str]
    peers: list[str]
    cases: list[dict[str, Any]]
    samples: dict[tuple[str, str], Samples] = field(default_factory=dict)  # ms, by backend and case
    disturbed: set[tuple[str, str]] = field(default_factory=set)  # of which fewer than half were undisturbed
    reasons: dict[tuple[str, str], str] = field(default_factory=dict)
    causes: dict[tuple[str, str], str] = field(default_factory=dict)  # the same, as attest's NoSpeed names them
    at_work: dict[str, float] = field(default_factory=dict)  # the most threads in a case
    ulps: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)  # median and largest error of o

    def ms(self, backend: str, case: str) -> Optional[float]:
        found = self.samples.get((backend, case))
        return median(found) if found else None

    def libraries(self) -> list[str]:
        """The peers, operators of one library as one."""
        return list(dict.fromkeys("onnxruntime" if peer in OPERATORS else peer for peer in self.peers))

    def backends_of(self, column: str) -> list[str]:
        return [peer for peer in self.peers if peer in OPERATORS] if column == "onnxruntime" else [column]

    def fastest(self, backends: Iterable[str], case: str) -> Optional[str]:
        timed = [(time, backend) for backend in backends if (time := self.ms(backend, case)) is not None]
        return min(timed)[1] if timed else None

    def best_peer(self, case: str) -> Optional[str]:
        return self.fastest(self.peers, case)


def cause_of(row: dict[str, str]) -> str:
    """Files of before have no causes: of these the first words of the reason tell what is asked for here."""
    words = {"refused": "refused", "works after run": "threads_after_run", "more threads": "more_threads"}
    found = (cause for begins, cause in words.items() if row["reason"].startswith(begins))
    return row["cause"] if "cause" in row else next(found, "other")


def measured(path: Path) -> Measured:
    """The file's samples, those that something disturbed left out as `attest compare` does."""
    with gzip.open(path, "rt") as file:
        data = json.load(file)
    context, suite = data["context"], data["suite"]
    made = Measured(int(context["threads"]), context, suite["natives"], suite["peers"], suite["cases"])
    every: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for sample in data["benchmarks"]:
        every[sample["name"].split("/")[0], sample["label"]].append(sample)
    for key, samples in every.items():
        kept = [sample for sample in samples if not sample["disturbed"]]
        if 2 * len(kept) < int(context["repetitions"]):
            made.disturbed.add(key)
            kept = samples
        made.samples[key] = [float(sample["real_time"]) for sample in kept]
        if "median_ulps" in samples[0]:
            made.ulps[key] = samples[0]["median_ulps"], samples[0]["largest_ulps"]
        worked = max(float(sample.get("threads_used", 0)) for sample in samples)
        made.at_work[key[0]] = max(made.at_work.get(key[0], 0), worked)
    made.reasons = {(row["backend"], row["case"]): row["reason"] for row in data["no_speed"]}
    made.causes = {(row["backend"], row["case"]): cause_of(row) for row in data["no_speed"]}
    return made


def ratio_of(over: Samples, under: Samples) -> Ratio:
    """over / under by Hodges and Lehmann, with the interval of Mann and Whitney: harness/speed/samples/speed_comparison.cpp."""
    m, n = len(under), len(over)
    counts = [1.0] + [0.0] * (m * n)  # arrangements by the value of the statistic
    for k in range(1, m + 1):
        for at in range(m * n, n + k - 1, -1):
            counts[at] -= counts[at - n - k]
        for at in range(k, m * n + 1):
            counts[at] += counts[at - k]
    total = sum(counts)
    differences = sorted(math.log(b) - math.log(a) for a in under for b in over)
    tail, cut = 0.0, 0
    while 2 * (cut + 1) < len(differences) and 2 * (tail + counts[cut]) / total <= 1 - COVERED:
        tail += counts[cut]
        cut += 1
    first = max(cut - 1, 0)
    outside = 2 * (tail if cut else counts[0]) / total
    low, high = differences[first], differences[-1 - first]
    return Ratio(math.exp(median(differences)), math.exp(low), math.exp(high), max(0.0, 1 - outside))


def against_best(data: Measured, native: str, case: str) -> Optional[Ratio]:
    """How many times as long as the native backend the best peer takes."""
    peer = data.best_peer(case)
    if peer is None or data.ms(native, case) is None:
        return None
    return ratio_of(data.samples[peer, case], data.samples[native, case])


def scaling(one: Optional[Measured], data: Measured, backend: str, case: str) -> Optional[float]:
    """The time with one thread over that with more."""
    if one is None:
        return None
    before, now = one.ms(backend, case), data.ms(backend, case)
    return before / now if before is not None and now is not None else None


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    rule = "|" + "---|" * len(header)
    header_line, *lines = ("| " + " | ".join(row) + " |" for row in [header, *rows])
    return [header_line, rule, *lines]


def milliseconds(time: float) -> str:
    return f"{time:.3f}" if time < 1 else f"{time:.2f}" if time < 10 else f"{time:.1f}" if time < 100 else f"{time:.0f}"


def cell(data: Measured, column: str, case: str) -> str:
    backends = data.backends_of(column)
    backend = data.fastest(backends, case)
    if backend is None:
        causes = {data.causes.get((each, case), "not timed") for each in backends}
        return "refused" if causes == {"refused"} else "no speed"
    time = data.ms(backend, case)
    assert time is not None
    text = milliseconds(time) + "?" * ((backend, case) in data.disturbed)
    return f"{text} {OPERATORS.get(backend, '')}".strip()


def interval(ratio: Optional[Ratio]) -> str:
    if ratio is None:
        return "-"
    beside = f"{ratio.low:.2f}-{ratio.high:.2f}" + (
        "" if ratio.covered >= COVERED else f", covers {ratio.covered:.0%}"
    )
    return f"{ratio.middle:.2f} ({beside})"


def case_rows(data: Measured, one: Optional[Measured]) -> list[str]:
    native = data.natives[0]
    weighted = any(case["weight"] != 1 for case in data.cases)
    header = ["case", *(["weight"] * weighted), *data.natives, *data.libraries(), f"best peer / {native}"]
    if one is not None:
        header.append(f"scaling: {native}, best peer")
    rows = []
    for case in data.cases:
        name = case["case"]
        row = [f"`{name}`", *([f"{case['weight']:g}"] * weighted)]
        row += [cell(data, column, name) for column in [*data.natives, *data.libraries()]]
        row.append(interval(against_best(data, native, name)))
        if one is not None:
            scaled = [each and scaling(one, data, each, name) for each in (native, data.best_peer(name))]
            row.append(", ".join("-" if not value else f"{value:.2f}" for value in scaled))
        rows.append(row)
    return table(header, rows)


def mean(pairs: list[tuple[float, float]]) -> float:
    """Geometric mean of values with weights."""
    return math.exp(sum(weight * math.log(value) for value, weight in pairs) / sum(weight for _, weight in pairs))


def summary_rows(data: Measured) -> list[str]:
    rows = []
    for native in data.natives:
        found = [
            (ratio, case["weight"], case["case"])
            for case in data.cases
            if (ratio := against_best(data, native, case["case"])) is not None
        ]
        if not found:
            rows.append([native, "0", *["-"] * 6])
            continue
        middles, lows = ([(getattr(r, end), weight) for r, weight, _ in found] for end in ("middle", "low"))
        worst = min(found, key=lambda one: one[0].middle)
        behind = sum(ratio.middle < 1 for ratio, _, _ in found)
        surely = sum(ratio.high < 1 for ratio, _, _ in found)
        rows.append(
            [f"`{native}`", f"{len(found)}", f"{mean(middles):.2f}", f"{mean(lows):.2f}",
             f"{median(ratio.middle for ratio, _, _ in found):.2f}", f"{worst[0].middle:.2f}: `{worst[2]}`",
             f"{behind}", f"{surely}"]
        )  # fmt: skip
    header = ["backend", "cases", "mean", "of lower ends", "median", "worst", "behind", "surely"]
    return table(header, rows)


def same(values: Iterable[Any]) -> Any:
    """What all of them are, if they are all the same."""
    found = list(values)
    return found[0] if len(found) > 1 and all(value == found[0] for value in found) else None


def backend_rows(one: Optional[Measured], data: Measured) -> list[str]:
    """Of every backend: the middle of its cases' median errors, the largest of all, and how it scales."""
    found = {
        backend: [(*data.ulps[key], key[1]) for case in data.cases if (key := (backend, case["case"])) in data.ulps]
        for backend in [*data.natives, *data.peers]
    }
    worst = {backend: max(errors, key=lambda each: each[1]) for backend, errors in found.items() if errors}
    place = same(case for _, _, case in worst.values())
    rows = []
    for backend, errors in found.items():
        row = [f"`{backend}`", f"{len(errors)}", "-", "-"]
        if backend in worst:
            _, largest, case = worst[backend]
            row[2:] = f"{median(each[0] for each in errors):.2g}", f"{largest:.3g}" + ("" if place else f": `{case}`")
        rows.append([*row, *scaling_cells(one, data, backend)])
    header = ["backend", "cases", "median error", "largest"]
    header += ["scaling: least", "median", "most"] if one is not None else []
    out = table(header, rows)
    if place:
        out += ["", f"The largest error of each is in `{place}`."]
    return out + worked(one, data)


def scaling_cells(one: Optional[Measured], data: Measured, backend: str) -> list[str]:
    if one is None:
        return []
    found = [value for case in data.cases if (value := scaling(one, data, backend, case["case"])) is not None]
    return [f"{min(found):.2f}", f"{median(found):.2f}", f"{max(found):.2f}"] if found else ["-"] * 3


def worked(one: Optional[Measured], data: Measured) -> list[str]:
    """The backends of which not as many threads worked as were asked for."""
    other = [
        f"`{backend}` {most:g} of {file.threads}"
        for file in (one, data)
        for backend in ([*file.natives, *file.peers] if file is not None else [])
        if (most := file.at_work.get(backend)) and round(most, 1) != file.threads
    ]
    return ["", f"Threads at work: {', '.join(other)}."] if other else []


def reason_rows(data: Measured) -> list[str]:
    counted = Counter((backend, reason) for (backend, _), reason in data.reasons.items())
    together: dict[tuple[str, int], list[str]] = defaultdict(list)
    for backend in [*data.natives, *data.peers]:
        for reason, count in sorted((why, count) for (name, why), count in counted.items() if name == backend):
            together[reason, count].append(f"`{backend}`")
    rows = [
        [", ".join(backends), f"{count}", reason.replace("|", "\\|")]
        for (reason, count), backends in together.items()
    ]
    return table(["backend", "cases of each", "no speed because"], rows) if rows else ["None."]


def machine_rows(files: list[tuple[str, Measured]]) -> list[str]:
    """What the files have in common stands above the table."""
    contexts = [data.context for _, data in files]
    machine = same(f"{c['cpu']}; {c['build']}" for c in contexts)
    out = [f"All: {machine}.", ""] if machine else []
    rows = []
    for name, data in files:
        c = data.context
        row = [f"`{name}`", *([] if machine else [f"{c['cpu']}; {c['build']}"])]
        row += [c["roof_fma_gflops_f32"], c["roof_read_gbps"], c["date"][:10]]
        rows.append([*row, f"`{c['commit'][:7]}`", c["repetitions"]])
    header = ["file", *([] if machine else ["processor, build"]), "f32 FMA GFLOP/s", "reading GB/s"]
    header += ["measured", "commit", "REPETITIONS"]
    out += [*table(header, rows), "", "A file's name is SUITE.THREADS. The command:", "", "```text"]
    return [*out, *dict.fromkeys(command_of(c) for c in contexts), "```"]


def command_of(context: dict[str, Any]) -> str:
    """The command, with names for what the table of files says."""
    command = re.sub(r"\(lines of \w+\)", "(lines of SUITE)", str(context["command"]))
    return re.sub(r"--(threads|repetitions) \d+", lambda option: f"--{option[1]} {option[1].upper()}", command)


def library_rows(data: Measured) -> list[str]:
    """What is no processor says so in its name."""
    rows = []
    for name in [*data.natives, *data.peers]:
        told = str(data.context.get(f"backend_{name}", "-"))
        rows.append([f"`{name}`", re.sub(r"(, CPU)? on CPU(, \d+ thread\(s\))?$", "", told)])
    return table(["backend", "what, on the CPU"], rows)


def rerun(folder: Path) -> None:
    """Fails where a result was wrong, and where what is refused differs from before. On a busy machine pools don't come
    to rest, so that there is no speed: that is said."""
    differ = []
    for path in sorted(folder.glob("*.json.gz")):
        now = measured(path)
        before = measured(DATA / path.name) if (DATA / path.name).exists() else None
        for case in now.cases:
            for backend in [*now.natives, *now.peers]:
                key = backend, case["case"]
                reason, cause = now.reasons.get(key, "a speed"), now.causes.get(key)
                told = f"{path.name}: {backend}: {case['case']}: {reason}"
                written = before.reasons.get(key, "a speed") if before else reason
                was_refused = before is not None and before.causes.get(key) == "refused"
                if (cause == "refused" or was_refused) and reason != written:
                    differ.append(f"{told}; before: {written}")
                elif cause in ("threads_after_run", "more_threads"):
                    print(told)
                elif cause not in (None, "refused"):
                    differ.append(told)
        print(f"{path.name}: {len(now.samples)} speeds, {len(now.reasons)} refusals")
        if not now.samples:
            differ.append(f"{path.name}: no speed")
    if differ:
        sys.exit("\n".join(differ))


def page(folder: Path) -> str:
    found: dict[str, list[Measured]] = {}
    names = []
    for suite in SUITES:
        files = [(path, measured(path)) for path in folder.glob(f"{suite}.*.json.gz")]
        found[suite] = sorted((data for _, data in files), key=lambda data: -data.threads)
        names += sorted(((path.name, data) for path, data in files), key=lambda one: -one[1].threads)
    out = (HERE / "speeds_head.txt").read_text().splitlines()
    if not names:
        return "\n".join([*out, "Nothing has been measured yet."]) + "\n"
    for suite in (suite for suite in SUITES if found[suite]):
        data = found[suite][0]
        one = next((other for other in found[suite] if other.threads == 1 < data.threads), None)
        out += [f"## {suite.capitalize()}", ""]
        out += [f"{data.threads} thread{'s' * (data.threads != 1)}. Time of the best peer over ours:", ""]
        out += [*summary_rows(data), ""]
        if folder == DATA:
            picture = f"{suite}.{data.threads}", f"peers/speeds/{suite}.svg"
            out += [f"<!-- tests/docs/speeds_picture.sh {picture[0]} --svg {picture[1]} -->"]
            out += [f"![Times of each backend on {suite}, as multiples of the fastest]({picture[1]})", ""]
        out += ["Milliseconds of one run:", "", *case_rows(data, one), ""]
        if data.ulps or one is not None:
            out += ["Errors of the results that were timed, and scaling:", "", *backend_rows(one, data), ""]
        out += ["Without a speed:", "", *reason_rows(data), ""]
    out += ["## What was measured", "", *library_rows(next(files[0] for files in found.values() if files)), ""]
    out += machine_rows(names)
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--rerun", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    if asked.rerun:
        return rerun(asked.rerun)
    text = page(asked.data or DATA)
    if asked.data:
        print(text, end="")
    elif not asked.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.name} is not what the files say; python3 backends/peers/speeds_report.py writes it")


if __name__ == "__main__":
    main()
