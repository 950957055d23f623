#!/usr/bin/env python3
"""Measurements of results/EXPERIMENTS.md, from the files that attest writes.

    scripts/experiments.py verdicts FILE             errors of the passing verdicts of a `check --json` file, as Markdown
    scripts/experiments.py false_alarms [FILES]      how often `attest compare` calls a program slower than itself
    scripts/experiments.py honest_speeds [RUNS]      how often a benchmark takes the speed of an honest backend
    scripts/experiments.py separation [RUNS]         speeds of `attest judge` against `attest bench` in one process

The program is that of build/, or of $ATTEST_BUILD. Those in the middle compute for hours; FILES is 40, RUNS 200, the
last one's 5.
"""
import collections
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("ATTEST_BUILD", pathlib.Path(__file__).resolve().parent.parent / "build"))


def attest(*words, allowed=(0,)):
    run = subprocess.run([BUILD / "bin" / "attest", *map(str, words)], stdout=subprocess.DEVNULL)
    if run.returncode not in allowed:
        sys.exit(f"attest {' '.join(map(str, words))} ended with exit code {run.returncode}")


def verdicts(file):
    passed = [v for v in map(json.loads, open(file)) if v["kind"] == "verdict" and v["status"] in ("pass", "weak")]

    def type_of(verdict):
        named = [word[6:] for word in verdict["case"].split() if word.startswith("dtype=")]
        return named[0] if named else "f32"

    for key, group_of in (("error_over_bound", type_of), ("error_over_sigma", lambda verdict: verdict["backend"])):
        groups = collections.defaultdict(list)
        for verdict in passed:
            if verdict.get(key) is not None:
                groups[group_of(verdict)].append(float(verdict[key]))
        print(f"| {key} | verdicts | median | 99% | largest |\n|---|---|---|---|---|")
        for name, errors in sorted(groups.items()):
            errors.sort()
            n = len(errors)
            numbers = errors[(n + 1) // 2 - 1], errors[max(int(0.99 * n + 0.5), 1) - 1], errors[-1]
            texts = ("below 1" if x < 1 and float(f"{x:.2g}") == 1 else f"{x:.2g}" for x in numbers)
            print(f"| {name} | {n} | " + " | ".join(texts) + " |")
        print()


def false_alarms(files=40):
    """Neighbours as two files, and all as two folders measured in turn, neighbours dealt to either one 20 times over."""
    work = pathlib.Path(tempfile.mkdtemp())
    names = [work / f"{n}.json" for n in range(int(files) // 2 * 2)]
    for name in names:
        attest("bench", "heads=4 seq=256 dim=64", "heads=2 seq=128 dim=128 causal", "heads=8 seq=1x2048 dim=64",
               "seq=512 dim=64", "--backend", "eigen,xtensor,opencl", "--threads", 2, "--repetitions", 15,
               "--min-time", 0.01, "--json", name)
    pairs = list(zip(names[::2], names[1::2]))

    def compare(old, new, margin, counts):
        attest("compare", old, new, "--margin", margin, "--json", work / "compared", allowed=(0, 1, 3))
        counts.update(case["verdict"] for case in json.loads((work / "compared").read_text())["cases"])

    for margin in (0.05, 0.10):
        counts = collections.Counter()
        for old, new in pairs:
            compare(old, new, margin, counts)
        print(f"two files, margin {margin}:", dict(counts))
        counts.clear()
        for trial in range(20):
            deal = random.Random(trial)
            for folder in ("old", "new"):
                shutil.rmtree(work / folder, ignore_errors=True)
                (work / folder).mkdir()
            for pair in pairs:
                for name, folder in zip(pair, deal.sample(("old", "new"), 2)):
                    shutil.copy2(name, work / folder)
            compare(work / "old", work / "new", margin, counts)
        print(f"two folders of {len(pairs)}, margin {margin}:", dict(counts))
    shutil.rmtree(work)


def honest_speeds(runs=200):
    """The last half of the runs beside a process for each core that only spins. Ends with 1 when a speed was lost."""
    lost, speeds, spinning = collections.Counter(), 0, []
    with tempfile.TemporaryDirectory() as work:
        try:
            for n in range(int(runs)):
                if n == int(runs) // 2:
                    spinning = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
                attest("bench", "heads=2 seq=128 dim=64", "seq=64 dim=16 causal", "heads=4 seq=1x1024 dim=64",
                       "--threads", 2, "--repetitions", 5, "--min-time", 0.02, "--seed", n + 1,
                       "--json", f"{work}/b.json", allowed=(0, 1))
                file = json.load(open(f"{work}/b.json"))
                lost.update(f"{one['backend']}: {one['cause']}" for one in file["context"].get("no_speed", []))
                speeds += len({(one["name"].split("/")[0], one["label"]) for one in file["benchmarks"]})
        finally:
            for process in spinning:
                process.kill()
    print(f"{runs} runs: {lost.total()} of {lost.total() + speeds} speeds lost", dict(lost))
    return 1 if lost or not speeds else 0


HONEST = pathlib.Path(__file__).resolve().parent.parent / "tests" / "exploits" / "honest"
TASKS = ("prefill", "decode", "grouped", "window", "paged", "ragged", "latent", "quantised", "merge", "backward")


def separation(runs=5):
    """Of each task an honest submission, one thread: the lines that the judge timed are timed in one process, too, there
    with the upload and the download, which the judge's requests hold.

    A row is the line for which the medians of the runs differ most."""
    with tempfile.TemporaryDirectory() as work:
        for name in ("attention", "merge", "backward"):
            os.makedirs(f"{work}/{name}")
            for file in (HONEST / f"{name}.c", HONEST / "rows.h"):
                shutil.copy(file, f"{work}/{name}")
            flags = ["-O3", "-march=native", "-fPIC", "-shared", "-I", HONEST.parents[2] / "backends" / "plugin"]
            subprocess.run(["cc", *map(str, flags), HONEST / f"{name}.c", "-o", f"{work}/{name}.so", "-lm"], check=True)
        print("| task | line | judge, us | bench, us | judge / bench | its spread |\n|---|---|---|---|---|---|")
        for task in TASKS:
            name = task if task in ("merge", "backward") else "attention"
            ratios, times = collections.defaultdict(list), collections.defaultdict(list)
            for _ in range(int(runs)):
                attest("judge", f"{work}/{name}", "--task", task, "--budget", "10s", "--threads", 1, "--secret-seed", 7,
                       "--json", f"{work}/judged")
                judged = {one["case"]: one["seconds"] for one in json.load(open(f"{work}/judged"))["speeds"]}
                attest("bench", *judged, "--no-isolate", "--plugin", f"{work}/{name}.so", "--threads", 1, "--json",
                       f"{work}/b.json")
                samples = collections.defaultdict(list)
                for one in json.load(open(f"{work}/b.json"))["benchmarks"]:
                    if not one["name"].startswith("eigen"):
                        samples[one["label"]].append(one["total_seconds"])
                for line, seconds in judged.items():
                    in_process = statistics.median(samples[line])
                    ratios[line].append(seconds / in_process)
                    times[line].append((seconds * 1e6, in_process * 1e6))
            line = max(ratios, key=lambda one: abs(statistics.median(ratios[one]) - 1))
            judge, bench = (statistics.median(one[n] for one in times[line]) for n in range(2))
            print(f"| {task} | `{line}` | {judge:.0f} | {bench:.0f} | {statistics.median(ratios[line]):.3f} | "
                  f"{min(ratios[line]):.3f} to {max(ratios[line]):.3f} |", flush=True)


EXPERIMENTS = {f.__name__: f for f in (verdicts, false_alarms, honest_speeds, separation)}
if len(sys.argv) not in (2, 3) or sys.argv[1] not in EXPERIMENTS or (sys.argv[1] == "verdicts") > (len(sys.argv) == 3):
    print(__doc__, file=sys.stderr)
    sys.exit(2)
sys.exit(EXPERIMENTS[sys.argv[1]](*sys.argv[2:]))
