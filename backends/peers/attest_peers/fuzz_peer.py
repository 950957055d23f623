"""Fuzzes one peer, in its environment: python -m attest_peers.fuzz_peer MODULE:OBJECT SECONDS SEED FILE [OPTIONS...]

By one thread. Every case has one of the OPTIONS. FILE gets the counts and the lines of the smallest failing cases, as JSON.
"""

import importlib
import json
import sys
from pathlib import Path

import attest


def main() -> None:
    words, seconds, seed, path, *always = sys.argv[1:]
    place, _, name = words.partition(":")
    found = attest.fuzz(
        getattr(importlib.import_module(place), name), seconds=float(seconds), seed=int(seed), threads=1, always=always
    )
    counts = {key: getattr(found, key) for key in ("cases", "refused", "inconclusive", "passed", "failed")}
    smallest = sorted({finding.smallest.case for finding in found.findings})
    Path(path).write_text(json.dumps({"counts": counts, "smallest": smallest}))


if __name__ == "__main__":
    main()
