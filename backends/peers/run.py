#!/usr/bin/env python3
"""Holds every peer against the reference: verdicts to results/peers/PEER.SUITE.jsonl.gz.

    python3 backends/peers/run.py [--environments FOLDER] [--suites smoke,bugs] [--peers jax,keras]

Each peer runs in its environment (install.sh makes them), by one thread. Where a library has no logsumexp, lines that
ask for it beside the output are asked without. Of `matrix` every tenth case runs, each once.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent.parent / "results" / "peers"
# What of a suite runs, and how: the matrix is drawn at random, so that each tenth is a sample.
SUITES = {"smoke": [], "bugs": [], "onnx": [], "matrix": ["--shard", "1/10"]}
ONCE = {"matrix"}
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "XLA_CPU_THREADS", "TF_NUM_INTRAOP_THREADS")


def surroundings() -> dict[str, str]:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "GLOG_minloglevel": "3", "PYTHONPATH": str(HERE)}
    return {**os.environ, **{name: "1" for name in ONE_THREAD}, **quiet}


def attest(interpreter: Path, *words: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(interpreter), "-m", "attest", *words]
    return subprocess.run(
        command, env={**surroundings(), **(variables or {})}, cwd=HERE, capture_output=True, text=True, check=False
    )


def attest_data(interpreter: Path) -> Path:
    """Where the installed package keeps suites and golden files."""
    words = [str(interpreter), "-c", "import attest; print(attest.__path__[0])"]
    place = subprocess.run(words, env=surroundings(), capture_output=True, text=True, check=True).stdout.strip()
    return Path(place) / "data"


def lines_of(interpreter: Path, suite: str, with_lse: bool) -> list[str]:
    """The suite's lines, with files named as the installed suite finds them."""
    listed = attest(interpreter, "check", "--suite", suite, *SUITES[suite], "--list")
    if listed.returncode:
        sys.exit(f"{suite}: {listed.stderr.strip() or 'its lines could not be listed'}")
    # No peer takes weights to keep, which the files of golden/keep hold.
    lines = [
        re.sub(r"^.*/golden/", "golden/", line) for line in listed.stdout.splitlines() if line and "/keep/" not in line
    ]
    return lines if with_lse else [re.sub(r" out=o(?= |$)", "", re.sub(r"out=o,lse", "out=o", line)) for line in lines]


def counts_of(printed: str) -> str:
    return next((line for line in reversed(printed.splitlines()) if re.match(r"\d+ passed, ", line)), "no verdicts")


def run(name: str, peer: dict[str, object], suite: str, environments: Path) -> None:
    interpreter = environments / str(peer["environment"]) / "bin" / "python"
    if not interpreter.exists():
        print(
            f"{name}: no environment {interpreter.parent.parent}; backends/peers/install.sh makes it", file=sys.stderr
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        cases, verdicts = Path(folder) / f"{suite}.cases", Path(folder) / "verdicts.jsonl"
        cases.write_text("\n".join(lines_of(interpreter, suite, bool(peer.get("lse")))) + "\n")
        golden = attest_data(interpreter) / "golden"
        if golden.exists():
            (Path(folder) / "golden").symlink_to(golden)
        once = ["--once"] if suite in ONCE else []
        ended = attest(
            interpreter, "check", "--python", str(peer["object"]), "--suite-file", str(cases), "--json", str(verdicts),
            "--quiet", "--threads", "1", *once, variables=peer.get("variables"),
        )  # fmt: skip
        if not verdicts.exists():
            print(f"{name}, {suite}: {(ended.stderr or ended.stdout).strip()}", file=sys.stderr)
            return
        RESULTS.mkdir(parents=True, exist_ok=True)
        with gzip.GzipFile(RESULTS / f"{name}.{suite}.jsonl.gz", "wb", mtime=0) as packed:
            packed.write(re.sub(rb"[^\" ]*/golden/", b"golden/", verdicts.read_bytes().replace(folder.encode(), b"")))
        print(f"{name}, {suite}: {counts_of(ended.stdout)}", flush=True)


def main() -> None:
    peers = tomllib.loads((HERE / "peers.toml").read_text())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, default=HERE / "build")
    parser.add_argument("--suites", default=",".join(SUITES))
    parser.add_argument("--peers", default=",".join(peers))
    asked = parser.parse_args()
    for name in asked.peers.split(","):
        for suite in asked.suites.split(","):
            run(name, peers[name], suite, asked.environments)


if __name__ == "__main__":
    main()
