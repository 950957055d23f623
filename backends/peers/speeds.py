#!/usr/bin/env python3
"""Times attest's backends and those of other libraries in one run: to results/peers/speeds/SUITE.THREADS.json.gz.

    python3 backends/peers/speeds.py [--suites workloads,shapes,models] [--threads 2,1] [--repetitions N] [--min-time SECONDS]

All of them are in one process and take turns, on the same inputs; each sample's results are checked. It runs
`attest bench` in the environment `speeds` (install.sh makes it). Then it writes results/speeds.md, unless the files go
elsewhere (--results). Let nothing else run meanwhile.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import speeds_report

HERE = Path(__file__).resolve().parent
CASES = HERE.parent.parent / "tests" / "cases"
NATIVES = ("simd", "eigen", "xtensor", "opencl")
PEERS = {
    "torch_sdpa": "attest_peers.timed_torch:Backend",
    "onnxruntime": "attest_peers.timed_onnxruntime:Attention",
    "onnxruntime_mha": "attest_peers.timed_onnxruntime:MultiHeadAttention",
    "onnxruntime_gqa": "attest_peers.timed_onnxruntime:GroupQueryAttention",
    "openvino": "attest_peers.timed_openvino:Backend",
}
POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Memory that a library frees stays in the process: else those that allocate their output wait for fresh pages.
ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 36)}


def environment(threads: int) -> dict[str, str]:
    """Pools that take their size from the environment; the adapters tell each library besides."""
    pools = {name: str(threads) for name in POOLS}
    return {**os.environ, **ALLOCATOR, **pools, "PYTHONPATH": str(HERE)}


def lines_of(suite: str) -> list[tuple[str, float, str]]:
    """Of each line of a suite's file: the line, its weight (1 where the comment doesn't begin with a number), and what
    it stands for."""
    found = []
    for text in (CASES / f"{suite}.cases").read_text().splitlines():
        line, _, comment = (part.strip() for part in text.partition("#"))
        if line:
            weight, what = re.fullmatch(r"(?:(\d+) )?(.*)", comment).groups()  # type: ignore[union-attr]
            found.append((line, float(weight or 1), what))
    return found


def as_attest_says(interpreter: Path, lines: list[str]) -> list[str]:
    """The lines in attest's own order of words, by which samples are found."""
    listed = subprocess.run(
        [str(interpreter), "-m", "attest", "check", *lines, "--list"],
        env=environment(1), cwd=HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    canonical = listed.stdout.splitlines()
    if listed.returncode or len(canonical) != len(lines):
        sys.exit(f"speeds.py: the lines could not be listed: {listed.stderr.strip()}")
    return canonical


def bench(interpreter: Path, words: list[str], threads: int) -> None:
    """`attest bench`, whose file is named among the words; it says itself how far it is."""
    command = [str(interpreter), "-m", "attest", "bench", *words, "--progress"]
    ended = subprocess.run(command, env=environment(threads), cwd=HERE, stdout=subprocess.DEVNULL, check=False)
    # 1: a result was wrong, which the file says
    if ended.returncode not in (0, 1):
        sys.exit(f"speeds.py: attest bench ended with exit code {ended.returncode}")


def measure(interpreter: Path, suite: str, threads: int, repetitions: int, asked: argparse.Namespace) -> None:
    natives, peers = asked.natives.split(","), asked.peers.split(",")
    lines = [line for line in lines_of(suite) if re.search(asked.filter, line[0])]
    if not lines:
        sys.exit(f"speeds.py: --filter leaves no line of {suite}")
    words = ["--backend", ",".join([*natives, *peers]), "--require", ",".join([*natives, *peers])]
    for peer in peers:
        words += ["--python", PEERS[peer]]
    # In one process, as attest's own backends are: of all of them run() is timed.
    words += ["--no-isolate", "--threads", str(threads), "--repetitions", str(repetitions)]
    words += ["--min-time", str(asked.min_time)]
    cases = as_attest_says(interpreter, [line for line, _, _ in lines])
    print(f"{suite}, {threads} thread(s), {len(cases)} cases", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "samples.json"
        bench(interpreter, [*cases, *words, "--json", str(samples)], threads)
        measured: dict[str, Any] = json.loads(samples.read_text())
    context = measured["context"]
    for place in ("host_name", "executable"):
        context.pop(place, None)
    context["command"] = " ".join(["attest", "bench", f"(lines of {suite})", *words])
    measured["suite"] = {
        "name": suite,
        "natives": natives,
        "peers": peers,
        "cases": [{"case": case, "weight": weight, "what": what} for case, (_, weight, what) in zip(cases, lines)],
    }
    measured["no_speed"] = context.pop("no_speed")
    asked.results.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(asked.results / f"{suite}.{threads}.json.gz", "wb", mtime=0) as packed:
        packed.write(json.dumps(measured, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")


def draw(interpreter: Path, suite: str, threads: int) -> None:
    """The picture of the page: each case's times, as multiples of the fastest."""
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / f"{suite}.{threads}.json"
        samples.write_bytes(gzip.decompress((speeds_report.DATA / f"{samples.name}.gz").read_bytes()))
        words = ["report", str(samples), "--picture", "peers", "--svg", str(speeds_report.DATA / f"{suite}.svg")]
        subprocess.run([str(interpreter), "-m", "attest", *words], env=environment(threads), check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", default="workloads,shapes,models")
    parser.add_argument(
        "--threads", default="2,1", help="numbers of threads, one run each; the first is for the tables"
    )
    parser.add_argument("--natives", default=",".join(NATIVES))
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--filter", default="", help="a regular expression that is searched in lines")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--min-time", type=float, default=0.05)
    parser.add_argument("--environments", type=Path, default=HERE / "build")
    parser.add_argument("--results", type=Path, default=speeds_report.DATA)
    asked = parser.parse_args()
    interpreter = asked.environments.absolute() / "speeds" / "bin" / "python"
    if not interpreter.exists():
        sys.exit(f"speeds.py: no environment {asked.environments}/speeds; backends/peers/install.sh speeds makes it")
    unknown = [peer for peer in asked.peers.split(",") if peer not in PEERS]
    if unknown:
        sys.exit(f"speeds.py: there is no peer {unknown[0]}; there are {', '.join(PEERS)}")
    for place, threads in enumerate(map(int, asked.threads.split(","))):
        # Of the others medians are shown alone.
        repetitions = asked.repetitions if place == 0 else min(3, asked.repetitions)
        for suite in asked.suites.split(","):
            measure(interpreter, suite, threads, repetitions, asked)
    if asked.results.resolve() != speeds_report.DATA:
        return
    speeds_report.PAGE.write_text(speeds_report.page(speeds_report.DATA))
    for suite in asked.suites.split(","):
        draw(interpreter, suite, max(map(int, asked.threads.split(","))))


if __name__ == "__main__":
    main()
