#!/usr/bin/env python3
"""Runs each program of bugs/, and attest on its finding's line, three times in fresh processes.

    python3 backends/peers/prove.py [--environments FOLDER] [PROGRAM...]

The outcomes go to results/peers/programs.json, with the machine and the versions of the libraries. A program says what
it got and what was expected, and ends with 1 where the two differ.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from peer_results import all_findings
from run import instructions

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent.parent / "results" / "peers" / "programs.json"


def peer_of(program: str) -> str:
    """The first peer on which the program's finding was made."""
    peers = tomllib.loads((HERE / "peers.toml").read_text())
    patterns: list[str] = next((finding["peers"] for finding in all_findings() if finding["name"] == program), [])
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
    return ended.returncode, ended.stdout.strip() or f"no line: {ended.stderr.strip().splitlines()[-1:]}"


#: Distributions that a program's outcome depends on, by the beginnings of its name; the first that fits.
LIBRARIES = {
    "executorch": "executorch torch", "ggml": "llama-cpp-python", "iree": "iree-base-compiler iree-base-runtime",
    "keras_numpy": "keras", "keras_tensorflow": "keras tensorflow_cpu", "keras_torch": "keras torch",
    "mlx": "mlx mlx-cpu", "mnn": "mnn", "ncnn": "ncnn", "onednn": "onednn", "onnxruntime": "onnxruntime onnx",
    "onnx": "onnx", "openvino": "openvino", "paddle": "paddlepaddle", "tinygrad": "tinygrad", "torch": "torch",
    "transformers": "transformers torch",
}  # fmt: skip


def versions_of(program: str, environment: str) -> list[str]:
    """Libraries and their versions, as the environment's lock file has them."""
    wanted = next(names for start, names in LIBRARIES.items() if program.startswith(start)).split()
    lock = (HERE / "environments" / f"{environment}.lock").read_text().splitlines()
    by_name = dict(line.split("==") for line in lock)
    return [f"{name} {by_name[name]}" for name in [*wanted, *(["numpy"] if "numpy" not in wanted else [])]]


def machine() -> str:
    """System, processor and Python, on one line."""
    path = Path("/proc/cpuinfo")
    said = re.search(r"model name\s*: (.*)", path.read_text()) if path.exists() else None
    processor = said[1].strip() if said else platform.processor() or "unknown processor"
    sets = ", ".join(instructions()) or "no sets of vector instructions known"
    release = platform.freedesktop_os_release()["PRETTY_NAME"] if sys.platform == "linux" else platform.system()
    return f"{release}, {platform.system()} {platform.release()} {platform.machine()}; {processor} ({sets})"


def line_fails(program: str, line: str, environments: Path) -> bool:
    """Whether attest finds the bug by its smallest line."""
    peers = tomllib.loads((HERE / "peers.toml").read_text())
    peer = peers[peer_of(program)]
    command = [str(environments / str(peer["environment"]) / "bin" / "python"), "-m", "attest", "check", line]
    command += ["--python", str(peer["object"]), "--quiet", "--no-shrink", "--threads", "1"]
    around = {**os.environ, **peer.get("variables", {}), "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile("w+") as said:  # as in run.py
        return subprocess.run(command, env=around, stdout=said, stderr=said, check=False).returncode == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, default=HERE / "build")
    parser.add_argument("programs", nargs="*", default=sorted(path.stem for path in (HERE / "bugs").glob("*.py")))
    asked = parser.parse_args()
    known = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    proved = {name: outcome for name, outcome in known.items() if (HERE / "bugs" / f"{name}.py").exists()}
    lines = {found["name"]: found for found in all_findings()}
    for program in asked.programs:
        line = str(lines[program]["line"])
        of_line = 0 if line.startswith("none") else sum(line_fails(program, line, asked.environments) for _ in range(3))
        runs = [run(program, asked.environments) for _ in range(3)]
        wrong = sum(code == 1 for code, _ in runs)
        text = runs[0][1].replace(str(asked.environments.resolve()), "").replace(str(HERE), "")
        environment = str(tomllib.loads((HERE / "peers.toml").read_text())[peer_of(program)]["environment"])
        python = (asked.environments / environment / "pyvenv.cfg").read_text()
        proved[program] = {
            "wrong": wrong, "runs": 3, "says": text, "line_wrong": of_line, "machine": machine(),
            "versions": [*versions_of(program, environment), "Python " + re.search(r"version = (\S+)", python)[1]],
        }  # fmt: skip
        TARGET.write_text(json.dumps(dict(sorted(proved.items())), indent=1) + "\n")
        print(f"{program}: {wrong} of 3, its line {of_line} of 3; {text}", flush=True)


if __name__ == "__main__":
    main()
