#!/usr/bin/env python3
"""Runs each program of bugs/, and attest on its finding's line, three times in fresh processes.

    python3 backends/peers/prove.py [--environments FOLDER] [PROGRAM...]

The outcomes go to results/peers/programs.json. A program says in one line what it got and what was expected, and ends
with 1 where the two differ.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent.parent / "results" / "peers" / "programs.json"


def peer_of(program: str) -> str:
    """The first peer on which the program's finding was made."""
    findings = tomllib.loads((HERE / "findings.toml").read_text())["finding"]
    peers = tomllib.loads((HERE / "peers.toml").read_text())
    patterns: list[str] = next((finding["peers"] for finding in findings if finding["name"] == program), [])
    for peer in peers:
        if any(fnmatch(peer, pattern) for pattern in patterns):
            return peer
    sys.exit(f"bugs/{program}.py has no finding of its name in findings.toml")


def run(program: str, environments: Path) -> tuple[int, str]:
    peers = tomllib.loads((HERE / "peers.toml").read_text())
    interpreter = environments / str(peers[peer_of(program)]["environment"]) / "bin" / "python"
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    command = [str(interpreter), str(HERE / "bugs" / f"{program}.py")]
    ended = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
    said = [line for line in ended.stdout.splitlines() if ": got " in line or "expected" in line]
    return ended.returncode, " / ".join(said) or f"no line: {ended.stderr.strip().splitlines()[-1:]}"


def line_fails(program: str, line: str, environments: Path) -> bool:
    """Whether attest finds the bug by its smallest line."""
    peers = tomllib.loads((HERE / "peers.toml").read_text())
    peer = peers[peer_of(program)]
    command = [str(environments / str(peer["environment"]) / "bin" / "python"), "-m", "attest", "check", line]
    command += ["--python", str(peer["object"]), "--quiet", "--no-shrink", "--threads", "1"]
    around = {**os.environ, **peer.get("variables", {}), "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=around, capture_output=True, check=False).returncode == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, default=HERE / "build")
    parser.add_argument("programs", nargs="*", default=sorted(path.stem for path in (HERE / "bugs").glob("*.py")))
    asked = parser.parse_args()
    known = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    proved = {name: outcome for name, outcome in known.items() if (HERE / "bugs" / f"{name}.py").exists()}
    lines = {found["name"]: found for found in tomllib.loads((HERE / "findings.toml").read_text())["finding"]}
    for program in asked.programs:
        line = str(lines[program]["line"])
        of_line = 0 if line.startswith("none") else sum(line_fails(program, line, asked.environments) for _ in range(3))
        runs = [run(program, asked.environments) for _ in range(3)]
        wrong = sum(code == 1 for code, _ in runs)
        text = re.sub(r"\s+", " ", runs[0][1]).replace("|", "/")
        proved[program] = {"wrong": wrong, "runs": 3, "says": text, "line_wrong": of_line}
        print(f"{program}: {wrong} of 3, its line {of_line} of 3; {text}", flush=True)
    TARGET.write_text(json.dumps(dict(sorted(proved.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
