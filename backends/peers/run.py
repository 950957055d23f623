#!/usr/bin/env python3
"""Holds every peer against the reference: verdicts to results/peers/PEER.SUITE.jsonl.gz.

    python3 backends/peers/run.py [--environments FOLDER] [--suites smoke,bugs] [--peers jax,keras] [--fuzz SECONDS]

Each peer runs in its environment (install.sh makes them), by one thread. Where a library has no logsumexp, lines that
ask for it beside the output are asked without. Cases of `matrix` and `backward` run once. Peers that are slow run a
sample of a suite (peers.toml). The files hold what report.py reads; `attest check --json` gives the rest.

With --fuzz the peers are fuzzed for so long each, instead of suites: how many cases ran goes to fuzz.json in
results/peers/, the verdicts on the smallest failing ones to PEER.fuzz.jsonl.gz.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, Iterator

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent.parent / "results" / "peers"
SUITES = ("smoke", "bugs", "onnx", "matrix", "linear", "codes", "backward")
GRADIENTS = "pass=(backward|both)"
SEED = "1"  #: of fuzzing
ONCE = {"matrix", "codes", "backward"}
#: Words of lines that codes are put to: what says more of tensors or gradients isn't for them.
PLAIN = (
    r"(batch|heads|seq|dim|scale|causal|align|window|prefix|lengths|segments|mask|blocks|alibi|softcap|sinks|past|seed)"
)
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "XLA_CPU_THREADS", "TF_NUM_INTRAOP_THREADS")


def environment() -> dict[str, str]:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "GLOG_minloglevel": "3", "PYTHONPATH": str(HERE)}
    return {**os.environ, **{name: "1" for name in ONE_THREAD}, **quiet}


def module(interpreter: Path, *words: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A module of the peer's environment run as a program; its name is the first word."""
    command = [str(interpreter), "-m", *words]
    # A file: a library's own warnings then can't stop a worker that nobody reads from.
    with tempfile.TemporaryFile("w+") as said:
        ended = subprocess.run(
            command, env={**environment(), **(variables or {})}, cwd=HERE, stdout=subprocess.PIPE, stderr=said, text=True,
            check=False,
        )  # fmt: skip
        said.seek(0)
        ended.stderr = said.read()
    return ended


def attest_data(interpreter: Path) -> Path:
    """Where the installed package keeps suites and golden files."""
    words = [str(interpreter), "-c", "import attest; print(attest.__path__[0])"]
    place = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True).stdout.strip()
    return Path(place) / "data"


def lines_of(interpreter: Path, suite: str, peer: dict[str, Any]) -> list[str]:
    """The suite's lines, with files named as the installed suite finds them; a part of them where the peer says so.
    `backward` has the lines of gradients of all suites."""
    if suite == "codes":
        plain = [line for name in ("smoke", "matrix") for line in lines_of(interpreter, name, {})]
        return list(dict.fromkeys(with_codes(plain, peer["codes"])))
    share = ["--share", str(peer[suite])] if isinstance(peer.get(suite), str) else []  # `linear = true` is none
    more = ["--suite", "bugs"] if suite == "backward" else []
    listed = module(interpreter, "attest", "check", "--suite", suite, *more, *share, "--list")
    if listed.returncode:
        sys.exit(f"{suite}: {listed.stderr.strip() or 'its lines could not be listed'}")
    # No peer takes weights to keep, which the files of golden/keep hold.
    lines = [
        re.sub(r"^.*/golden/", "golden/", line) for line in listed.stdout.splitlines() if line and "/keep/" not in line
    ]
    of_gradients = suite == "backward"
    lines = [line for line in lines if bool(re.search(GRADIENTS, line)) == of_gradients]
    if of_gradients:
        return list(dict.fromkeys(gradients_alone(line, bool(peer.get("saved"))) for line in lines))
    if peer.get("lse"):
        return lines
    return [re.sub(r" lse\.\w+=\S+| out=o(?= |$)", "", re.sub(r"out=o,lse", "out=o", line)) for line in lines]


def with_codes(lines: list[str], codes: list[str]) -> Iterator[str]:
    """Lines of plain calls whose tensors are stored in codes, as each of `codes` says in turn."""
    others = re.compile(r"golden/|op=|pass=|paged=|latent|append|select|dynamic|layout=thd|past=\d+,|dtype=(f64|bf16) ")
    said = itertools.cycle(codes)
    for line in lines:
        if others.search(line):
            continue
        words = [word for word in line.split() if word == "dtype=f16" or re.fullmatch(PLAIN + "(=.*)?", word)]
        odd = re.search(r" dim=(\d+/)?\d*[13579]( |$)|dim=\d*[13579]/", line)
        stored = next(said)
        while odd and "dtype=i4" in stored:  # two elements lie in each byte
            stored = next(said)
        yield " ".join([*words, stored])


def gradients_alone(line: str, saved: bool) -> str:
    """A line of gradients without what no library that differentiates has: types of single tensors, stages of the
    scores, and a logsumexp that derivatives pass through. Peers that take `saved` results give gradients alone; the
    others run forward first."""
    gone = ["raw", "capped", "biased", "weights", "present(_.*)?", "lse", "dlse"]
    gone += ["o"] if saved else ["saved_.*"]
    words = []
    for word in line.split():
        tensor, _, attribute = word.partition("=")[0].partition(".")
        if attribute == "dtype" and tensor != "mask":
            continue
        if any(re.fullmatch(name, tensor) for name in gone) or (saved and tensor == "out" and attribute):
            continue
        if tensor == "out" and not attribute:
            kept = [name for name in word[4:].split(",") if not any(re.fullmatch(one, name) for one in gone)]
            word = "out=" + ",".join(kept) if kept else ""
        words.append(f"pass={'backward' if saved else 'both'}" if tensor == "pass" else word)
    return " ".join(filter(None, words))


def counts_of(lines: list[dict[str, Any]]) -> str:
    counts = Counter(line["status"] for line in lines if line["kind"] == "verdict")
    return ", ".join(f"{count} {status}" for status, count in counts.most_common()) or "no verdicts"


def interpreter_of(name: str, peer: dict[str, Any], environments: Path) -> Path | None:
    """The environment's Python; None, and a line that says so, where it isn't installed."""
    interpreter = environments / str(peer["environment"]) / "bin" / "python"
    if interpreter.exists():
        return interpreter
    print(f"{name}: no environment {interpreter.parent.parent}; backends/peers/install.sh makes it", file=sys.stderr)
    return None


def check(interpreter: Path, name: str, peer: dict[str, Any], suite: str, lines: list[str], results: Path) -> None:
    """Verdicts on the lines, to NAME.SUITE.jsonl.gz."""
    with tempfile.TemporaryDirectory() as folder:
        cases, verdicts = Path(folder) / f"{suite}.cases", Path(folder) / "verdicts.jsonl"
        cases.write_text("\n".join(lines) + "\n")
        golden = attest_data(interpreter) / "golden"
        if golden.exists():
            (Path(folder) / "golden").symlink_to(golden)
        options = ["--once"] if suite in ONCE or peer.get("once") else []
        options += ["--timeout", "600"] if peer.get("once") else []  # compilers take minutes on a busy machine
        ended = module(
            interpreter, "attest", "check", "--python", str(peer["object"]), "--suite-file", str(cases),
            "--json", str(verdicts), "--quiet", "--threads", "1", *options, variables=peer.get("variables"),
        )  # fmt: skip
        if not verdicts.exists():
            sys.exit(f"{name}, {suite}: {(ended.stderr or ended.stdout).strip()}")
        results.mkdir(parents=True, exist_ok=True)
        # Not where cases and libraries lie: messages of exceptions name their files.
        text = verdicts.read_text().replace(folder, "").replace(str(interpreter.parent.parent), "")
        told = [json.loads(line) for line in text.splitlines()]
        with gzip.GzipFile(results / f"{name}.{suite}.jsonl.gz", "wb", mtime=0) as packed:
            for line in summed([kept(line) for line in told if line["kind"] in ("run", "verdict")], suite in ONCE):
                written = json.dumps(line, separators=(",", ":"), ensure_ascii=False)
                packed.write(re.sub(r"[^\" ]*/golden/", "golden/", written).encode() + b"\n")
        print(f"{name}, {suite}: {counts_of(told)}", flush=True)


#: Of a verdict, what report.py reads; `worst` and the ratio of what isn't right.
KEPT = ("kind", "case", "backend", "status", "reason", "cause")
RIGHT = ("pass", "weak", "refused", "inconclusive", "convention")


def instructions() -> list[str]:
    """The sets of vector and matrix instructions of this processor, on which results of most libraries depend."""
    path = Path("/proc/cpuinfo")
    flags = set(re.findall(r"\w+", path.read_text())) if path.exists() else set()
    names = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_bf16": "AVX512-BF16", "avx512_fp16": "AVX512-FP16"}
    return [name for flag, name in {**names, "amx_bf16": "AMX-BF16"}.items() if flag in flags]


def kept(line: dict[str, Any]) -> dict[str, Any]:
    """The line of a verdict without what no table needs, so that files stay small."""
    if line["kind"] == "run":
        left = {name: value for name, value in line.items() if name not in ("conditions", "selection", "unavailable")}
        return {**left, "machine": {**line["machine"], "instructions": instructions()}}
    names = KEPT if line["status"] in RIGHT else (*KEPT, "error_over_bound", "worst")
    return {name: line[name] for name in names if line.get(name) is not None}


def summed(lines: list[dict[str, Any]], refused: bool) -> list[dict[str, Any]]:
    """With what was `refused` as one line for each reason, {"kind": "refused", "reason": ..., "count": ...}."""
    gone = [line for line in lines if refused and line.get("status") == "refused"]
    counts = Counter(str(line.get("reason")) for line in gone)
    left = [line for line in lines if not (refused and line.get("status") == "refused")]
    return left + [{"kind": "refused", "reason": reason, "count": n} for reason, n in counts.most_common()]


def fuzz(interpreter: Path, name: str, peer: dict[str, Any], seconds: float, results: Path) -> None:
    """Counts to fuzz.json, and verdicts on what failed, made small."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "found.json"
        ended = module(
            interpreter, "attest_peers.fuzz_peer", str(peer["object"]), str(seconds), SEED, str(told),
            *peer.get("always", peer.get("codes", [])), variables=peer.get("variables"),
        )  # fmt: skip
        if not told.exists():
            sys.exit(f"{name}, fuzz: {(ended.stderr or ended.stdout).strip()}")
        found = json.loads(told.read_text())
    counts, lines = found["counts"], found["smallest"]
    results.mkdir(parents=True, exist_ok=True)
    # Before the counts, so that none stand without what they count.
    if lines:
        check(interpreter, name, peer, "fuzz", lines, results)
    else:
        (results / f"{name}.fuzz.jsonl.gz").unlink(missing_ok=True)
    target = results / "fuzz.json"
    known = json.loads(target.read_text()) if target.exists() else {}
    known[name] = {"seconds": seconds, "seed": int(SEED), **counts}
    target.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
    print(f"{name}, fuzz: {counts}, {len(lines)} ways", flush=True)


def main() -> None:
    peers = tomllib.loads((HERE / "peers.toml").read_text())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, default=HERE / "build")
    parser.add_argument("--suites", default=",".join(SUITES), help="`linear` and `codes` are for peers that have them")
    parser.add_argument("--peers", default=",".join(peers))
    parser.add_argument("--fuzz", type=float, metavar="SECONDS")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    for name in asked.peers.split(","):
        peer = peers[name]
        interpreter = interpreter_of(name, peer, asked.environments.resolve())
        if interpreter is None:
            continue
        if asked.fuzz:
            fuzz(interpreter, name, peer, asked.fuzz, asked.results)
            continue
        for suite in asked.suites.split(","):
            if suite in ("linear", "codes") and not peer.get(suite):
                continue
            lines = lines_of(interpreter, suite, peer)
            check(interpreter, name, peer, suite, lines, asked.results)


if __name__ == "__main__":
    main()
